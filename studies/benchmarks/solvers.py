"""Training time of each solver beside a peer from another library, in one run.

Both take turns after a warm-up, so that noise affects them alike; a line holds medians of processor seconds and the
median of the ratios of each turn. Fits are whole calls of fit, with their checks.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, nearest
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import make
from ranktune.studies.benchmarks.cases import case
from ranktune.studies.benchmarks.tables import Row, Table

Work = Callable[[], object]


@dataclass(frozen=True)
class Line:
    """A comparison: seconds of ours and of the peer, the median of their ratios, and the target."""

    what: str
    beside: str
    ours: float
    theirs: float
    ratio: float
    wanted: str
    met: bool


def turns(works: Mapping[str, Work], repeats: int, clock: Callable[[], float] = time.process_time) -> dict[str, Floats]:
    """Return the seconds of each turn of each work, (repeats,), after one that is not timed."""
    for work in works.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            begun = clock()
            work()
            seconds[name].append(clock() - begun)
    return {name: np.array(values) for name, values in seconds.items()}


def compared(
    what: str,
    ours: Work,
    beside: str,
    theirs: Work,
    repeats: int,
    *,
    at_most: float,
    clock: Callable[[], float] = time.process_time,
) -> Line:
    """Return the line of two works that take turns; the target is a ratio of at most at_most."""
    seconds = turns({"ours": ours, "theirs": theirs}, repeats, clock)
    ratio = float(np.median(seconds["ours"] / seconds["theirs"]))
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    return Line(what, beside, **medians, ratio=ratio, wanted=f"<= {at_most:.3g}", met=ratio <= at_most)


@lru_cache(maxsize=3)
def data(name: str) -> Queries:
    """Return a case, kept for the lines that follow."""
    return case(name)


def fit(name: str, queries: Queries, **parameters: Value) -> Work:
    """Return the work of fitting a solver; its warnings are ignored."""

    def work() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankTuneWarning)
            return make(name, parameters, seed=0).fit(queries)

    return work


def rank_svm(queries: Queries, **parameters: Value) -> Work:
    """Return the work of fitting RankSVM as its paper has it: the sum over all pairs, features as they are."""
    return fit("RankSVM", queries, C=1.0, scaling="none", average="none", **parameters)


def rank_svm_dense(repeats: int) -> Iterator[Line]:
    """Compare RankSVM with least squares on the grades."""
    a = data("a")
    yield compared(
        "RankSVM C=1, case a", rank_svm(a), "sklearn Ridge",
        lambda: Ridge().fit(a.features, a.grades), repeats, at_most=0.9,
    )  # fmt: skip


def rank_svm_many_grades(repeats: int) -> Iterator[Line]:
    """Compare half a million distinct grades with 5 grades."""
    a = data("a")
    yield compared(
        "RankSVM C=1, case c", rank_svm(data("c")), "RankSVM C=1, case a", rank_svm(a),
        repeats, at_most=5.5,
    )  # fmt: skip


def rank_svm_sparse(repeats: int) -> Iterator[Line]:
    """Compare 100,000 sparse features with 136 dense ones."""
    d = data("d")
    yield compared(
        "RankSVM C=1, case d", rank_svm(d), "RankSVM C=1, case a", rank_svm(data("a")),
        repeats, at_most=5.0,
    )  # fmt: skip


def rank_svm_path(repeats: int) -> Iterator[Line]:
    """Compare the path of 20 C with one fit of its own."""
    from ranktune.solvers.linear.rank_svm import RankSVM

    queries, Cs = data("as"), np.logspace(-4, 2, 20).tolist()
    ranker = RankSVM(scaling="standard", average="pairs")
    yield compared(
        "RankSVM 20 C, case as", lambda: list(ranker.fit_path(queries, Cs)),
        "one fit", fit("RankSVM", queries, C=Cs[10], scaling="standard", average="pairs"), repeats, at_most=6.0,
    )  # fmt: skip


def rank_svm_folds(repeats: int) -> Iterator[Line]:
    """Compare the paths of 20 C on five folds with one fit of its own on all queries."""
    from ranktune.solvers.linear.rank_svm import RankSVM

    queries, Cs = data("a"), np.logspace(-4, 2, 20).tolist()
    fold = np.arange(queries.n_queries) % 5
    parts = [queries.select(np.flatnonzero(fold != k)) for k in range(5)]
    ranker = RankSVM(scaling="standard", average="pairs")

    def paths() -> None:
        for part in parts:
            list(ranker.fit_path(part, Cs))

    yield compared(
        "RankSVM 20 C x 5 folds, case a", paths, "one fit",
        fit("RankSVM", queries, C=Cs[10], scaling="standard", average="pairs"), repeats, at_most=15.0,
    )  # fmt: skip


def rank_svm_threads(repeats: int) -> Iterator[Line]:
    """Compare two threads with one, by the clock on the wall."""
    a = data("a")
    yield compared(
        "RankSVM C=1, case a, 2 threads (wall)", rank_svm(a, threads=2), "1 thread",
        rank_svm(a), repeats, at_most=1 / 1.7, clock=time.perf_counter,
    )  # fmt: skip


def elastic_rank(repeats: int) -> Iterator[Line]:
    """Compare one pass with one product of all features with a vector."""
    a = data("a")
    w = np.zeros(a.n_features, dtype=np.float32)
    one_pass = fit("ElasticRank", a, loss="hinge", weight="ndcg", at=10, passes=1, l1=0.0, l2=0.0, scaling="none")
    yield compared(
        "ElasticRank one pass, hinge x delta-NDCG@10, case a", one_pass, "one X @ w", lambda: a.features @ w, repeats,
        at_most=10.0,
    )  # fmt: skip


def pegasos(repeats: int) -> Iterator[Line]:
    """Compare steps on pairs with scikit-learn's steps on as many precomputed differences."""
    a, steps = data("a"), 1_000_000
    generator = np.random.default_rng(0)
    rows = generator.integers(0, a.n_documents - 1, 100_000)
    differences = (a.features[rows] - a.features[rows + 1]).astype(np.float64)
    signs = np.where(generator.random(len(rows)) < 0.5, 1, -1)
    sgd = SGDClassifier(alpha=1e-3, max_iter=10, tol=None, random_state=0)
    ours = fit("PairwisePegasos", a, alpha=1e-3, steps=steps, sampling="documents", scaling="none")
    found = compared(
        "PairwisePegasos, 1,000,000 steps, case a", ours,
        "sklearn SGDClassifier, as many steps on given differences", lambda: sgd.fit(differences, signs), repeats,
        at_most=np.inf,
    )  # fmt: skip
    yield _within(found, 0.45e-6 * steps)


def adarank(repeats: int) -> Iterator[Line]:
    """Compare 100 rounds with 100 trees of LightGBM."""
    queries = data("as")
    ours = fit("AdaRank", queries, metric="ndcg@10", rounds=100, stop="never", reweigh="model", scaling="none")
    found = compared(
        "AdaRank 100 rounds, case as", ours,
        "LightGBM LambdaMART, 100 trees", fit("LambdaMART", queries, trees=100, validation=0.0), repeats,
        at_most=np.inf,
    )  # fmt: skip
    yield _within(found, 1.0)


def domination(repeats: int) -> Iterator[Line]:
    """Compare the domination loss under L1 with a pointwise logistic loss under L1 by liblinear."""
    queries = data("as")
    relevant = (queries.grades > 0).astype(int)
    rival = LogisticRegression(C=0.01, l1_ratio=1.0, solver="liblinear", tol=1e-4)
    for l1 in (1e-2, 1e-3):
        ours = fit("DominationRank", queries, l1=l1, average="queries", scaling="none", tol=1e-4)
        found = compared(
            f"DominationRank L1 = {l1:g}, to 1e-4, case as", ours, "sklearn LogisticRegression L1, liblinear",
            lambda: rival.fit(queries.features, relevant), repeats, at_most=np.inf,
        )  # fmt: skip
        yield _within(found, 3.0)


def _within(line: Line, seconds: float) -> Line:
    return Line(
        line.what, line.beside, line.ours, line.theirs, line.ratio, f"<= {seconds:g} s", line.ours <= seconds
    )  # fmt: skip


BENCHMARKS: Mapping[str, Callable[[int], Iterator[Line]]] = {
    "ranksvm-dense": rank_svm_dense,
    "ranksvm-grades": rank_svm_many_grades,
    "ranksvm-sparse": rank_svm_sparse,
    "ranksvm-path": rank_svm_path,
    "ranksvm-folds": rank_svm_folds,
    "ranksvm-threads": rank_svm_threads,
    "elasticrank": elastic_rank,
    "pegasos": pegasos,
    "adarank": adarank,
    "domination": domination,
}


def main(
    only: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(BENCHMARKS)}. (default: all)")] = None,
    repeats: Annotated[int, typer.Option(help="Turns of each.", min=1)] = 5,
) -> list[Table]:
    """Compare the training time of solvers with that of their peers, in processor seconds."""
    for name in only or ():
        if name not in BENCHMARKS:
            raise ParameterError(f"there is no benchmark '{name}'. {nearest(name, BENCHMARKS)}")
    lines = []
    with threadpool_limits(1):
        for name in only or BENCHMARKS:
            for line in BENCHMARKS[name](repeats):
                lines.append(line)
                typer.echo(f"{line.what}: {line.ours:.4g} s, {line.beside}: {line.theirs:.4g} s", err=True)
    return [Table(f"Medians of {repeats} turns, processor seconds", [_row(line) for line in lines])]


def _row(line: Line) -> Row:
    return {
        "what": line.what, "beside": line.beside, "ours s": line.ours, "theirs s": line.theirs, "ratio": line.ratio,
        "wanted": line.wanted, "met": line.met,
    }  # fmt: skip
