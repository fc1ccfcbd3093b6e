"""Racing: a trial is stopped part by part of its plan, once it is significantly worse than the incumbent.

A stopped trial is unlikely to have won in full. Queries are dealt into folds at random, and orders
are drawn; so the mean paired difference on the units that are known estimates that on all units, the more precisely
the fewer are missing. Each look tests it at an equal share of a level. A trial that would have won is therefore stopped
with a probability of at most that level, whatever the incumbent is and however it was selected.

values, incumbent (n,) what the trial and the incumbent scored, by unit: a query, or an order of all queries. NaN where
a unit is not known yet, or is skipped by the metric.
weights           (n,) how often each query counts, None if each counts once. A weighted mean has the standard error of
the linearised differences, and the degrees of freedom of the effective number of queries
(`ranktune.solvers.metrics.means`); orders have no weights.

A trial is stopped at its time limit too. Which limit it has, and whether an expensive one is raced, is decided when it
begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import effective_count, linearised
from ranktune.tuner.policy.actions import SearchState
from ranktune.tuner.policy.policy import POLICY, Race

MIN_ORDERS = 3
"""Orders that must differ before they are tested; each is a mean itself, and two have one degree of freedom."""


def is_significantly_worse(
    values: Floats,
    incumbent: Floats,
    looks: int,
    *,
    whole: int = 0,
    weights: Floats | None = None,
    race: Race = POLICY.race,
) -> bool:
    """Return whether a trial is significantly worse at one of `looks` looks; never once all units are known.

    `whole` is the number of all units, by default those of the incumbent. The test is a one-sided paired t-test with
    the correction for drawing without replacement from a finite population. Source: Cochran 1977, Sampling Techniques,
    chapter 2; level / looks each: Bonferroni.
    """
    scored = ~np.isnan(values) & ~np.isnan(incumbent)
    whole = whole or int(np.count_nonzero(~np.isnan(incumbent)))
    counts = None if weights is None else weights[scored]
    known = values[scored] - incumbent[scored]
    return len(known) < whole and _is_below(known, counts, race.level / looks, race.min_queries, whole)


class GrowthRace:
    """Stops boosting on a given split that cannot become as good as the incumbent.

    It looks when the rounds have doubled. What a metric gains from one doubling to the next becomes less, as a rule,
    once the model is past `Race.first_steps` of the full length, so that small learning rates are looked at later. So
    the last gain, for each doubling that is left, bounds the further gain. A fit is lost if it is significantly worse
    even with that, paired by query, at an equal share of the level for each look.
    """

    def __init__(
        self, incumbent: Floats | None, bound: int, rate: float, weights: Floats | None = None, race: Race = POLICY.race
    ) -> None:
        self._incumbent, self._bound, self._weights, self._race = incumbent, bound, weights, race
        self._rounds, self._last = int(np.ceil(race.first_steps / rate)), float("nan")
        self._level = race.level / max(int(np.log2(max(bound / self._rounds, 1.0))), 1)

    def is_look(self, rounds: int) -> bool:
        """Return whether to look after that many rounds."""
        return self._incumbent is not None and self._rounds <= rounds < self._bound

    def is_lost(self, values: Floats) -> bool:
        """Return whether a fit that scored values by query, (n,), after the rounds of this look is lost."""
        assert self._incumbent is not None
        left, before = np.log2(self._bound / self._rounds), self._last
        self._rounds, self._last = 2 * self._rounds, float(np.nanmean(linearised(values, self._weights)))
        if np.isnan(before):
            return False
        difference = values + max(self._last - before, 0.0) * left - self._incumbent
        scored = ~np.isnan(difference)
        counts = None if self._weights is None else self._weights[scored]
        return _is_below(difference[scored], counts, self._level, self._race.min_queries)


def _is_below(difference: Floats, weights: Floats | None, level: float, least: int, whole: float = math.inf) -> bool:
    """Return whether the mean difference over whole units, of which (n,) are known, is significantly below 0.

    Two at least are known, and so many differ.
    """
    if len(difference) < 2 or effective_count(difference != 0.0, weights) < least:
        return False
    degrees = effective_count(np.full(len(difference), True), weights) - 1.0
    linear = linearised(difference, weights)
    return bool(linear.mean() < -t_quantile(level, degrees) * partial_error(linear, whole))


def partial_error(difference: Floats, whole: float) -> float:
    """Return the standard error of the mean over whole units, estimated by the n > 1 of them in difference, (n,)."""
    n = len(difference)
    return float(np.sqrt(difference.var(ddof=1) / n * (1.0 - n / whole)))


@dataclass(frozen=True)
class FullValueEstimate:
    """What a stopped trial would have scored in full, and the variance of this estimate."""

    value: float
    variance: float


def estimate_in_full(values: Floats, incumbent: Floats, weights: Floats | None = None) -> FullValueEstimate:
    """Return what a stopped trial would have scored in full.

    The incumbent's scores show how hard the known units are; the plain mean over few units is mostly that.
    """
    scored = ~np.isnan(values) & ~np.isnan(incumbent)
    difference = linearised(values[scored] - incumbent[scored], None if weights is None else weights[scored])
    whole = int(np.count_nonzero(~np.isnan(incumbent)))
    error = partial_error(difference, whole) if len(difference) > 1 else float("nan")
    return FullValueEstimate(float(np.nanmean(linearised(incumbent, weights)) + difference.mean()), error**2)


def still_racing(
    path: Sequence[Floats],
    best: int,
    incumbent: Floats | None,
    looks: int,
    weights: Floats | None = None,
    race: Race = POLICY.race,
) -> int:
    """Return how many values of a path remain: up to the last that is worse than neither the incumbent nor the best.

    None remains where all are significantly worse than the incumbent. Without an incumbent, the best remains.
    """
    whole = len(path[best]) if incumbent is None else int(np.count_nonzero(~np.isnan(incumbent)))
    for count in range(len(path), 0, -1):
        values = path[count - 1]
        rivals = [path[best]] if incumbent is None else [incumbent, path[best]]
        if not any(
            is_significantly_worse(values, rival, looks, whole=whole, weights=weights, race=race) for rival in rivals
        ):
            return count
    return 0


@lru_cache(maxsize=4096)
def t_quantile(level: float, degrees: float) -> float:
    """Return the upper quantile of the t-distribution that is exceeded with the probability level."""
    from scipy.special import stdtrit  # scipy.stats takes a third of a second to import

    return float(-stdtrit(degrees, level))


def can_be_cut(state: SearchState, solver: str) -> bool:
    """Return whether a trial of a solver counts with the rounds that it has where its limit ends it."""
    return state.is_cut and solver in state.boosting


def time_limit(state: SearchState, solver: str, left: float, jobs: int) -> float:
    """Return the seconds that a trial may take of those left for trials.

    The first configurations of boosting that have not finished get their shares, as far as there is time for a whole
    fit of each: another kind of trees gains more than the last rounds of one.
    """
    if left == math.inf or solver not in state.boosting:
        return left
    fits = int(min(left * jobs / state.fit_seconds, 1 + state.to_grow)) if state.fit_seconds > 0.0 else 1
    return min(left, left * jobs / max(fits, 1))
