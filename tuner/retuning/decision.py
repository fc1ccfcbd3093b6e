"""Keep, refit or replace: the incumbent against its configuration fitted anew and against the chosen model.

All are compared by query on queries that none was fitted to: test queries, and validation queries with the values of
models of the other folds. Where times are known, they are later than those that the incumbent was fitted to. The
values of the chosen model, which is the best of many there, are lowered to its estimate. The two comparisons with the
incumbent are one-sided, since it is kept unless one is better, and corrected by Holm's method. Without a significant
gain the incumbent is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.metrics.means import mean_of
from ranktune.tuner.retuning.portfolio import FittedQueryIds
from ranktune.tuner.selection.finals import ScoredRanking
from ranktune.tuner.statistics.comparisons import compare, holm
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.statistics.measured import Comparison, Interval
from ranktune.tuner.study.problem import SplitProblem

KEEP, REFIT, REPLACE = "keep", "refit", "replace"
LEVEL = 0.04
"""Largest p-value of a gain: where nothing moved, equal models are kept on 96 % of days at least."""


@dataclass(frozen=True)
class Contender:
    """A model against the incumbent; p_holm is one-sided, and corrected for the number of contenders."""

    comparison: Comparison
    p_holm: float

    @property
    def is_better(self) -> bool:
        """Whether it is better, with evidence."""
        return self.p_holm <= LEVEL and self.comparison.difference > 0.0

    def as_dict(self) -> Json:
        """Return the comparison and the corrected p-value as JSON."""
        return {**self.comparison.as_dict(), "p_holm": None if math.isnan(self.p_holm) else self.p_holm}


@dataclass(frozen=True)
class RetuneDecision:
    """The decision, and what it rests on.

    means has the mean of the incumbent (keep) and of each contender with its interval; seen are the queries left out
    because the incumbent may know them, or later ones; None where that is not known.
    """

    decision: str
    contenders: Mapping[str, Contender]
    means: Mapping[str, Interval]
    seen: int | None = 0


def decide(
    incumbent: Floats,
    contenders: Mapping[str, Floats],
    generator: np.random.Generator,
    weights: Floats | None = None,
) -> RetuneDecision:
    """Return the decision by values by query, (n,) each, NaN where a query does not count.

    A contender that is better with evidence is taken; of two the one with the larger gain.
    """
    compared = {name: compare(values, incumbent, generator, weights=weights) for name, values in contenders.items()}
    corrected = holm([_one_sided(each) for each in compared.values()])
    judged = {
        name: Contender(each, math.nan if p is None else p)
        for (name, each), p in zip(compared.items(), corrected, strict=True)
    }
    means = {
        name: stratified_interval([each], generator, weights=[weights])
        for name, each in {KEEP: incumbent, **contenders}.items()
    }
    better = [name for name in (REFIT, REPLACE) if name in judged and judged[name].is_better]
    best = max(better, key=lambda name: judged[name].comparison.difference, default=KEEP)
    return RetuneDecision(best, judged, means)


def _one_sided(compared: Comparison) -> float:
    """Return the p-value of a gain by the randomisation test, NaN without a common query."""
    half = 0.5 * compared.p_randomisation
    return half if compared.difference > 0.0 else 1.0 - half


def judged_values(
    scored: ScoredRanking, problem: SplitProblem, metric: str, estimate: Interval | None = None
) -> Floats:
    """Return what a ranking scored on the test queries, then on the validation queries: (n_test + n_vali,).

    The part that it has no values for is NaN. An estimate is the mean that its values by validation are lowered to.
    """
    numbers, candidate = problem.validation, scored.candidate
    tests = np.full(0 if problem.test is None else problem.test.n_queries, np.nan)
    if metric in scored.test:
        tests = scored.test[metric]
    validated, weights = candidate.values, candidate.weights
    if estimate is not None and len(validated):
        validated = validated + min(estimate.mean - mean_of(validated, weights), 0.0)
    if len(validated) == problem.development.n_queries != len(numbers):
        validated = validated[numbers]
    missing = len(validated) != len(numbers)
    return np.concatenate([tests, np.full(len(numbers), np.nan) if missing else validated])


def unseen(problem: SplitProblem, fitted: FittedQueryIds) -> NDArray[np.bool_]:
    """Return which of the test and validation queries may judge the incumbent, (n_test + n_vali,)."""
    parts = [problem.validation_queries] if problem.test is None else [problem.test, problem.validation_queries]
    return np.concatenate([fitted.judge(part) for part in parts])


def judged_weights(problem: SplitProblem) -> Floats | None:
    """Return the weights of the test and validation queries, None where each counts once."""
    tests = 0 if problem.test is None else problem.test.n_queries
    if problem.test_weights is None and problem.validation_weights is None:
        return None
    weights = problem.test_weights, problem.validation_weights
    sizes = tests, len(problem.validation)
    return np.concatenate([np.ones(n) if w is None else w for w, n in zip(weights, sizes, strict=True)])


def verdict_of(
    problem: SplitProblem,
    metric: str,
    incumbent: ScoredRanking,
    contenders: Mapping[str, tuple[ScoredRanking, Interval | None]],
    fitted: FittedQueryIds,
    generator: np.random.Generator,
) -> RetuneDecision:
    """Return the decision on a problem, by the queries that may judge the incumbent."""
    fresh = unseen(problem, fitted)
    values = np.where(fresh, judged_values(incumbent, problem, metric), np.nan)
    others = {name: judged_values(scored, problem, metric, mean) for name, (scored, mean) in contenders.items()}
    found = decide(values, others, generator, judged_weights(problem))
    seen = int(np.count_nonzero(~fresh))
    return replace(found, seen=seen if seen or fitted.comparable(problem.development) else None)
