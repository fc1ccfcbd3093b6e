"""The optimiser's decision: from trials to the configuration to try next, in arrays and without Optuna.

1. A few sets of hyperparameters are sampled from their posterior, which accounts for their uncertainty.
2. The acquisition function is, for one objective without constraints, at random either the expected improvement in
   closed form (ranktune.tuner.gp.acquisition) or the mean improvement over DRAWS sample paths
   (ranktune.tuner.gp.paths); else the latter. One path is plain Thompson sampling, which explores more than short
   studies can afford. On the problems of ranktune.studies.benchmarks the mixture was at least as good as either.
3. About every other decision for one objective, without constraints and costs, is restricted to the trust region
   (ranktune.tuner.gp.trust_region).

Running trials are fantasies at their posterior mean. Drawing a fantasy for each path instead leaves only improbable
improvements: the more trials run at a time, the fewer good regions were explored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.acquisition import Acquisition, ExpectedImprovement
from ranktune.tuner.gp.costs import ImprovementPerCost, LogCost
from ranktune.tuner.gp.encoding import Encoding
from ranktune.tuner.gp.hyperparameters import HyperparameterDensity, fit, relative_variances, slice_samples
from ranktune.tuner.gp.paths import Mixture, Paths, PathwiseImprovement
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior, scale_signed, standard_deviation, standardise
from ranktune.tuner.gp.replicates import best_replicate
from ranktune.tuner.gp.search import maximise
from ranktune.tuner.gp.trust_region import TrustRegion, side_after

ACQUISITIONS = ("thompson", "ei")
DRAWS = 64
"""Sample paths of one decision."""
MAX_SAMPLED_TRIALS = 150
"""Trials up to which hyperparameters are sampled; beyond, the MAP estimate suffices, as sampling costs n^3."""
MAX_TRIALS = 400
"""Trials that the model uses: half of them the best, the others the latest. Its cost is n^3."""
REFERENCE_QUANTILE = 0.25
"""Quantile of the gains that is the reference point of the hypervolume, with several objectives."""
CLOSED_FORM_PROBABILITY = 0.5
"""Probability that a decision of Thompson sampling uses the expected improvement in closed form."""
TRUST_REGION_PROBABILITY = 0.5
"""Probability that a decision of Thompson sampling is restricted to the trust region."""
PATIENCE = 4
"""Failures in a row after which the trust region shrinks; half the number of parameters if that is more."""
HYPERPARAMETER_SAMPLES = 3
"""Sets of hyperparameters of one decision."""
COST_EXPONENT = 0.3
"""Exponent of the expected cost by which improvement is divided; more neglects expensive good configurations."""
LOCAL_CENTRES = 5
"""Trials with candidates around them, besides the best of each category that activates parameters."""


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials so far.

    rows         (n, d) masked configurations, in the order in which they were tried
    gains        (n,) finite, larger is better; more: those of further objectives, (n,) each
    noise        (n,) relative noise variances; level: the variance of gains they are relative to, 0 if unknown
    pending      (q, d) running configurations
    constraints  (n,) each, satisfied where not above 0, NaN where unknown
    extra        (n,) additional noise variance of trials that were evaluated on a part of the plan
    seconds      (n,) cost of each trial, NaN where unknown
    """

    rows: Floats
    gains: Floats
    noise: Floats
    pending: Floats
    more: tuple[Floats, ...] = ()
    constraints: tuple[Floats, ...] = ()
    level: float = 0.0
    extra: Floats | float = 0.0
    seconds: Floats | float = np.nan

    @property
    def is_single_objective(self) -> bool:
        """Whether there is one objective, and no constraint."""
        return not self.more and not self.constraints

    def within(self, window: int) -> Trials:
        """Return at most window trials: half of them the best, the others the latest."""
        if len(self.gains) <= window:
            return self
        kept = np.zeros(len(self.gains), dtype=bool)
        if self.is_single_objective:  # several objectives have no best
            kept[np.argsort(-self.gains, kind="stable")[: window // 2]] = True
        kept[np.flatnonzero(~kept)[-(window - np.count_nonzero(kept)) :]] = True
        return replace(
            self,
            rows=self.rows[kept],
            gains=self.gains[kept],
            noise=self.noise[kept],
            more=tuple(own[kept] for own in self.more),
            constraints=tuple(own[kept] for own in self.constraints),
            extra=np.broadcast_to(self.extra, self.gains.shape)[kept],
            seconds=np.broadcast_to(self.seconds, self.gains.shape)[kept],
        )


@dataclass(frozen=True, eq=False)
class Proposal:
    """The masked row, (d,), to try next, and its expected improvement over the incumbent.

    full: the row with a value for every parameter, also for those that are inactive as far as is known.
    gain: of the noise-free objective, in its units; None with several objectives, and in the trust region, whose best
    does not bound what can be gained elsewhere.
    """

    row: Floats
    gain: float | None
    full: Floats


def propose(
    encoding: Encoding,
    trials: Trials,
    taken: Floats | None,
    generator: np.random.Generator,
    acquisition: str = "thompson",
    draws: int = DRAWS,
    *,
    power: float = 0.0,
    replicates: bool = False,
) -> Proposal:
    """Return the configuration to try next: none of taken (ranktune.tuner.gp.encoding.covered) if others exist.

    acquisition: "thompson", or "ei" for the closed form alone (one objective, no constraints). power: exponent of the
    expected cost by which improvement is divided. replicates: for one objective without constraints, propose a tried
    configuration where that is worth more (ranktune.tuner.gp.replicates); the gain remains that of the new one.
    """
    if not encoding.varying:
        only = encoding.only()
        return Proposal(encoding.masked(only[None])[0], 0.0 if trials.is_single_objective else None, only)
    trials = trials.within(MAX_TRIALS)
    E, pending = encoding.embed(trials.rows), encoding.embed(trials.pending)
    improvement: ExpectedImprovement | PathwiseImprovement
    closed_form = draws > 1 and trials.is_single_objective and generator.random() < CLOSED_FORM_PROBABILITY
    if acquisition == "ei" or closed_form:
        improvement, merits, posteriors = _expected_improvement(encoding, trials, E, pending, generator)
    else:
        improvement, merits, posteriors = _pathwise_improvement(encoding, trials, E, pending, generator, draws)
    cost = LogCost.of(E, np.broadcast_to(trials.seconds, trials.gains.shape)) if power else None
    acquisition_function: Acquisition = improvement if cost is None else ImprovementPerCost(improvement, cost, power)
    centres = encoding.filled(_local_centres(encoding, trials.rows, merits), generator)
    region = None
    may = acquisition == "thompson" and trials.is_single_objective and cost is None and not encoding.is_small
    if may and generator.random() < TRUST_REGION_PROBABILITY:
        region = _region(encoding, trials.gains, centres[0], posteriors[0])
    full = maximise(acquisition_function, encoding, centres, taken, generator, region)
    row = encoding.masked(full[None])[0]
    unknown = trials.more or region is not None
    gain = None if unknown else improvement.mean(encoding.embed(row[None]))[0] * standard_deviation(trials.gains)
    if replicates and trials.is_single_objective:
        place = _replicate(encoding, trials, posteriors, row)
        if place is not None:
            return Proposal(place, gain, place)
    return Proposal(row, gain, full)


def _region(encoding: Encoding, gains: Floats, centre: Floats, posterior: Posterior) -> TrustRegion:
    """Return the trust region around a full row, (d,), after gains, (n,)."""
    side = side_after(gains, max(PATIENCE, len(encoding.varying) // 2))
    return TrustRegion.around(encoding, centre, side, posterior.hyperparameters.weights)


def _replicate(encoding: Encoding, trials: Trials, posteriors: Sequence[Posterior], row: Floats) -> Floats | None:
    """Return the row, (d,), of a trial, finished or running, whose replicate has a larger knowledge gradient."""
    rows = np.vstack([trials.rows, trials.pending])
    place = best_replicate(posteriors, encoding.embed(rows), encoding.embed(row[None])[0])
    return None if place is None else rows[place]


def posterior_means(encoding: Encoding, trials: Trials) -> Floats:
    """Return the posterior mean of each trial's standardised gain, (n,), at the MAP hyperparameters."""
    output = _Output.of(encoding, trials, encoding.embed(trials.rows), np.empty((0, len(encoding.axis_of_column))))
    return output.posterior(output.map_theta()).mean(output.E)


@dataclass(frozen=True, eq=False)
class _Output:
    """One objective or constraint at the trials where it is known; scaled maps its gains, (n,), to y."""

    encoding: Encoding
    E: Floats
    gains: Floats
    noise: Floats
    pending: Floats
    level: float = 0.0
    extra: Floats | float = 0.0
    scaled: Callable[[Floats], Floats] = standardise

    @classmethod
    def of(cls, encoding: Encoding, trials: Trials, E: Floats, pending: Floats) -> Self:
        """Return the first objective of trials at E, (n, D), with pending, (q, D)."""
        return cls(encoding, E, trials.gains, trials.noise, pending, trials.level, trials.extra)

    @cached_property
    def y(self) -> Floats:
        """The scaled gains, (n,)."""
        return self.scaled(self.gains)

    @cached_property
    def e(self) -> Floats:
        """The additional noise variances, (n,), in units of y."""
        return relative_variances(self.gains, self.extra)

    def map_theta(self) -> Floats:
        """Return the maximum a posteriori hyperparameters."""
        columns = self.encoding.axis_of_column
        return fit(self.E, self.gains, self.noise, columns, self.scaled, self.level, self.extra)

    def posterior(self, theta: Floats) -> Posterior:
        """Return the posterior with hyperparameters theta, without pending trials."""
        hyperparameters = Hyperparameters.from_log(theta)
        return Posterior.of(self.E, self.y, self.noise, hyperparameters, self.encoding.axis_of_column, self.e)

    def posteriors(self, count: int, generator: np.random.Generator) -> list[tuple[Posterior, Floats]]:
        """Return posteriors, each with its y, fantasies last; hyperparameters are sampled while trials are few."""
        thetas = [self.map_theta()]
        if len(self.y) <= MAX_SAMPLED_TRIALS:
            level = float(relative_variances(self.gains, self.level))
            columns = self.encoding.axis_of_column
            density = HyperparameterDensity(self.E, self.y, self.noise, columns, level, self.e)
            skipped = 0 if count > 1 else 1  # a single sample needs a second sweep to leave the mode
            thetas = list(islice(slice_samples(density, thetas[0], generator), skipped, skipped + count))
        return [self.posterior(theta).with_fantasies(self.pending, self.y) for theta in thetas]

    def functions(self, draws: int, generator: np.random.Generator) -> tuple[Mixture, Floats]:
        """Return sample paths of several posteriors, and the mean y of each trial, (n,)."""
        posteriors = self.posteriors(min(HYPERPARAMETER_SAMPLES, draws), generator)
        shares = np.diff(np.linspace(0, draws, len(posteriors) + 1).astype(np.int64)).tolist()
        groups = [Paths.drawn(*some, generator, share) for some, share in zip(posteriors, shares, strict=True)]
        return Mixture(tuple(groups)), np.mean([some.mean(self.E) for some, _ in posteriors], axis=0)


def _expected_improvement(
    encoding: Encoding, trials: Trials, E: Floats, pending: Floats, generator: np.random.Generator
) -> tuple[ExpectedImprovement, Floats, list[Posterior]]:
    """Return the closed-form acquisition function, the mean gain of each trial, (n,), and the posteriors."""
    output = _Output.of(encoding, trials, E, pending)
    posteriors = [posterior for posterior, _ in output.posteriors(HYPERPARAMETER_SAMPLES, generator)]
    improvement = ExpectedImprovement.over(tuple(posteriors), np.vstack([E, pending]))
    return improvement, posteriors[0].mean(E), posteriors


def _pathwise_improvement(
    encoding: Encoding, trials: Trials, E: Floats, pending: Floats, generator: np.random.Generator, draws: int
) -> tuple[PathwiseImprovement, Floats, list[Posterior]]:
    """Return the Monte Carlo acquisition function, each trial's merit, (n,), and the first objective's posteriors."""
    first = _Output.of(encoding, trials, E, pending)
    outputs = (first, *(_Output(encoding, E, gains, trials.noise, pending) for gains in trials.more))
    objectives, means = zip(*(output.functions(draws, generator) for output in outputs), strict=True)
    constraints = []
    for values in trials.constraints:
        known = np.isfinite(values)
        if known.any():
            own = _Output(encoding, E[known], -values[known], trials.noise[known], pending, scaled=scale_signed)
            constraints.append(own.functions(draws, generator)[0])
    reference, spans = _reference(np.array(means))
    tried = np.vstack([E, pending])
    acquisition_function = PathwiseImprovement.over(objectives, constraints, tried, reference, spans, generator)
    posteriors = [group.posterior for group in objectives[0].groups]
    if trials.is_single_objective:
        return acquisition_function, means[0], posteriors
    scores = acquisition_function.scores(E)
    wins = np.bincount(scores.argmax(axis=0), minlength=len(E))
    return acquisition_function, wins + 1e-3 * scores.mean(axis=1), posteriors


def _reference(means: Floats) -> tuple[Floats, Floats]:
    """Return the reference point and the spans above it, (o,) each, given the trials' mean gains, (o, n).

    A reference point near the front would give its ends no hypervolume, so they would never be explored.
    """
    reference = np.quantile(means, REFERENCE_QUANTILE, axis=1)
    spans = means.max(axis=1) - reference
    return reference, np.where(spans > 1e-6, spans, 1.0)


def _local_centres(encoding: Encoding, rows: Floats, merits: Floats) -> Floats:
    """Return the trials of highest merit, overall and within each category that activates other parameters."""
    order = np.argsort(-merits, kind="stable")
    chosen = order[:LOCAL_CENTRES].tolist()
    for j in range(len(encoding.axes)):
        if encoding.axes[j].choices and j not in encoding.conditional and encoding.conditional:
            for choice in range(encoding.axes[j].choices):
                chosen += order[rows[order, j] == choice][:1].tolist()
    return rows[list(dict.fromkeys(chosen))]
