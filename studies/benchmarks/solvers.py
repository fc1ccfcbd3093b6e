"""Training time of each solver beside a peer from another library, in one run.

A line holds medians of processor seconds and the median of the ratios of each turn. Fits are whole calls of fit, with
their checks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.registry import make
from ranktune.studies.benchmarks.cases import case, many_queries
from ranktune.studies.benchmarks.tables import BenchmarkTable, Clock, Row, Work, judged, take_turns


@dataclass(frozen=True)
class TimedComparison:
    """The work of RankTune and that of a peer, with what is wanted of the ratio of times and of our seconds."""

    what: str
    ours: Work
    beside: str
    theirs: Work
    wanted: str = ""
    clock: Clock = time.process_time

    def row(self, repeats: int) -> Row:
        """Return the line of so many turns."""
        turns = take_turns({"ours": self.ours, "theirs": self.theirs}, repeats, self.clock)
        row: Row = {
            "what": self.what, "beside": self.beside, "ours s": turns.median("ours"),
            "theirs s": turns.median("theirs"), "ratio": turns.ratio("ours", "theirs"),
        }  # fmt: skip
        return judged(row, self.wanted)


@lru_cache(maxsize=3)
def data(name: str) -> Queries:
    """Return a case, kept for the lines that follow."""
    return case(name)


def fit(name: str, queries: Queries, **parameters: Value) -> Work:
    """Return the work of fitting a solver."""
    return lambda: make(name, parameters, seed=0).fit(queries)


def rank_svm(queries: Queries, **parameters: Value) -> Work:
    """Return the work of fitting RankSVM as its paper has it: the sum over all pairs, features as they are."""
    return fit("RankSVM", queries, C=1.0, scaling="none", average="none", **parameters)


def rank_svm_dense() -> Iterator[TimedComparison]:
    """Compare RankSVM with least squares on the grades."""
    a = data("a")
    ridge = partial(Ridge().fit, a.features, a.grades)
    yield TimedComparison("RankSVM C=1, case a", rank_svm(a), "sklearn Ridge", ridge, "ratio <= 0.9, ours s <= 0.06")


def rank_svm_like(case: str, ratio: float) -> Iterator[TimedComparison]:
    """Compare a case of half a million grades (c) or of 100,000 sparse features (d) with one of 5 grades, dense."""
    ours, dense = rank_svm(data(case)), rank_svm(data("a"))
    yield TimedComparison(f"RankSVM C=1, case {case}", ours, "RankSVM C=1, case a", dense, f"ratio <= {ratio:g}")


CS = tuple(np.logspace(-4, 2, 20).tolist())


def _paths(*parts: Queries) -> Work:
    """Return the work of fitting all CS on each of the parts."""
    ranker = RankSVM(scaling="standard", average="pairs")
    return lambda: [list(ranker.fit_path(part, CS)) for part in parts]


def rank_svm_path() -> Iterator[TimedComparison]:
    """Compare the path of 20 C with one fit."""
    queries = data("as")
    single = fit("RankSVM", queries, C=CS[10], scaling="standard", average="pairs")
    yield TimedComparison("RankSVM 20 C, case as", _paths(queries), "one fit", single, "ratio <= 6")


def rank_svm_folds() -> Iterator[TimedComparison]:
    """Compare the paths of 20 C on five folds with one fit on all queries."""
    queries = data("a")
    fold = np.arange(queries.n_queries) % 5
    parts = [queries.select(np.flatnonzero(fold != k)) for k in range(5)]
    single = fit("RankSVM", queries, C=CS[10], scaling="standard", average="pairs")
    yield TimedComparison("RankSVM 20 C x 5 folds, case a", _paths(*parts), "one fit", single, "ratio <= 15")


def rank_svm_threads() -> Iterator[TimedComparison]:
    """Compare two threads with one, by the clock on the wall."""
    a = data("a")
    two, what = rank_svm(a, threads=2), "RankSVM C=1, case a, 2 threads (wall)"
    yield TimedComparison(what, two, "1 thread", rank_svm(a), "ratio <= 0.588", clock=time.perf_counter)


def elastic_rank() -> Iterator[TimedComparison]:
    """Compare one pass with one product of all features with a vector."""
    a = data("a")
    w = np.zeros(a.n_features, dtype=np.float32)
    one_pass = fit(
        "ElasticRank", a, loss="pairwise_hinge", pair_weight="ndcg", at=10, passes=1, l1=0.0, l2=0.0, scaling="none"
    )
    what = "ElasticRank one pass, hinge x delta-NDCG@10, case a"
    yield TimedComparison(what, one_pass, "one X @ w", lambda: a.features @ w, "ratio <= 10")


def one_pass() -> Iterator[TimedComparison]:
    """Compare one pass of SOLAR2, and the steps of LambdaRank, with one product of all features with a vector."""
    a = data("a")
    w = np.zeros(a.n_features, dtype=np.float32)
    for what, work, seconds in (
        ("SOLAR2 one pass", fit("SOLAR2", a, passes=1, scaling="none"), 5.0),
        ("LambdaRank 100 steps", fit("LambdaRank", a, iterations=100, scaling="none"), 1.0),
    ):
        yield TimedComparison(f"{what}, case a", work, "one X @ w", lambda: a.features @ w, f"ours s <= {seconds:g}")


def rank_svm_wide() -> Iterator[TimedComparison]:
    """Compare 1,000 features with least squares on the grades."""
    wide = many_queries(250, 11, 1000)
    ridge = partial(Ridge().fit, wide.features, wide.grades)
    yield TimedComparison("RankSVM C=1, 30,000 x 1,000", rank_svm(wide), "sklearn Ridge", ridge, "ours s <= 0.1")


def pegasos() -> Iterator[TimedComparison]:
    """Compare steps on pairs with scikit-learn's steps on as many precomputed differences."""
    a, steps = data("a"), 1_000_000
    generator = np.random.default_rng(0)
    rows = generator.integers(0, a.n_documents - 1, 100_000)
    differences = (a.features[rows] - a.features[rows + 1]).astype(np.float64)
    signs = np.where(generator.random(len(rows)) < 0.5, 1, -1)
    sgd = SGDClassifier(alpha=1e-3, max_iter=10, tol=None, random_state=0)
    yield TimedComparison(
        "PairwisePegasos, 1,000,000 steps, case a",
        fit("PairwisePegasos", a, alpha=1e-3, steps=steps, sampling="documents", scaling="none"),
        "sklearn SGDClassifier, as many steps on given differences",
        partial(sgd.fit, differences, signs),
        "ours s <= 0.35",
    )


def adarank() -> Iterator[TimedComparison]:
    """Compare 100 rounds with 100 trees of LightGBM."""
    queries = data("as")
    yield TimedComparison(
        "AdaRank 100 rounds, case as",
        fit("AdaRank", queries, metric="ndcg@10", rounds=100, stop="never", reweigh="model", scaling="none"),
        "LightGBM LambdaMART, 100 trees",
        fit("LambdaMART", queries, trees=100, validation=0.0),
        "ours s <= 1",
    )


def domination() -> Iterator[TimedComparison]:
    """Compare the domination loss under L1 with a pointwise logistic loss under L1 by liblinear."""
    queries = data("as")
    rival = LogisticRegression(C=0.01, l1_ratio=1.0, solver="liblinear", tol=1e-4)
    for l1 in (1e-2, 1e-3):
        yield TimedComparison(
            f"DominationRank L1 = {l1:g}, to 1e-4, case as",
            fit("DominationRank", queries, l1=l1, average="queries", scaling="none", tol=1e-4),
            "sklearn LogisticRegression L1, liblinear",
            partial(rival.fit, queries.features, (queries.grades > 0).astype(int)),
            "ours s <= 3",
        )


BENCHMARKS: Mapping[str, Callable[[], Iterator[TimedComparison]]] = {
    "ranksvm-dense": rank_svm_dense,
    "ranksvm-grades": partial(rank_svm_like, "c", 5.5),
    "ranksvm-sparse": partial(rank_svm_like, "d", 5.0),
    "ranksvm-wide": rank_svm_wide,
    "ranksvm-path": rank_svm_path,
    "ranksvm-folds": rank_svm_folds,
    "ranksvm-threads": rank_svm_threads,
    "elasticrank": elastic_rank,
    "one-pass": one_pass,
    "pegasos": pegasos,
    "adarank": adarank,
    "domination": domination,
}


def main(
    only: list[str] | None = None,
    repeats: int = 5,
) -> list[BenchmarkTable]:
    """Compare the training time of solvers with that of their peers, in processor seconds.

    Parameters
    ----------
    only : list of str, positional
        Of {BENCHMARKS}. (default: all)
    repeats : int
        Turns of each.
    """
    for name in only or ():
        if name not in BENCHMARKS:
            raise ParameterError(f"there is no benchmark '{name}'. {nearest(name, BENCHMARKS)}")
    rows: list[Row] = []
    for name in only or BENCHMARKS:
        for comparison in BENCHMARKS[name]():
            rows.append(comparison.row(repeats))
            typer.echo(f"{comparison.what}: {rows[-1]['ours s']:.4g} s, ratio {rows[-1]['ratio']:.3g}", err=True)
    return [BenchmarkTable(f"Medians of {repeats} turns, processor seconds", rows)]
