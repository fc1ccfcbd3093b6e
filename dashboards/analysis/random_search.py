"""What random search is expected to reach where it was not run: by what the optimiser believes after the trials.

b    trials of the budget        c    random configurations        f    functions drawn from the belief
r    imagined runs of random search

A run begins as the study did, with the defaults and the trials that were drawn blindly, and goes on with configurations
drawn at random: each shows what one drawn function says of it, and a trial's noise on top. Luck raises the best of such
values as it raises the best so far of the study, so that the two compare. In simulated studies the mean is somewhat
above what random search reaches: what nobody tried may be good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ranktune.dashboards.analysis.beliefs import observed
from ranktune.dashboards.records.study import SplitData, StudyData, Trial
from ranktune.solvers.core.arrays import Floats

if TYPE_CHECKING:
    from ranktune.tuner.samplers.belief import Belief

FEWEST = 10
"""Trials with a value below which nothing is predicted: it would be the prior that speaks."""
BELIEVED = 100
"""Trials that the belief is made of at most; of several splits half of them."""
CONFIGURATIONS, FUNCTIONS, DEALINGS = 1024, 128, 8
FURTHEST = 2000
"""Trials beyond the known ones that are predicted at most."""
STOPS = 8
"""Values along the parameter whose path one fit follows, from the cheap end to what was drawn."""


@dataclass(frozen=True, eq=False)
class Expected:
    """Of the best after k trials, k = 1, 2, ...: mean, and ends of an interval that holds 90 % of runs, (b,) each.

    NaN before the last trial after which the best of random search is known; there all three are that.
    """

    mean: Floats
    low: Floats
    high: Floats


def expected(data: StudyData, known: Sequence[Floats], budget: int) -> Expected | None:
    """Return what random search reaches after up to budget trials, mean over the splits, each with what is known of it.

    None where nothing is to be predicted or cannot be: random search was run, or too few trials say what to believe.
    """
    ends = [int(np.flatnonzero(np.isfinite(own))[-1]) if np.isfinite(own).any() else -1 for own in known]
    if data.study.sampler == "random" or not ends or min(ends) < 0 or budget <= min(ends) + 1:
        return None
    budget = min(budget, min(ends) + 1 + FURTHEST)
    most = BELIEVED if len(known) == 1 else BELIEVED // 2
    total = np.zeros((FUNCTIONS * DEALINGS, budget))
    for k, (split, own, end) in enumerate(zip(data.splits, known, ends, strict=True)):
        generator = np.random.default_rng([data.study.seed, k])
        ahead = _ahead(data, split, float(own[end]), budget - end - 1, most, generator)
        if ahead is None:
            return None
        total[:, : end + 1] += own[: min(end + 1, budget)]
        total[:, end + 1 :] += ahead
    total /= len(known)
    total[:, : min(ends)] = np.nan
    begin = total[0, min(ends)]  # the same in all runs: so their mean is, to the last bit
    low, high = np.quantile(total, (0.05, 0.95), axis=0)
    return Expected(begin + (total - begin).mean(axis=0), low, high)


def _ahead(
    data: StudyData, split: SplitData, reached: float, count: int, most: int, generator: np.random.Generator
) -> Floats | None:
    """Return the best after each of count further random trials, (r, count), None where nothing can be believed."""
    from ranktune.tuner.samplers.belief import (
        fit_belief,  # the Gaussian process, for studies that have something to believe
    )

    trials = [trial for trial in split.trials if trial.solver in data.solvers]
    if sum(trial.value is not None for trial in trials) < FEWEST:
        return None
    if count <= 0:
        return np.zeros((FUNCTIONS * DEALINGS, 0))
    seen = [one.seen for one in observed((trial, trial.value) for trial in trials)]
    belief = fit_belief(data.study.union_space(), seen, most)
    if belief is None or not belief.spread > 1e-12 * max(1.0, abs(belief.centre)):
        return None
    values = shown(belief, stops(trials), max(CONFIGURATIONS, count), generator)
    runs = dealt(values, count, belief.noise_sd, generator)
    return np.maximum(runs, reached) if np.isfinite(runs).all() else None


def stops(trials: Sequence[Trial]) -> dict[str, bool]:
    """Return whether the path rises, by flat name of the parameter along which most trials of a solver followed one."""
    found = {}
    for solver in {trial.solver for trial in trials}:
        judged = [trial for trial in trials if trial.solver == solver and trial.value is not None]
        paths = [trial for trial in judged if len(trial.path) > 1]
        if 2 * len(paths) > len(judged):
            last = paths[-1]
            found[f"{solver}.{last.path_parameter}"] = last.path[-1][0] > last.path[0][0]
    return found


def shown(belief: Belief, along: Mapping[str, bool], count: int, generator: np.random.Generator) -> Floats:
    """Return what functions drawn from the belief say of random configurations without noise, (c, f).

    Every solver is as likely, and every value of its parameters. Where one fit shows all values on the way to the one
    that was drawn, the best of some of them counts, as in the study.
    """
    encoding = belief.encoding
    rows = encoding.masked(encoding.from_unit(generator.random((count, len(encoding.axes)))))
    places = {belief.axis(name): rises for name, rises in along.items() if name in belief.space.distributions}
    follows = np.full(count, -1)
    for j in places:
        follows[~np.isnan(rows[:, j])] = j
    owner = np.repeat(np.arange(count), np.where(follows >= 0, STOPS, 1))
    first = np.searchsorted(owner, np.arange(count))
    rows, share = rows[owner], (np.arange(len(owner)) - first[owner] + 1) / STOPS
    for j, rises in places.items():
        own = follows[owner] == j
        drawn = rows[own, j]
        rows[own, j] = drawn * share[own] if rises else 1.0 - (1.0 - drawn) * share[own]
    return np.asarray(np.maximum.reduceat(belief.draws(rows, FUNCTIONS, generator, levelled=True).T, first, axis=0))


def dealt(values: Floats, count: int, noise: float, generator: np.random.Generator) -> Floats:
    """Return the best of the first k of count configurations, k = 1, 2, ..., for each function and dealing, (r, count).

    values (c, f); noise is the standard deviation of a trial.
    """
    runs = []
    for _ in range(DEALINGS):
        order, luck = generator.permutation(len(values)), generator.standard_normal(values.shape)
        runs.append(np.maximum.accumulate(values[order[:count]] + noise * luck[:count], axis=0).T)
    return np.concatenate(runs)
