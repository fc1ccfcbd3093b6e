"""The decision: from trials to the configuration to try next, in arrays and without Optuna.

Hyperparameters are drawn from their own posterior, a few sets of them for each decision: one fitted to few trials is
too sure of itself. Then functions are drawn, of each objective and each constraint, and the configuration is proposed
that improves most on the best trial of each draw, on average (ranktune.tuner.gp.paths). With one draw that is Thompson
sampling as it was first thought of, which explores more than short studies can afford: DRAWS was the better choice on
the problems that it was tuned on, alone and with eight trials at a time. What so many draws do not see, small or
improbable improvements, the average over all functions has in closed form (ranktune.tuner.gp.acquisition), for one
objective without constraints: the two take turns at random, which on those problems was better than either, or as good.

About every other decision, of one objective without constraints, looks in the trust region alone
(ranktune.tuner.gp.trust_region): on made-up problems that found better places sooner, on rankers it was as good. Not
where costs count: what is cheap may lie elsewhere.

Running trials are believed to show what is expected of them. Counting them as tried in each draw, with what that draw
says of them, leaves only long shots to be improved: the more run, the less were good places looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.acquisition import Acquisition, ExpectedImprovement
from ranktune.tuner.gp.costs import ImprovementPerCost, LogCost
from ranktune.tuner.gp.encoding import Encoding
from ranktune.tuner.gp.hyperparameters import (
    HyperparameterDensity,
    fit,
    relative_noise,
    relative_variances,
    slice_samples,
)
from ranktune.tuner.gp.paths import Mixture, Paths, PathwiseImprovement
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior, scale_signed, standard_deviation, standardise
from ranktune.tuner.gp.replicates import best_replicate
from ranktune.tuner.gp.search import maximise
from ranktune.tuner.gp.trust_region import TrustRegion, side_after

ACQUISITIONS = ("thompson", "ei")
DRAWS = 64
"""Functions that are drawn for one decision."""
MAX_SAMPLED_TRIALS = 150
"""Trials up to which hyperparameters are sampled; beyond, the most probable ones say all, and sampling costs n^3."""
MAX_TRIALS = 400
"""Trials that the model learns from: the better half of them are the best, the others the latest. Its cost is n^3."""
REFERENCE_QUANTILE = 0.25
"""Of several objectives, gains count from where so many of the trials are worse."""
CLOSED_FORM_PROBABILITY = 0.5
"""Probability that Thompson sampling averages over all functions for a decision, where that has a closed form."""
TRUST_REGION_PROBABILITY = 0.5
"""Probability that a decision of Thompson sampling looks in the trust region alone."""
PATIENCE = 4
"""Values in a row that are not better, after which the trust region shrinks; half the parameters if those are more."""
HYPERPARAMETER_SAMPLES = 3
"""Sets of hyperparameters that functions are drawn with, or that the expected improvement is averaged over."""
COST_EXPONENT = 0.3
"""Of the expected cost that improvement is divided by, where costs count: more starves what is dear and best."""
LOCAL_CENTRES = 5
"""Trials around which to look closely, besides the best of each category that switches parameters on."""


@dataclass(frozen=True, eq=False)
class Trials:
    """What has been seen.

    rows (n, d) masked configurations, in the order in which they were tried; gains (n,) finite, larger is better;
    noise (n,) relative noise variances; pending (q, d) configurations at work. more: the gains of further objectives,
    (n,) each. constraints: (n,) each, satisfied where not above 0, NaN where not known. level: what noise is relative
    to, as a variance of gains; 0 where that is not known. extra: (n,), the variance by which the gain of a trial that
    was judged on a part may differ from its gain on the whole, on top of the noise; 0 for the others. seconds: (n,),
    what each trial took, NaN where that is not known.
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
        """Return what there is, or of more than window trials the best half so many and the latest of the others."""
        if len(self.gains) <= window:
            return self
        kept = np.zeros(len(self.gains), dtype=bool)
        if self.is_single_objective:  # of several objectives nobody is the best
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
    """The masked row, (d,), to try next, and what it is expected to gain on the best tried.

    gain: mean improvement of the noise-free objective, in its units; None where there are several objectives, and where
    only the trust region was looked at, whose best says nothing about what is left to gain elsewhere.
    """

    row: Floats
    gain: float | None


def propose(
    encoding: Encoding,
    trials: Trials,
    taken: Collection[bytes],
    generator: np.random.Generator,
    acquisition: str = "thompson",
    draws: int = DRAWS,
    *,
    power: float = 0.0,
    repeats: bool = False,
) -> Proposal:
    """Return what to try next; never one of taken (ranktune.tuner.gp.encoding.keys) if others exist, but for repeats.

    acquisition: "thompson" draws functions; "ei" averages the expected improvement over hyperparameters instead, for
    one objective without constraints, as "thompson" with several draws does in about every other decision. power: of
    the expected cost that improvement is divided by. repeats: of one objective without constraints, propose one of the
    tried again where that is worth more (ranktune.tuner.gp.replicates); the gain is still that of the new one.
    """
    if not encoding.varying:
        return Proposal(encoding.only(), 0.0 if trials.is_single_objective else None)
    trials = trials.within(MAX_TRIALS)
    E, pending = encoding.embed(trials.rows), encoding.embed(trials.pending)
    improvement: ExpectedImprovement | PathwiseImprovement
    closed_form = draws > 1 and trials.is_single_objective and generator.random() < CLOSED_FORM_PROBABILITY
    if acquisition == "ei" or closed_form:
        improvement, worth, posteriors = _expected_improvement(encoding, trials, E, pending, generator)
    else:
        improvement, worth, posteriors = _pathwise_improvement(encoding, trials, E, pending, generator, draws)
    cost = LogCost.of(E, np.broadcast_to(trials.seconds, trials.gains.shape)) if power else None
    acquisition_function: Acquisition = improvement if cost is None else ImprovementPerCost(improvement, cost, power)
    centres = encoding.filled(_local_centres(encoding, trials.rows, worth), generator)
    may = acquisition == "thompson" and trials.is_single_objective and cost is None and not encoding.is_small
    use_trust_region = may and generator.random() < TRUST_REGION_PROBABILITY
    region = _region(encoding, trials.gains, centres[0], posteriors[0]) if use_trust_region else None
    row = maximise(acquisition_function, encoding, centres, taken, generator, region)
    unknown = trials.more or region is not None
    gain = None if unknown else improvement.mean(encoding.embed(row[None]))[0] * standard_deviation(trials.gains)
    if repeats and trials.is_single_objective:
        row = _or_replicate(encoding, trials, posteriors, row)
    return Proposal(row, gain)


def _region(encoding: Encoding, gains: Floats, middle: Floats, posterior: Posterior) -> TrustRegion:
    """Return the trust region around a full row, (d,), after gains, (n,)."""
    side = side_after(gains, max(PATIENCE, len(encoding.varying) // 2))
    return TrustRegion.around(encoding, middle, side, posterior.hyperparameters.weights)


def _or_replicate(encoding: Encoding, trials: Trials, posteriors: Sequence[Posterior], row: Floats) -> Floats:
    """Return row, (d,), or the row of a trial, finished or not, that is worth more if it is made again."""
    rows = np.vstack([trials.rows, trials.pending])
    place = best_replicate(posteriors, encoding.embed(rows), encoding.embed(row[None])[0])
    again: Floats = row if place is None else rows[place]
    return again


def posterior_means(encoding: Encoding, trials: Trials) -> Floats:
    """Return the posterior mean of each trial's gain, (n,), standardised, at the most probable hyperparameters."""
    E, y = encoding.embed(trials.rows), standardise(trials.gains)
    theta = fit(E, trials.gains, trials.noise, encoding.axis_of_column, level=trials.level, extra=trials.extra)
    e = relative_variances(trials.gains, trials.extra)
    return Posterior.of(E, y, trials.noise, Hyperparameters.from_log(theta), encoding.axis_of_column, e).mean(E)


@dataclass(frozen=True, eq=False)
class _Output:
    """One objective or constraint at the trials where it is known: its gains, (n,), and what makes y of them.

    pending  (q, D) what is believed to show what is expected of it
    """

    encoding: Encoding
    E: Floats
    gains: Floats
    noise: Floats
    pending: Floats
    level: float = 0.0
    extra: Floats | float = 0.0
    scaled: Callable[[Floats], Floats] = standardise

    def posteriors(self, count: int, generator: np.random.Generator) -> list[tuple[Posterior, Floats]]:
        """Return posteriors with hyperparameters that are sampled while trials are few, else the most probable.

        Each comes with the y that it was made of, what is believed of the pending ones last.
        """
        E, y, v, axis_of_column = self.E, self.scaled(self.gains), self.noise, self.encoding.axis_of_column
        theta = fit(E, self.gains, v, axis_of_column, self.scaled, self.level, self.extra)
        e, thetas = relative_variances(self.gains, self.extra), [theta]
        if len(y) <= MAX_SAMPLED_TRIALS:
            skipped = 0 if count > 1 else 1  # a single draw takes a second sweep to forget the maximum
            chain = slice_samples(
                HyperparameterDensity(E, y, v, axis_of_column, relative_noise(self.gains, self.level), e),
                theta,
                generator,
            )
            thetas = list(islice(chain, skipped, skipped + count))
        posteriors = [Posterior.of(E, y, v, Hyperparameters.from_log(t), axis_of_column, e) for t in thetas]
        return [posterior.with_fantasies(self.pending, y) for posterior in posteriors]

    def functions(self, draws: int, generator: np.random.Generator) -> tuple[Mixture, Floats]:
        """Return functions drawn of several posteriors, and the expected y of each trial, (n,)."""
        posteriors = self.posteriors(min(HYPERPARAMETER_SAMPLES, draws), generator)
        shares = np.diff(np.linspace(0, draws, len(posteriors) + 1).astype(np.int64)).tolist()
        groups = [Paths.drawn(*some, generator, share) for some, share in zip(posteriors, shares, strict=True)]
        return Mixture(tuple(groups)), np.mean([some.mean(self.E) for some, _ in posteriors], axis=0)


def _expected_improvement(
    encoding: Encoding, trials: Trials, E: Floats, pending: Floats, generator: np.random.Generator
) -> tuple[ExpectedImprovement, Floats, list[Posterior]]:
    """Return the expected improvement, the expected gain of each trial, (n,), and the posteriors after these."""
    seen = _Output(encoding, E, trials.gains, trials.noise, pending, trials.level, trials.extra)
    posteriors = [posterior for posterior, _ in seen.posteriors(HYPERPARAMETER_SAMPLES, generator)]
    improvement = ExpectedImprovement.over(tuple(posteriors), np.vstack([E, pending]))
    return improvement, posteriors[0].mean(E), posteriors


def _pathwise_improvement(
    encoding: Encoding, trials: Trials, E: Floats, pending: Floats, generator: np.random.Generator, draws: int
) -> tuple[PathwiseImprovement, Floats, list[Posterior]]:
    """Return the improvement over draws, how good each trial is believed to be, (n,), and the first's posteriors."""
    objectives, constraints, means = [], [], []
    first = _Output(encoding, E, trials.gains, trials.noise, pending, trials.level, trials.extra)
    for own in (first, *(_Output(encoding, E, gains, trials.noise, pending) for gains in trials.more)):
        functions, mean = own.functions(draws, generator)
        objectives.append(functions)
        means.append(mean)
    for values in trials.constraints:
        known = np.isfinite(values)
        if known.any():
            seen = _Output(encoding, E[known], -values[known], trials.noise[known], pending, scaled=scale_signed)
            constraints.append(seen.functions(draws, generator)[0])
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
    """Return what gains are counted from, given the expected ones of the trials, (o, n), and what the best gain, (o,).

    A point near the front would make its ends worthless, and they would never be looked for.
    """
    reference = np.quantile(means, REFERENCE_QUANTILE, axis=1)
    spans = means.max(axis=1) - reference
    return reference, np.where(spans > 1e-6, spans, 1.0)


def _local_centres(encoding: Encoding, rows: Floats, worth: Floats) -> Floats:
    """Return the trials that are worth most, overall and within each category of a switching axis."""
    order = np.argsort(-worth, kind="stable")
    chosen = order[:LOCAL_CENTRES].tolist()
    for j in range(len(encoding.axes)):
        if encoding.axes[j].choices and j not in encoding.conditional and encoding.conditional:
            for choice in range(encoding.axes[j].choices):
                chosen += order[rows[order, j] == choice][:1].tolist()
    return rows[list(dict.fromkeys(chosen))]
