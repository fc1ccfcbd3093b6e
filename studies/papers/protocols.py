"""The papers' evaluation protocols: which queries models are fitted on, chosen by and scored on.

folds        fit every point of the grid on a fold's train.txt, or those that the tuner asks for, choose one by its
             vali.txt, score that one on its test.txt; a figure is the mean over folds of each fold's mean over queries
every-point  the same without a choice: every point is scored, for plots of a trade-off
progressive  go through all queries in random orders, each scored before the model is updated with it; a figure is the
             mean over orders of the mean over queries
tuner        samplers search the grid for the best mean over folds on vali.txt, from several seeds: see tuner_runs
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.errors import DataError, RankTuneError, RankTuneWarning
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import solver_class
from ranktune.studies.papers.lattice import search
from ranktune.studies.papers.published import EACH, Entry, Measure, Point
from ranktune.tuner.evaluation.fitting import fitted, progressive
from ranktune.tuner.evaluation.run import Run
from ranktune.tuner.evaluation.task import Task

TIMINGS = 15
"""Repetitions of a timing, of which the median counts."""
PROGRESSIVE = "map:letor"
"""The metric of the progressive curves."""
STEPS = ("rounds", "passes")
"""Path parameters that count steps: fit_path gives the same bits as fit."""


@dataclass(frozen=True)
class PartResult:
    """The result of one part of a protocol (a fold or an order).

    values    of each measure: by the point's name ("" where validation chose one), then by the measure's label
    chosen    the point that validation chose, by the measure's label
    curves    what figures are drawn of, by name
    warnings  messages of the solvers' warnings; error: why there is no result, "" where there is one
    """

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    chosen: Mapping[str, Point] = field(default_factory=dict)
    curves: Mapping[str, Floats] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Fitted:
    """A point of a grid, the weights of its model (none but for linear models), and its scores of other queries."""

    point: Point
    weights: Floats
    vali: Matrix | None
    test: Matrix


def run_part(protocol: Callable[..., PartResult], *arguments: object) -> PartResult:
    """Return the result of protocol(*arguments) with the solvers' warnings; a RankTuneError becomes its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RankTuneWarning)
        try:
            result = protocol(*arguments)
        except RankTuneError as error:
            return PartResult(error=str(error))
    return replace(result, warnings=tuple(str(warning.message) for warning in caught))


def one_fold(entry: Entry, split: Split, seed: int) -> PartResult:
    """Fit on split's training queries, choose by its validation queries, and score its test queries."""
    test = present(split.test, split, "test")
    vali = present(split.vali, split, "vali") if len(entry.points) > 1 else split.vali
    fits = _tuned(entry, split, seed) if entry.evaluations else list(fits_of(entry, split, seed))
    best = dict.fromkeys(entry.labels, 0) if vali is None or len(fits) == 1 else _best(entry, fits, vali)
    values = {m.label: measured(m, fits[best[m.label]].weights, fits[best[m.label]].test, test) for m in entry.measures}
    return PartResult({"": values}, {label: fits[k].point for label, k in best.items()})


def every_point(entry: Entry, split: Split, seed: int) -> PartResult:
    """Fit every point on split's training queries, and score it on the test queries."""
    test = present(split.test, split, "test")
    values = {}
    for fit in fits_of(entry, split, seed):
        values[named(fit.point)] = {m.label: measured(m, fit.weights, fit.test, test) for m in entry.measures}
    return PartResult(values)


def one_order(entry: Entry, queries: Queries, order: Ints, seed: int) -> PartResult:
    """Score each query in that order by a new model, then update the model with it."""
    (point,) = entry.points
    model, scores = progressive(_run(entry, entry.at(point), queries, seed), queries, order)
    values = {m.label: measured(m, _weights(model), scores, queries) for m in entry.measures}
    precisions = parse_metric(PROGRESSIVE).per_query(scores, queries)[order]
    return PartResult({"": values}, curves={PROGRESSIVE: np.cumsum(precisions) / np.arange(1, len(order) + 1)})


def all_queries(split: Split) -> Queries:
    """Return training, validation and test queries together."""
    return concatenate([part for part in (split.train, split.vali, split.test) if part is not None])


def measured(measure: Measure, weights: Floats, scores: Matrix, queries: Queries) -> float:
    """Return one measure of a model with these weights, whose scores of queries are scores, (n_documents,)."""
    if measure.metric is None:
        return float(np.count_nonzero(weights)) if measure.label == "weights" else latency(weights, queries)
    if measure.over == "queries":
        return measure.scale * measure.metric.mean(scores, queries)
    values, counts = measure.metric.per_query(scores, queries), Judgements.of(queries).pairs()
    return measure.scale * float(np.average(np.nan_to_num(values), weights=counts))


def latency(weights: Floats, queries: Queries) -> float:
    """Return the microseconds to score one document of queries by the features whose weight is not zero."""
    kept = np.flatnonzero(weights)
    features, weights = queries.features[:, kept], weights[kept].astype(queries.features.dtype)
    seconds = []
    for _ in range(TIMINGS):
        begun = time.perf_counter()
        features @ weights
        seconds.append(time.perf_counter() - begun)
    return 1e6 * float(np.median(seconds)) / queries.n_documents


def named(point: Point) -> str:
    """Return the text of a point of a grid: l1=0.001, passes=2."""
    return ", ".join(f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
                     for name, value in point.items())  # fmt: skip


def fits_of(entry: Entry, split: Split, seed: int) -> Iterator[Fitted]:
    """Yield every point of the grid, fitted; numbers of steps at the cost of one fit."""
    name, points = solver_class(entry.solver).path_parameter, entry.points
    if len(points) > 1 and name in STEPS and tuple(entry.grid) == (name,):
        path = tuple(sorted(int(str(value)) for value in entry.grid[name]))
        yield from _fits(entry, split, [{name: value} for value in path], seed, path)
        return
    for point in points:
        yield from _fits(entry, split, [point], seed)


def _fits(
    entry: Entry, split: Split, points: Sequence[Point], seed: int, path: tuple[float, ...] = ()
) -> Iterator[Fitted]:
    """Yield the points of a path, fitted, or the one point that is given."""
    run = _run(entry, entry.parameters if path else entry.at(points[0]), split.train, seed, path)
    rankers = fitted(run, split.train, split.vali if entry.stops_early else None)
    for point, ranker in zip(points, rankers, strict=True):
        vali = None if split.vali is None else ranker.predict(split.vali)
        yield Fitted(point, _weights(ranker), vali, ranker.predict(present(split.test, split, "test")))


def _run(
    entry: Entry, parameters: Mapping[str, Value], queries: Queries, seed: int, path: tuple[float, ...] = ()
) -> Run:
    return Run(Task("", (), entry.solver, parameters, seed, path=path), queries)


def _weights(model: BaseRanker) -> Floats:
    return np.array(getattr(model, "coef_", np.zeros(0)))


def _tuned(entry: Entry, split: Split, seed: int) -> list[Fitted]:
    """Return the points that the tuner asks for, fitted; it maximises the metric of the choice on vali."""
    vali, metric = present(split.vali, split, "vali"), parse_metric(entry.choose)
    fits: list[Fitted] = []

    def value(point: Point) -> float:
        fits.extend(_fits(entry, split, [point], seed))
        scores = fits[-1].vali
        return float("-inf") if scores is None else metric.mean(scores, vali)

    search(entry.grid, value, sampler=entry.sampler, seed=seed, evaluations=entry.evaluations)
    return fits


def _best(entry: Entry, fits: list[Fitted], vali: Queries) -> dict[str, int]:
    """Return the number of the best fit on vali for each measure; the first of equals."""
    scored = [(fit.weights, fit.vali) for fit in fits if fit.vali is not None]
    if entry.choose != EACH:
        metric = parse_metric(entry.choose)
        return dict.fromkeys(entry.labels, int(np.argmax([metric.mean(scores, vali) for _, scores in scored])))
    return {m.label: int(np.argmax([measured(m, *scores, vali) for scores in scored])) for m in entry.measures}


def present(part: Queries | None, split: Split, name: str) -> Queries:
    """Return part, the queries of split called name. Raises DataError where there are none."""
    if part is None:
        raise DataError(
            f"{split.name} has no {name}.txt: the protocol of the papers needs train.txt, vali.txt and test.txt. "
            "Give a folder Fold1 ... Fold5 that holds all three."
        )
    return part
