"""Time to an equal objective: RankSVM beside general solvers of the same problem.

The problem is 1/2 w'w + C sum over pairs max(0, 1 - (s_i - s_j))^2. liblinear, that of scikit-learn's LinearSVC, solves
it on the differences of all pairs, as without a solver for ranking; the time to compute the differences counts. Each
method runs with tolerances from wide to narrow; a line is the shortest run whose objective is above the lowest of all
runs by at most so large a share.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ranktune.solvers import RankSVM
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, take_turns
from ranktune.studies.papers.figures.ranksvm import objective, two_classes

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Tolerances of the stopping rule of each method."""
GAPS = (1e-2, 1e-4, 1e-6)
"""Shares by which an objective is above the lowest."""
OURS = "RankSVM"


@dataclass(frozen=True)
class ReachedObjective:
    """What a method reached with a tolerance: the median of its seconds, and the objective of its weights."""

    method: str
    seconds: float
    objective: float


def by_ranksvm(queries: Queries, C: float, tolerance: float) -> Floats:
    """Return the weights of RankSVM, which makes no differences."""
    ranker = RankSVM(C=C, scaling="none", average="none", tol=tolerance, max_iterations=1000).fit(queries)
    return np.asarray(ranker.coef_, dtype=np.float64)


def by_liblinear(queries: Queries, C: float, tolerance: float, *, dual: bool = False) -> Floats:
    """Return the weights of liblinear on the differences, every second with its sign changed: for two classes."""
    D, signs = two_classes(queries)
    model = LinearSVC(C=C, dual=dual, fit_intercept=False, tol=tolerance, max_iter=1000, random_state=0).fit(D, signs)
    return np.asarray(model.coef_[0])


METHODS: Mapping[str, Callable[[Queries, float, float], Floats]] = {
    OURS: by_ranksvm,
    "liblinear, Newton, all pairs": by_liblinear,
    "liblinear, dual, all pairs": partial(by_liblinear, dual=True),
}


def measure(queries: Queries, C: float, tolerances: Sequence[float], repeats: int) -> list[ReachedObjective]:
    """Return what each method reached with each tolerance; the methods take turns."""
    reached = []
    for tolerance in tolerances:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            turns = take_turns(
                {name: partial(method, queries, C, tolerance) for name, method in METHODS.items()}, repeats
            )
        reached += [
            ReachedObjective(name, turns.median(name), objective(queries, w, C, power=2))
            for name, w in turns.values.items()
        ]
    return reached


def main(
    queries: int = 25,
    penalty: list[float] | None = None,
    repeats: int = 1,
) -> list[BenchmarkTable]:
    """Compare the seconds until solvers of one problem reach an equal objective.

    Parameters
    ----------
    queries : int
        Queries, of about 120 documents and 136 features.
    penalty : list of float, --C
        Weight of the loss. Repeatable. (default: 0.0001 and 0.01)
    repeats : int
        Turns of each.
    """
    data = many_queries(queries, 11)
    n_pairs = round(Judgements.of(data).pairs().sum())
    tables = []
    for C in penalty or (1e-4, 1e-2):
        runs = measure(data, C, TOLERANCES, repeats)
        lowest = min(run.objective for run in runs)
        title = f"Seconds to the lowest objective, C = {C:g}: {data.n_documents:,} documents, {n_pairs:,} pairs"
        tables.append(BenchmarkTable(title, [_row(name, runs, lowest) for name in METHODS]))
    return tables


def _row(name: str, runs: Sequence[ReachedObjective], lowest: float) -> Row:
    of_method, of_ranktune = ([_shortest(each, runs, lowest * (1.0 + gap)) for gap in GAPS] for each in (name, OURS))
    seconds = {f"to {gap:g}": shortest for gap, shortest in zip(GAPS, of_method, strict=True)}
    ratio = of_method[1] / of_ranktune[1] if of_method[1] is not None and of_ranktune[1] is not None else None
    return {"method": name, **seconds, f"times ours, to {GAPS[1]:g}": ratio}


def _shortest(method: str, runs: Sequence[ReachedObjective], at_most: float) -> float | None:
    """Return the seconds of the shortest run of a method whose objective is low enough; None where there is none."""
    return min((run.seconds for run in runs if run.method == method and run.objective <= at_most), default=None)
