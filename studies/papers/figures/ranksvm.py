"""RankSVM: objective and accuracy over training time (Figures 4 to 7)."""

from __future__ import annotations

import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import dump_svmlight_file
from sklearn.svm import LinearSVC

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.split import Split
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.papers.claims import Verdict
from ranktune.studies.papers.counting import measure
from ranktune.studies.papers.figures.charts import Chart, PrintedFigure, Series
from ranktune.studies.papers.figures.work import Material
from ranktune.studies.papers.protocols import present

NEWTON, HINGE = "Newton, L2 loss", "Newton, L1 loss"
LISTED, PROGRAM = "liblinear on listed pairs, L2 loss", "the program liblinear-train on listed pairs"
LOSS_OF = {NEWTON: 2, LISTED: 2, HINGE: 1, PROGRAM: 2}
"""The power of the hinge that a system minimises. LISTED is the liblinear that scikit-learn carries."""
MAX_PAIRS = 100_000
"""Pairs up to which liblinear's program is run: it reads them as text."""
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
LOST = "The text that we have holds the caption, not the picture."
NOT_RUN = "PRSVM+ was never released, as the paper says, and TreeRankSVM cannot be installed as a package: not run."


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


Steps = Iterator[tuple[float, Floats, bool]]
"""CPU seconds so far, weights, and whether the default stopping rule holds."""


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 4 to 7."""
    yield _structures(material)
    names = material.names
    folds = {dataset.name: scaled(dataset.splits[0]) for dataset in material.datasets}
    systems = {name: methods_for(folds[name].train) for name in names}
    best = [(folds[name], system, BEST_C.get(name, 1.0)) for name in names for system in systems[name]]
    ranked = [(by_rank(folds[name]), system, 1.0) for name in names for system in (NEWTON, LISTED)]
    fixed = [(folds[name], system, C) for name in names for C in FIXED_C for system in (NEWTON, LISTED)]
    curves = iter(material.all_of(curve_of, [*best, *ranked, *fixed]))
    yield _methods({name: {system: next(curves) for system in systems[name]} for name in names})
    yield _many_grades({name: {system: next(curves) for system in (NEWTON, LISTED)} for name in names})
    yield _fixed_penalties(
        {name: {C: {system: next(curves) for system in (NEWTON, LISTED)} for C in FIXED_C} for name in names}
    )


def scaled(split: Split) -> Split:
    """Return split with each feature linearly scaled to [0, 1] on the training queries."""
    low, high = (edge(split.train.features, axis=0) for edge in (np.min, np.max))
    width = np.where(high > low, high - low, 1.0)

    def part(queries: Queries | None) -> Queries | None:
        return None if queries is None else queries.with_features((queries.features - low) / width)

    train = split.train.with_features((split.train.features - low) / width)
    return replace(split, train=train, vali=part(split.vali), test=part(split.test))


def methods_for(queries: Queries) -> tuple[str, ...]:
    """Return the systems to compare on queries; liblinear's program where it is installed and the pairs are few."""
    few = Judgements.of(queries).pairs().sum() <= MAX_PAIRS
    return (NEWTON, LISTED, HINGE, *((PROGRAM,) if few and shutil.which("liblinear-train") else ()))


def by_rank(split: Split) -> Split:
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


def curve_of(split: Split, system: str, C: float) -> Curve:
    """Return what a system reaches in which time; weights are measured apart from the time."""
    test = present(split.test, split, "test")
    steps: Mapping[str, Callable[[Queries, float], Steps]] = {
        NEWTON: partial(_newton, "l2"),
        HINGE: partial(_newton, "l1"),
        LISTED: _liblinear,
        PROGRAM: _liblinear_program,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if system != PROGRAM:
            next(steps[system](split.train, C))  # compiles
        found = list(steps[system](split.train, C))
    ndcg, accuracy = parse_metric("mean-ndcg:letor" if test.grades.max() <= 30 else "kendall"), parse_metric("pairwise")
    scores = [test.features @ weights for _, weights, _ in found]
    return Curve(
        seconds=np.array([seconds for seconds, _, _ in found]),
        objective=np.array([objective(split.train, weights, C, LOSS_OF[system]) for _, weights, _ in found]),
        ndcg=np.array([ndcg.mean(one, test) for one in scores]),
        accuracy=np.array([accuracy.mean(one, test) for one in scores]),
        stopped=next((k for k, (_, _, stops) in enumerate(found) if stops), len(found) - 1),
    )


def objective(queries: Queries, weights: Floats, C: float, power: int) -> float:
    """Return 1/2 w'w + C sum over all pairs of max(0, 1 - difference) ** power, by listing the pairs of each query."""
    scores, total = queries.features @ weights, 0.0
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        grades, own = queries.grades[a:b], scores[a:b]
        margins = 1.0 - (own[:, None] - own[None, :])[grades[:, None] > grades[None, :]]
        total += float((np.maximum(margins, 0.0) ** power).sum())
    return 0.5 * float(weights @ weights) + C * total


def _newton(loss: str, queries: Queries, C: float) -> Steps:
    ranker = RankSVM(C=C, loss=loss, scaling="none", average="none", tol=1e-7)
    spent, begun = 0.0, time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        for step in ranker.fit_steps(queries):
            spent += time.process_time() - begun
            yield spent, ranker.coef_.copy(), step.violation <= DEFAULT_TOLERANCE
            begun = time.process_time()


def _liblinear(queries: Queries, C: float) -> Steps:
    """Yield liblinear's solutions at falling tolerances: a support vector machine of the differences of all pairs."""
    begun = time.process_time()
    differences, labels = _two_classes(queries)
    listing = time.process_time() - begun
    for tolerance in TOLERANCES:
        begun = time.process_time()
        machine = LinearSVC(C=C, dual=False, fit_intercept=False, tol=tolerance, max_iter=10_000)
        weights = machine.fit(differences, labels).coef_[0]
        yield listing + time.process_time() - begun, weights, tolerance <= DEFAULT_TOLERANCE


def _liblinear_program(queries: Queries, C: float) -> Steps:
    """Yield what the installed program finds at falling tolerances; its time holds the reading of its file."""
    import resource  # not on Windows

    differences, labels = _two_classes(queries)
    with TemporaryDirectory() as folder:
        data, model = Path(folder) / "pairs.txt", Path(folder) / "model.txt"
        dump_svmlight_file(differences, labels, str(data), zero_based=False)
        for tolerance in TOLERANCES:
            command = ["liblinear-train", "-q", "-s", "2", "-c", repr(C), "-e", repr(tolerance), str(data), str(model)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            subprocess.run(command, check=True, capture_output=True)
            spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            weights = np.array(model.read_text().split("\nw\n")[1].split(), dtype=np.float64)
            yield spent, weights, tolerance <= DEFAULT_TOLERANCE


def _two_classes(queries: Queries) -> tuple[Floats, Floats]:
    """Return the differences of all pairs, every other one turned, and labels: a classifier wants two."""
    differences = listed_pairs(queries)
    labels = np.where(np.arange(len(differences)) % 2 == 0, 1.0, -1.0)
    return differences * labels[:, None], labels


def listed_pairs(queries: Queries) -> Floats:
    """Return the difference of features of every pair, the better document first, (n_pairs, n_features)."""
    parts = []
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        better, worse = np.nonzero(queries.grades[a:b, None] > queries.grades[None, a:b])
        parts.append(queries.features[a + better] - queries.features[a + worse])
    return np.concatenate(parts)


def _structures(material: Material) -> PrintedFigure:
    costs = material.all_of(measure, [(LENGTH, k, 3) for k in GRADES])
    series = tuple(
        Series(f"{name}", GRADES, [cost[name] for cost in costs], style="line+points")
        for name in ("direct", "Fenwick", "tree of 32")
    )
    chart = Chart(
        f"Sums over active pairs, {LENGTH:,} documents", "grades", "ns a document", series, log_x=True, log_y=True
    )
    few, many = costs[GRADES.index(3)], costs[-1]
    slow = many["direct"] / many["Fenwick"]
    reason = (
        f"With {GRADES[-1]:,} grades {slow:.1f} times a tree, with 3 grades {few['direct'] / few['Fenwick']:.1f} times."
    )
    apart = [max(cost["Fenwick"], cost["tree of 32"]) / min(cost["Fenwick"], cost["tree of 32"]) for cost in costs]
    claims = (
        Verdict("Figure 4", "direct counting is slow when there are many grades", slow > 2.0, reason),
        Verdict(
            "Figure 4",
            "the trees differ little",
            max(apart) < 3.0,
            f"At most {max(apart):.1f} times between a Fenwick tree and one of 32 children a node, which stand for the "
            "printed kinds of trees.",
        ),
    )
    printed = (
        f"the objective over training time for six structures on four data sets, C = 1. {LOST} Ours times the sum that "
        "they differ in."
    )
    return PrintedFigure("Figure 4", "Order-statistic trees and direct counting", printed, (chart,), claims)


Methods = Mapping[str, Curve]


def _methods(curves: Mapping[str, Methods]) -> PrintedFigure:
    charts, claims = [], []
    for name, own in curves.items():
        charts.append(_convergence(f"{name}: distance to the optimum", own))
        for label, values in (("mean NDCG", "ndcg"), ("pairwise accuracy", "accuracy")):
            series = tuple(Series(s, c.seconds, getattr(c, values), style="line+points") for s, c in own.items())
            charts.append(Chart(f"{name}: {label}, test", "CPU seconds", label, series, log_x=True))
        changes = {}
        for system, curve in own.items():
            after = curve.ndcg[curve.stopped :]
            changes[system] = float(np.abs(after - curve.ndcg[-1]).max())
        reason = f"After it NDCG changes by at most {max(changes.values()):.4f}."
        claim = f"accuracy is stable once the default stopping rule holds ({name})"
        claims.append(Verdict("Figure 5", claim, max(changes.values()) <= STABLE, reason))
        gaps = [float(getattr(own[NEWTON], v)[-1] - getattr(own[HINGE], v)[-1]) for v in ("ndcg", "accuracy")]
        reason = f"L2 less L1: NDCG {gaps[0]:+.4f}, pairwise accuracy {gaps[1]:+.4f}."
        claim = f"L1 and L2 loss are similar in NDCG and pairwise accuracy ({name})"
        claims.append(Verdict("Figure 5", claim, max(map(abs, gaps)) <= 2 * STABLE, reason))
        claims.append(_faster("Figure 5", name, own))
    claims.append(
        Verdict("Figure 5", "Tree-TRON is faster than TreeRankSVM and like PRSVM+ with few grades", False, NOT_RUN)
    )
    printed = f"distance to the optimum, pairwise accuracy and NDCG over time on five data sets. {LOST}"
    return PrintedFigure("Figure 5", "Methods for linear RankSVM", printed, tuple(charts), tuple(claims))


def _convergence(title: str, own: Methods) -> Chart:
    """Return the chart of the relative difference to the optimum of each loss over time."""
    series = []
    for system, curve in own.items():
        distance = _distance(system, own)
        series.append(Series(system, curve.seconds, np.maximum(distance, 1e-9), style="line+points"))
    return Chart(title, "CPU seconds", "(f - f*) / f*", tuple(series), log_x=True, log_y=True)


def _distance(system: str, own: Methods) -> Floats:
    lowest = min(float(c.objective.min()) for s, c in own.items() if LOSS_OF[s] == LOSS_OF[system])
    return np.asarray((own[system].objective - lowest) / lowest)


def _reached(system: str, own: Methods) -> float:
    """Return the seconds until a system is near its optimum."""
    near = np.flatnonzero(_distance(system, own) <= NEAR)
    return float(own[system].seconds[near].min()) if len(near) else float("inf")


def _faster(source: str, name: str, own: Methods) -> Verdict:
    ours, listed = _reached(NEWTON, own), _reached(LISTED, own)
    reason = f"To {NEAR:g} of the optimum {ours:.3f} s, liblinear on listed pairs {listed:.3f} s."
    return Verdict(source, f"counting pairs is faster than listing them ({name})", ours < listed, reason)


def _many_grades(curves: Mapping[str, Methods]) -> PrintedFigure:
    charts, claims = [], []
    for name, own in curves.items():
        charts.append(_convergence(f"{name}, grades by rank: distance to the optimum", own))
        series = tuple(Series(s, c.seconds, c.accuracy, style="line+points") for s, c in own.items())
        title = f"{name}, grades by rank: pairwise accuracy"
        charts.append(Chart(title, "CPU seconds", "pairwise accuracy, test", series, log_x=True))
        claims.append(_faster("Figure 6", name, own))
    claims.append(Verdict("Figure 6", "PRSVM+ is much slower with many grades", False, NOT_RUN))
    printed = (
        "distance to the optimum and pairwise accuracy on MQ2007-list and MQ2008-list, whose grades are ranks. "
        f"{LOST} Those sets are not here: ours have a grade for every rank of a noisy linear order."
    )
    return PrintedFigure(
        "Figure 6", "Methods for linear RankSVM with many grades", printed, tuple(charts), tuple(claims)
    )


def _fixed_penalties(curves: Mapping[str, Mapping[float, Methods]]) -> PrintedFigure:
    charts, claims = [], []
    for name, by_penalty in curves.items():
        shown, fastest = [], []
        for C, own in by_penalty.items():
            charts.append(_convergence(f"{name}, C = {C:g}", own))
            ours, listed = _reached(NEWTON, own), _reached(LISTED, own)
            shown.append(f"C = {C:g}: {ours:.3f} s against {listed:.3f} s")
            fastest.append(ours <= listed)
        claim = f"Tree-TRON is always one of the fastest methods ({name})"
        claims.append(
            Verdict(
                "Figure 7",
                claim,
                all(fastest),
                f"To {NEAR:g} of the optimum, {'; '.join(shown)} of liblinear on listed pairs. {NOT_RUN}",
            )
        )
    printed = f"distance to the optimum over time with C = 100, 1 and 0.0001. {LOST}"
    return PrintedFigure("Figure 7", "The same C for all methods", printed, tuple(charts), tuple(claims))
