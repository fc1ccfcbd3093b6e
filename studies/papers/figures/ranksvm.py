"""RankSVM: objective and accuracy over training time (Figures 5 to 7), and sums over all active pairs (Figure 4).

Figure 4 compares data structures: direct counting (a number a grade, summed over the active grades), a Fenwick tree (as
balanced trees, log k steps an insertion and a query, without pointers), and the tree of 32 children a node.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from sklearn.svm import LinearSVC

from ranktune.solvers.core.arrays import Codes, Floats
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.losses.window_sums import offsets, sum_many
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.papers.figures.work import Material, PrintedFigure
from ranktune.studies.papers.protocols import present

NEWTON, HINGE = "Newton, L2 loss", "Newton, L1 loss"
LISTED = "liblinear on listed pairs, L2 loss"
METHODS, PAIR = (NEWTON, LISTED, HINGE), (NEWTON, LISTED)
"""What Figure 5 compares, and what Figures 6 and 7 do."""
LOSS_OF = {NEWTON: 2, LISTED: 2, HINGE: 1}
"""The power of the hinge that a system minimises. LISTED is the liblinear that scikit-learn carries."""
BEST_C = {"MQ2007": 2.0**-15, "MQ2008": 2.0**7}
"""Table 3: the best C for NDCG under the L2 loss; 1 elsewhere."""
TOLERANCES = (1.0, 0.1, 1e-2, 1e-3)
"""Where liblinear stops, one run each: it does not report its steps."""
DEFAULT_TOLERANCE = 1e-3
FIXED_C = (100.0, 1.0, 1e-4)
GRADES = (2, 3, 5, 8, 16, 64, 256, 1000)
LENGTH = 10_000
NEAR = 1e-2
"""A relative difference to the optimum at which times are compared: below the default stopping rule."""
STABLE = 0.005
Steps: TypeAlias = Iterator[tuple[float, Floats, bool]]
"""CPU seconds so far, weights, and whether the default stopping rule holds."""
Sums: TypeAlias = Callable[[Floats, Codes, int, Codes, Codes, Floats, Floats], None]
DIRECT_AT_MOST = 1000
"""Grades up to which direct counting is measured."""


@dataclass(frozen=True)
class Curve:
    """A fit: CPU seconds, objective, mean NDCG and pairwise accuracy of test queries after each step, (n_steps,).

    stopped is the number of the step at which the default stopping rule holds.
    """

    seconds: Floats
    objective: Floats
    ndcg: Floats
    accuracy: Floats
    stopped: int


Methods: TypeAlias = Mapping[str, Curve]


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 4 to 7."""
    yield _structures(material)
    folds = {dataset.name: scaled(dataset.splits[0]) for dataset in material.datasets}
    best = [(folds[name], system, BEST_C.get(name, 1.0)) for name in folds for system in METHODS]
    ranked = [(by_rank(fold), system, 1.0) for fold in folds.values() for system in PAIR]
    fixed = [(fold, system, C) for fold in folds.values() for C in FIXED_C for system in PAIR]
    curves = iter(material.all_of(curve_of, [*best, *ranked, *fixed]))
    yield _methods(material.figure("Figure 5"), {name: {system: next(curves) for system in METHODS} for name in folds})
    yield _many_grades(material.figure("Figure 6"), {name: {system: next(curves) for system in PAIR} for name in folds})
    by_penalty = {name: {C: {system: next(curves) for system in PAIR} for C in FIXED_C} for name in folds}
    yield _fixed_penalties(material.figure("Figure 7"), by_penalty)


def scaled(split: QuerySplit) -> QuerySplit:
    """Return split with each feature linearly scaled to [0, 1] on the training queries."""
    low, high = (edge(split.train.features, axis=0) for edge in (np.min, np.max))
    width = np.where(high > low, high - low, 1.0)

    def scale(queries: Queries | None) -> Queries | None:
        return None if queries is None else queries.with_features((queries.features - low) / width)

    train = split.train.with_features((split.train.features - low) / width)
    return replace(split, train=train, vali=scale(split.vali), test=scale(split.test))


def by_rank(split: QuerySplit) -> QuerySplit:
    """Return split with as many grades as documents in each query: their ranks in a noisy linear order."""
    generator = np.random.default_rng(0)
    truth = RankSVM(C=1.0, scaling="none").fit(split.train).coef_

    def ranked(queries: Queries) -> Queries:
        scores = queries.features @ truth
        noisy = scores + scores.std() * generator.normal(size=len(scores))
        order = np.lexsort([noisy, queries.query_of_document])
        grades = np.empty(len(scores))
        grades[order] = np.arange(len(scores)) - queries.starts[queries.query_of_document]
        return replace(queries, grades=grades)

    return replace(split, train=ranked(split.train), test=ranked(present(split.test, split, "test")))


def curve_of(split: QuerySplit, system: str, C: float) -> Curve:
    """Return what a system reaches in which time; weights are measured apart from the time."""
    test = present(split.test, split, "test")
    steps: Mapping[str, Callable[[Queries, float], Steps]] = {
        NEWTON: partial(_newton, "l2"),
        HINGE: partial(_newton, "l1"),
        LISTED: _liblinear,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        next(steps[system](split.train, C))  # compiles
        rounds = list(steps[system](split.train, C))
    ndcg, accuracy = parse_metric("mean-ndcg:letor" if test.grades.max() <= 30 else "kendall"), parse_metric("pairwise")
    scores = [test.features @ weights for _, weights, _ in rounds]
    return Curve(
        seconds=np.array([seconds for seconds, _, _ in rounds]),
        objective=np.array([objective(split.train, weights, C, LOSS_OF[system]) for _, weights, _ in rounds]),
        ndcg=np.array([ndcg.mean(values, test) for values in scores]),
        accuracy=np.array([accuracy.mean(values, test) for values in scores]),
        stopped=next((k for k, (_, _, stops) in enumerate(rounds) if stops), len(rounds) - 1),
    )


def objective(queries: Queries, weights: Floats, C: float, power: int) -> float:
    """Return 1/2 w'w + C sum over all pairs of max(0, 1 - difference) ** power, by listing the pairs of each query."""
    scores, total = queries.features @ weights, 0.0
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        grades, values = queries.grades[a:b], scores[a:b]
        margins = 1.0 - (values[:, None] - values[None, :])[grades[:, None] > grades[None, :]]
        total += float((np.maximum(margins, 0.0) ** power).sum())
    return 0.5 * float(weights @ weights) + C * total


def _newton(loss: str, queries: Queries, C: float) -> Steps:
    ranker = RankSVM(C=C, loss=loss, scaling="none", average="none", tol=1e-7)
    spent, begun = 0.0, time.process_time()
    for step in ranker.fit_steps(queries):
        spent += time.process_time() - begun
        yield spent, ranker.coef_.copy(), step.violation <= DEFAULT_TOLERANCE
        begun = time.process_time()


def _liblinear(queries: Queries, C: float) -> Steps:
    """Yield liblinear's solutions at falling tolerances: a support vector machine of the differences of all pairs."""
    begun = time.process_time()
    differences, labels = two_classes(queries)
    listing = time.process_time() - begun
    for tolerance in TOLERANCES:
        begun = time.process_time()
        machine = LinearSVC(C=C, dual=False, fit_intercept=False, tol=tolerance, max_iter=10_000)
        weights = machine.fit(differences, labels).coef_[0]
        yield listing + time.process_time() - begun, weights, tolerance <= DEFAULT_TOLERANCE


def two_classes(queries: Queries) -> tuple[Floats, Floats]:
    """Return the differences of all pairs, every other one turned, and labels: a classifier wants two."""
    differences = listed_pairs(queries)
    labels = np.where(np.arange(len(differences)) % 2 == 0, 1.0, -1.0)
    return differences * labels[:, None], labels


def listed_pairs(queries: Queries) -> Floats:
    """Return the difference of features of every pair, the better document first, (n_pairs, n_features)."""
    parts = []
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        better, worse = np.nonzero(queries.grades[a:b, None] > queries.grades[None, a:b])
        features = np.asarray(queries.features[a:b], dtype=np.float64)
        parts.append(features[better] - features[worse])
    return np.concatenate(parts)


def _structures(material: Material) -> PrintedFigure:
    figure = material.figure("Figure 4")
    costs = material.all_of(measure, [(LENGTH, k, 3) for k in GRADES])
    curves = {name: (GRADES, [cost[name] for cost in costs]) for name in ("direct", "Fenwick", "tree of 32")}
    title = f"Sums over active pairs, {LENGTH:,} documents"
    figure.draw(title, "grades", "ns a document", curves, log_x=True, log_y=True)
    slow, few = (cost["direct"] / cost["Fenwick"] for cost in (costs[-1], costs[GRADES.index(3)]))
    measured = f"With {GRADES[-1]:,} grades {slow:.1f} times a tree, with 3 grades {few:.1f} times."
    figure.say("slow", slow > 2.0, measured, contrary=True)
    ratios = [cost["Fenwick"] / cost["tree of 32"] for cost in costs]
    apart = max(max(ratio, 1.0 / ratio) for ratio in ratios)
    kinds = "a Fenwick tree and one of 32 children a node, which stand for the printed kinds of trees"
    figure.say("alike", apart < 3.0, f"At most {apart:.1f} times between {kinds}.", contrary=True)
    return figure


def _methods(figure: PrintedFigure, curves: Mapping[str, Methods]) -> PrintedFigure:
    for name, methods in curves.items():
        _draw_convergence(figure, f"{name}: distance to the optimum", methods)
        for label, of in (("mean NDCG", "ndcg"), ("pairwise accuracy", "accuracy")):
            _draw_over_time(figure, f"{name}: {label}, test", label, methods, of)
        change = max(float(np.abs(curve.ndcg[curve.stopped :] - curve.ndcg[-1]).max()) for curve in methods.values())
        measured = f"After it NDCG changes by at most {change:.4f}."
        figure.say("stable", change <= STABLE, measured, contrary=True, name=name)
        gaps = [
            float(getattr(methods[NEWTON], of)[-1] - getattr(methods[HINGE], of)[-1]) for of in ("ndcg", "accuracy")
        ]
        measured = f"L2 less L1: NDCG {gaps[0]:+.4f}, pairwise accuracy {gaps[1]:+.4f}."
        figure.say("losses", max(map(abs, gaps)) <= 2 * STABLE, measured, name=name)
        _say_which_is_faster(figure, name, methods)
    figure.say("others", None)
    return figure


def _draw_over_time(figure: PrintedFigure, title: str, label: str, methods: Methods, of: str) -> None:
    """Draw a field of the curves over time."""
    lines = {system: (curve.seconds, getattr(curve, of)) for system, curve in methods.items()}
    figure.draw(title, "CPU seconds", label, lines, log_x=True)


def _draw_convergence(figure: PrintedFigure, title: str, methods: Methods) -> None:
    """Draw the relative difference to the optimum of each loss over time."""
    lines = {system: (curve.seconds, np.maximum(_distance(system, methods), 1e-9)) for system, curve in methods.items()}
    figure.draw(title, "CPU seconds", "(f - f*) / f*", lines, log_x=True, log_y=True)


def _distance(system: str, methods: Methods) -> Floats:
    lowest = min(float(c.objective.min()) for s, c in methods.items() if LOSS_OF[s] == LOSS_OF[system])
    return np.asarray((methods[system].objective - lowest) / lowest)


def _reached(system: str, methods: Methods) -> float:
    """Return the seconds until a system is near its optimum."""
    near = np.flatnonzero(_distance(system, methods) <= NEAR)
    return float(methods[system].seconds[near].min()) if len(near) else float("inf")


def _say_which_is_faster(figure: PrintedFigure, name: str, methods: Methods) -> None:
    ours, listed = _reached(NEWTON, methods), _reached(LISTED, methods)
    measured = f"To {NEAR:g} of the optimum {ours:.3f} s, liblinear on listed pairs {listed:.3f} s."
    figure.say("faster", ours < listed, measured, contrary=True, name=name)


def _many_grades(figure: PrintedFigure, curves: Mapping[str, Methods]) -> PrintedFigure:
    for name, methods in curves.items():
        _draw_convergence(figure, f"{name}, grades by rank: distance to the optimum", methods)
        title = f"{name}, grades by rank: pairwise accuracy"
        _draw_over_time(figure, title, "pairwise accuracy, test", methods, "accuracy")
        _say_which_is_faster(figure, name, methods)
    figure.say("others", None)
    return figure


def _fixed_penalties(figure: PrintedFigure, curves: Mapping[str, Mapping[float, Methods]]) -> PrintedFigure:
    for name, by_penalty in curves.items():
        seconds = {C: (_reached(NEWTON, methods), _reached(LISTED, methods)) for C, methods in by_penalty.items()}
        for C, methods in by_penalty.items():
            _draw_convergence(figure, f"{name}, C = {C:g}", methods)
        times = "; ".join(f"C = {C:g}: {ours:.3f} s against {listed:.3f} s" for C, (ours, listed) in seconds.items())
        fastest = all(ours <= listed for ours, listed in seconds.values())
        measured = f"To {NEAR:g} of the optimum, {times} of liblinear on listed pairs."
        figure.say("fastest", fastest, measured, contrary=True, name=name)
    return figure


@compiled
def _direct(v: Floats, codes: Codes, k: int, high: Codes, cells: Floats, out: Floats) -> None:
    """Add to out the sums of v over the active partners of higher grades, by one number a grade."""
    cells[:k] = 0.0
    added = 0
    for r in range(len(v)):
        while added < high[r]:
            cells[codes[added]] += v[added]
            added += 1
        for c in range(codes[r] + 1, k):
            out[r] += cells[c]


@compiled
def _fenwick(v: Floats, codes: Codes, k: int, high: Codes, tree: Floats, out: Floats) -> None:
    """Add to out the sums of v over the active partners of higher grades, by a Fenwick tree over the grades."""
    tree[: k + 1] = 0.0
    added = 0
    for r in range(len(v)):
        while added < high[r]:
            at = k - np.int64(codes[added])
            while at <= k:
                tree[at] += v[added]
                at += at & -at
            added += 1
        at = k - 1 - np.int64(codes[r])
        while at > 0:
            out[r] += tree[at]
            at &= at - 1


def _both_ways(higher: Callable[..., None]) -> Sums:
    """Return the sums over all active partners: those of lower grades are of higher ones, read from the other end."""

    def sums(v: Floats, codes: Codes, k: int, low: Codes, high: Codes, room: Floats, out: Floats) -> None:
        lower = np.zeros(len(v))
        out[:] = 0.0
        higher(v, codes, k, high, room, out)
        higher(v[::-1].copy(), k - 1 - codes[::-1], k, len(v) - low[::-1], room, lower)
        out += lower[::-1]

    return sums


direct, fenwick = _both_ways(_direct), _both_ways(_fenwick)


def problem(length: int, n_grades: int) -> tuple[Floats, Codes, Codes, Codes]:
    """Return v, codes, low, high of documents with correlated scores and grades; about half of the pairs are active."""
    generator = np.random.default_rng(length + n_grades)
    scores = np.sort(generator.normal(size=length))
    noisy = np.argsort(np.argsort(scores + generator.normal(size=length)))
    codes = (noisy * n_grades // length).astype(np.uint32)
    low = np.searchsorted(scores, scores - 1.0, side="right").astype(np.uint32)
    high = np.searchsorted(scores, scores + 1.0, side="left").astype(np.uint32)
    return generator.normal(size=length), codes, low, high


def nanoseconds(work: Callable[[], None], length: int, repeats: int) -> float:
    """Return the median CPU time of work in nanoseconds a document; short work is repeated within a measurement."""
    work()
    rounds = max(1, 200_000 // length)
    measured = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(rounds):
            work()
        measured.append((time.process_time() - start) / rounds)
    return float(np.median(measured)) * 1e9 / length


def measure(length: int, n_grades: int, repeats: int) -> dict[str, float]:
    """Return nanoseconds a document of each structure, nan where it does not apply."""
    v, codes, low, high = problem(length, n_grades)
    room, out = np.empty(max(offsets(n_grades)[-1], n_grades + 1)), np.empty(length)
    works: dict[str, tuple[int, Sums]] = {
        "direct": (DIRECT_AT_MOST, direct), "Fenwick": (n_grades, fenwick), "tree of 32": (n_grades, sum_many),
    }  # fmt: skip
    arrays = v, codes, n_grades, low, high, room, out
    return {
        name: nanoseconds(partial(sums, *arrays), length, repeats) if n_grades <= most else float("nan")
        for name, (most, sums) in works.items()
    }
