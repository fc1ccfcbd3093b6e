"""The proposal of the next configuration from the finished trials, in arrays and without Optuna.

thompson    One set of hyperparameters is drawn from their posterior, and one sample path from the posterior given them
            and the finished trials. The configuration that maximises the path is proposed, without regard to its cost.
            With several objectives there is a path of each, and one random direction in which they are weighed.
ei          The expected improvement in closed form (ranktune.tuner.gp.acquisition), averaged over a few sets of
            hyperparameters.
mixed       For one objective without constraints, at random either that or the mean of AVERAGED_DRAWS sample paths with
            the same hyperparameters; a share of the decisions is restricted to the trust region
            (ranktune.tuner.gp.acquisition). Where categories decide which parameters are active, the maximiser of a
            single path chooses these, its branch, within which the mean is maximised. Else the mean improvement over
            DRAWS paths (ranktune.tuner.gp.paths).

A single path explores more than short studies can afford: it varies by the posterior standard deviation, the mean of 16
by a quarter of that. But that stays in the branch of which most is known, and another may be better. More than
MAX_SAMPLED_TRIALS trials have the most probable hyperparameters.

But for thompson, running trials count with their posterior mean as value. A value drawn for each path instead leaves
only improbable improvements: the more trials ran at a time, the fewer good regions were explored. thompson needs no
such values, since its paths differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.gp.acquisition import (
    Acquisition,
    ExpectedImprovement,
    ImprovementPerCost,
    LogCost,
    TrustRegion,
    share_after,
    side_after,
    tie_margin,
)
from ranktune.tuner.gp.encoding import SpaceEncoding
from ranktune.tuner.gp.hyperparameters import FittedTrials, Scaled, relative_variances
from ranktune.tuner.gp.paths import PathMixture, Paths, PathwiseImprovement, reference_point
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior, scale_signed, standard_deviation, standardise
from ranktune.tuner.gp.search import maximise

THOMPSON, EI, MIXED = "thompson", "ei", "mixed"
ACQUISITIONS = (MIXED, THOMPSON, EI)
DRAW, IMPROVEMENT, MEAN = "draw", "improvement", "mean of draws"
"""What a suggestion maximises: a single sample path, an expected improvement, or the mean of several paths."""
DRAWS, AVERAGED_DRAWS = 64, 16
"""Sample paths of one decision of "mixed": those whose improvements are averaged, and those that are themselves."""
MAX_SAMPLED_TRIALS = 150
"""Trials up to which hyperparameters are sampled; beyond, the MAP estimate suffices, as sampling costs n^3."""
MAX_TRIALS = 400
"""Trials that the model uses: half of them the best, the others the latest. Its cost is n^3."""
CLOSED_FORM_PROBABILITY = 0.5
"""Probability that a decision of "mixed" uses the expected improvement in closed form."""
PATIENCE = 4
"""Failures in a row after which the trust region shrinks; half the number of parameters if that is more."""
HYPERPARAMETER_SAMPLES = 3
"""Sets of hyperparameters of one decision."""
HYPERPARAMETER_SAMPLES_OF_MEANS = 12
"""Sets of hyperparameters over which the posterior means of finished trials are averaged."""
COST_EXPONENT = 0.3
"""Exponent of the expected cost by which improvement is divided; more neglects expensive good configurations."""
LOCAL_CENTRES = 5
"""Trials with candidates around them, besides the best of each category that activates parameters."""


@dataclass(frozen=True, eq=False)
class ObservedTrials:
    """The trials so far.

    rows         (n, d) masked configurations, in the order in which they were tried
    gains        (n,) finite, larger is better; more: those of further objectives, (n,) each
    noise        (n,) relative noise variances
    pending      (q, d) running configurations
    constraints  (n,) each, satisfied where not above 0, NaN where unknown
    extra        (n,) additional noise variance of trials that were evaluated on a part of the plan
    seconds      (n,) cost of each trial, NaN where unknown
    whole        all trials, where these are some of them: the hyperparameters are fitted to all
    """

    rows: Floats
    gains: Floats
    noise: Floats
    pending: Floats
    more: tuple[Floats, ...] = ()
    constraints: tuple[Floats, ...] = ()
    extra: Floats | float = 0.0
    seconds: Floats | float = np.nan
    whole: ObservedTrials | None = None

    @property
    def is_single_objective(self) -> bool:
        """Whether there is one objective, and no constraint."""
        return not self.more and not self.constraints

    def within(self, most: int) -> ObservedTrials:
        """Return at most that many trials: half of them the best that keep the constraints, the others the latest."""
        if len(self.gains) <= most:
            return self
        return replace(self.chosen(self.window(most, self.allowed)), whole=self)

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Which trials keep the constraints, (n,); a value that is unknown violates none."""
        return np.asarray(~np.any([values > 0.0 for values in (np.zeros_like(self.gains), *self.constraints)], axis=0))

    def window(self, most: int, eligible: NDArray[np.bool_]) -> Ints:
        """Return rising places of at most that many trials: half of them the best eligible ones, the others the latest.

        Several objectives have no best.
        """
        if len(self.gains) <= most:
            return np.arange(len(self.gains))
        inside = np.zeros(len(self.gains), dtype=bool)
        if not self.more and eligible.any():
            inside[np.argsort(-np.where(eligible, self.gains, -np.inf), kind="stable")[: most // 2]] = True
        inside[np.flatnonzero(~inside)[-(most - np.count_nonzero(inside)) :]] = True
        return np.flatnonzero(inside)

    def chosen(self, places: Ints) -> ObservedTrials:
        """Return the trials at those places."""
        return replace(
            self,
            rows=self.rows[places],
            gains=self.gains[places],
            noise=self.noise[places],
            more=tuple(values[places] for values in self.more),
            constraints=tuple(values[places] for values in self.constraints),
            extra=np.broadcast_to(self.extra, self.gains.shape)[places],
            seconds=np.broadcast_to(self.seconds, self.gains.shape)[places],
        )


@dataclass(frozen=True, eq=False)
class Proposal:
    """The masked row, (d,), to try next, and its expected improvement over the incumbent.

    full: the row with a value for every parameter, also for those that are inactive as far as is known.
    origin: which function it maximises, DRAW, IMPROVEMENT or MEAN
    gain: of the noise-free objective, in its units; None with several objectives or constraints.
    widely: whether it is the best of the whole space, so that its gain bounds what can be gained.
    """

    row: Floats
    full: Floats
    origin: str
    gain: float | None
    widely: bool = True


def propose(
    encoding: SpaceEncoding,
    trials: ObservedTrials,
    tried: Floats | None,
    generator: np.random.Generator,
    acquisition: str = MIXED,
    *,
    power: float = 0.0,
) -> Proposal:
    """Return the configuration to try next: none of tried (ranktune.tuner.gp.encoding.covered) if others exist.

    acquisition: one of ACQUISITIONS; "ei" for one objective without constraints. power: exponent of the expected cost
    by which improvement is divided, not a draw.
    """
    if not encoding.varying:
        only = encoding.only()
        return Proposal(only, only, IMPROVEMENT, 0.0 if trials.is_single_objective else None)
    trials = trials.within(MAX_TRIALS)
    decision = decide(encoding, trials, generator, acquisition, power=power)
    centres, region = _centres(encoding, trials, decision.merits, generator), None
    if acquisition == MIXED and trials.is_single_objective and not encoding.is_small:
        centres, region = _sought(encoding, trials, decision, centres, tried, generator)
    full = maximise(decision.function, encoding, centres, tried, generator, region)
    row = encoding.masked(full[None])[0]
    gain = None
    if trials.is_single_objective:
        improvement = ExpectedImprovement.over(decision.posteriors, encoding.embed(trials.rows))
        gain = float(improvement.mean(encoding.embed(row[None]))[0] * standard_deviation(trials.gains))
    return Proposal(row, full, decision.origin, gain, region is None)


def _sought(
    encoding: SpaceEncoding,
    trials: ObservedTrials,
    decision: ProposalRule,
    centres: Floats,
    tried: Floats | None,
    generator: np.random.Generator,
) -> tuple[Floats, TrustRegion | None]:
    """Return the centres, full rows, and the region of the space where "mixed" looks; None where it is all of it."""
    region = None
    if decision.origin == MEAN and encoding.branching.any():
        draw = decide(encoding, trials, generator, THOMPSON)
        drawn = maximise(draw.function, encoding, centres, tried, generator, rounds=1)  # its branch is all that counts
        region = TrustRegion.around(encoding, drawn)
        inside = (trials.rows[:, region.fixed] == drawn[region.fixed]).all(axis=1)
        if not inside.any():
            return drawn[None], region
        centres = _centres(encoding, trials.chosen(np.flatnonzero(inside)), decision.merits[inside], generator)
    if generator.random() >= share_after(encoding, trials.rows, trials.gains):
        return centres, region
    side = side_after(trials.gains, max(PATIENCE, len(encoding.varying) // 2))
    weights = decision.posteriors[0].hyperparameters.weights
    return centres, TrustRegion.around(encoding, centres[0], side, weights)


@dataclass(frozen=True, eq=False)
class ProposalRule:
    """What a decision maximises.

    origin       DRAW, IMPROVEMENT or MEAN
    function     the log of the improvement, divided by a power of the cost where that counts
    merits       (n,) the merit of each trial
    posteriors   those of the first objective, one for each set of hyperparameters; thetas: those that were known
    """

    origin: str
    function: Acquisition
    merits: Floats
    posteriors: list[Posterior]
    thetas: Floats


def decide(
    encoding: SpaceEncoding,
    trials: ObservedTrials,
    generator: np.random.Generator,
    acquisition: str = MIXED,
    *,
    power: float = 0.0,
    thetas: Floats | None = None,
) -> ProposalRule:
    """Return what `propose` maximises; thetas: as in ProposalRule, None samples them.

    With one objective and no constraints, that of "thompson" increases in objectives[0], the only sample path.
    """
    single = trials.is_single_objective
    origin = DRAW if acquisition == THOMPSON else IMPROVEMENT
    if acquisition == MIXED and single and generator.random() >= CLOSED_FORM_PROBABILITY:
        origin = MEAN
    pending = None if origin == DRAW else encoding.embed(trials.pending)
    output = replace(_Output.of(encoding, trials, pending), thetas=thetas)
    improvement: Acquisition
    if origin == IMPROVEMENT and single:
        improvement, merits, posteriors = _expected_improvement(trials, output, generator)
    else:
        draws = {DRAW: 1, MEAN: AVERAGED_DRAWS}.get(origin, DRAWS)
        improvement, merits, posteriors = _pathwise_improvement(trials, output, generator, draws, origin == MEAN)
    counts = power and origin != DRAW
    cost = LogCost.of(output.E, np.broadcast_to(trials.seconds, trials.gains.shape)) if counts else None
    function: Acquisition = improvement if cost is None else ImprovementPerCost(improvement, cost, power)
    return ProposalRule(origin, function, merits, posteriors, output.samples)


def posterior_means(encoding: SpaceEncoding, trials: ObservedTrials) -> Floats:
    """Return the posterior mean of each trial's standardised gain, (n,), averaged over hyperparameters."""
    output = _Output.of(encoding, trials)
    posteriors = output.posteriors(HYPERPARAMETER_SAMPLES_OF_MEANS, np.random.default_rng(0))  # always the same
    means: Floats = np.mean([posterior.means for posterior in posteriors], axis=0)
    return means


@dataclass(frozen=True, eq=False)
class _Output:
    """One objective or constraint at the trials where it is known; scaled maps its gains, (n,), to y.

    The hyperparameters are thetas, where these are known, else fitted to whole, where there are more trials than these.
    """

    encoding: SpaceEncoding
    E: Floats
    gains: Floats
    noise: Floats
    pending: Floats
    extra: Floats | float = 0.0
    scaled: Scaled = standardise
    thetas: Floats | None = None
    whole: _Output | None = None

    @classmethod
    def of(cls, encoding: SpaceEncoding, trials: ObservedTrials, pending: Floats | None = None) -> Self:
        """Return the first objective of trials, with pending, (q, D)."""
        E, whole = encoding.embed(trials.rows), None if trials.whole is None else cls.of(encoding, trials.whole)
        pending = E[:0] if pending is None else pending
        return cls(encoding, E, trials.gains, trials.noise, pending, trials.extra, whole=whole)

    def of_values(self, gains: Floats, whole: Floats | None, scaled: Scaled = standardise) -> Self:
        """Return another objective of the same trials, or a constraint, at those where it is known."""
        present = ~np.isnan(gains)
        all_of = None if self.whole is None or whole is None else self.whole.of_values(whole, None, scaled)
        return replace(
            self, E=self.E[present], gains=gains[present], noise=self.noise[present], extra=0.0, scaled=scaled,
            thetas=None, whole=all_of,
        )  # fmt: skip

    @cached_property
    def y(self) -> Floats:
        """The scaled gains, (n,)."""
        return self.scaled(self.gains)

    @cached_property
    def e(self) -> Floats:
        """The additional noise variances, (n,), in units of y."""
        return relative_variances(self.gains, self.extra)

    @cached_property
    def samples(self) -> Floats:
        """Sets of hyperparameters, (k, d + 2): those given, if any, else samples, or the fitted ones of many trials."""
        if self.thetas is not None:
            return self.thetas
        if self.whole is not None:
            return self.whole.samples
        columns = self.encoding.axis_of_column
        observed = FittedTrials(self.E, self.gains, self.noise, columns, self.scaled, self.extra)
        return observed.samples() if len(self.y) <= MAX_SAMPLED_TRIALS else observed.fit()[None]

    def posteriors(self, count: int, generator: np.random.Generator) -> list[Posterior]:
        """Return posteriors, fantasies last, of at most count sets of hyperparameters."""
        places = generator.permutation(len(self.samples))[:count]
        drawn = [Hyperparameters.from_log(theta) for theta in self.samples[places]]
        columns = self.encoding.axis_of_column
        fitted = [Posterior.of(self.E, self.y, self.noise, each, columns, self.e) for each in drawn]
        return [posterior.with_fantasies(self.pending) for posterior in fitted]

    def functions(
        self, draws: int, generator: np.random.Generator, averages: bool = False
    ) -> tuple[PathMixture, Floats]:
        """Return paths of several posteriors, or the mean of those of one, and the mean y of each trial, (n,)."""
        posteriors = self.posteriors(1 if averages else min(HYPERPARAMETER_SAMPLES, draws), generator)
        shares = np.diff(np.linspace(0, draws, len(posteriors) + 1).astype(np.int64)).tolist()
        groups = [Paths.drawn(some, generator, share) for some, share in zip(posteriors, shares, strict=True)]
        groups = [group.averaged() for group in groups] if averages else groups
        return PathMixture(tuple(groups)), np.mean([some.means[: len(self.E)] for some in posteriors], axis=0)


def _expected_improvement(
    trials: ObservedTrials, output: _Output, generator: np.random.Generator
) -> tuple[ExpectedImprovement, Floats, list[Posterior]]:
    """Return the closed-form acquisition function, the mean gain of each trial, (n,), and the posteriors."""
    posteriors = output.posteriors(HYPERPARAMETER_SAMPLES, generator)
    tried, margin = np.vstack([output.E, output.pending]), tie_margin(trials.gains)
    improvement = ExpectedImprovement.over(posteriors, tried, margin)
    return improvement, posteriors[0].means[: len(output.E)], posteriors


def _pathwise_improvement(
    trials: ObservedTrials, first: _Output, generator: np.random.Generator, draws: int, averages: bool = False
) -> tuple[PathwiseImprovement, Floats, list[Posterior]]:
    """Return the Monte Carlo acquisition function, each trial's merit, (n,), and the first objective's posteriors."""
    whole = trials if trials.whole is None else trials.whole
    more = zip(trials.more, whole.more, strict=True)
    outputs = (first, *(first.of_values(gains, every) for gains, every in more))
    objectives, means = zip(*(output.functions(draws, generator, averages) for output in outputs), strict=True)
    constraints = []
    for values, every in zip(trials.constraints, whole.constraints, strict=True):
        if not np.isnan(values).all():
            constraints.append(first.of_values(-values, -every, scale_signed).functions(draws, generator)[0])
    reference, spans = reference_point(np.array(means), trials.allowed if trials.constraints else None)
    tried = None if trials.is_single_objective else np.vstack([first.E, first.pending])
    margin = 0.0 if trials.more else tie_margin(trials.gains)
    acquisition_function = PathwiseImprovement.over(objectives, constraints, tried, reference, spans, generator, margin)
    posteriors = [group.posterior for group in objectives[0].groups]
    if trials.is_single_objective:
        return acquisition_function, means[0], posteriors
    scores = acquisition_function.scores(first.E)
    wins = np.bincount(scores.argmax(axis=0), minlength=len(scores))
    return acquisition_function, wins + 1e-3 * scores.mean(axis=1), posteriors


def _centres(encoding: SpaceEncoding, trials: ObservedTrials, merits: Floats, generator: np.random.Generator) -> Floats:
    """Return the trials of highest merit, overall and within each category that always decides, as full rows.

    Of trials with equal gains, as on a plateau around the best, only one is returned.
    """
    rows, order = trials.rows, np.argsort(-merits, kind="stable")
    if not trials.more:
        _, first = np.unique(trials.gains[order], return_index=True)
        distinct = order[np.sort(first)]
    else:
        distinct = order
    chosen = distinct[:LOCAL_CENTRES].tolist()
    for j in set(np.flatnonzero(encoding.branching).tolist()) - encoding.activity.conditional:
        for choice in range(encoding.axes[j].choices):
            chosen += order[rows[order, j] == choice][:1].tolist()
    return encoding.filled(rows[list(dict.fromkeys(chosen))], generator)
