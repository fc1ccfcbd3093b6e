"""The papers' evaluation protocols: which queries models are fitted on, chosen by and scored on.

folds        fit every point of the grid on a fold's train.txt, choose one by its vali.txt, score that one on its
             test.txt; a figure is the mean over folds of each fold's mean over queries
every-point  the same without a choice: every point is scored, for plots of a trade-off
progressive  go through all queries in random orders, each scored before the model is updated with it; a figure is the
             mean over orders of the mean over queries
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneError, RankTuneWarning
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.studies.papers.published import EACH, Entry, Measure, Point
from ranktune.tuner.splits.split import Split

TIMINGS = 15
"""Repetitions of a timing, of which the median counts."""


@dataclass(frozen=True)
class PartResult:
    """The result of one part of a protocol (a fold or an order).

    values    of each measure: by the point's name ("" where validation chose one), then by the measure's label
    chosen    the point that validation chose, by the measure's label
    warnings  messages of the solvers' warnings; error: why there is no result, "" where there is one
    """

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    chosen: Mapping[str, Point] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: str = ""


Scored: TypeAlias = tuple[dict[str, dict[str, float]], dict[str, Point]]
"""The values and chosen of a PartResult."""


@runtime_checkable
class OnlineRanker(Protocol):
    """A ranker that learns query by query."""

    def progressive(self, queries: Queries, order: Ints) -> Floats:
        """Return the score of each document, given before the model is updated with its query."""


def run_part(protocol: Callable[..., Scored], *arguments: object) -> PartResult:
    """Return the result of protocol(*arguments) with the solvers' warnings; a RankTuneError becomes its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RankTuneWarning)
        try:
            values, chosen = protocol(*arguments)
        except RankTuneError as error:
            return PartResult(error=str(error))
    return PartResult(values, chosen, tuple(str(warning.message) for warning in caught))


def one_fold(entry: Entry, split: Split, seed: int) -> Scored:
    """Fit on split's training queries, choose by its validation queries, and score its test queries."""
    test = _present(split.test, split, "test")
    points = entry.points
    if len(points) == 1:
        models = {0: _fitted(entry, points[0], split, seed)}
        best = {measure.label: 0 for measure in entry.measures}
    else:
        vali = _present(split.vali, split, "vali")
        models = {k: _fitted(entry, point, split, seed) for k, point in enumerate(points)}
        best = _best(entry, list(models.values()), vali)
    values = {}
    for measure in entry.measures:
        model = models[best[measure.label]]
        values[measure.label] = measured(measure, model, model.predict(test), test)
    return {"": values}, {label: points[k] for label, k in best.items()}


def every_point(entry: Entry, split: Split, seed: int) -> Scored:
    """Fit every point on split's training queries, and score it on the test queries."""
    test = _present(split.test, split, "test")
    values = {}
    for point in entry.points:
        model = _fitted(entry, point, split, seed)
        scores = model.predict(test)
        values[named(point)] = {m.label: measured(m, model, scores, test) for m in entry.measures}
    return values, {}


def one_order(entry: Entry, queries: Queries, order: Ints, seed: int) -> Scored:
    """Score each query in that order by a new model, then update the model with it."""
    (point,) = entry.points
    model = make(entry.solver, {**entry.parameters, **point}, seed)
    if not isinstance(model, OnlineRanker):
        raise ParameterError(f"{entry.solver} does not learn query by query. Use an online solver.")
    scores = model.progressive(queries, order)
    return {"": {m.label: measured(m, model, scores, queries) for m in entry.measures}}, {}


def all_queries(split: Split) -> Queries:
    """Return training, validation and test queries together."""
    return concatenate([part for part in (split.train, split.vali, split.test) if part is not None])


def measured(measure: Measure, model: BaseRanker, scores: Matrix, queries: Queries) -> float:
    """Return one measure of a model whose scores of queries are scores, (n_documents,)."""
    if measure.metric is None:
        weights = np.asarray(getattr(model, "coef_", np.zeros(0)))
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


def _fitted(entry: Entry, point: Point, split: Split, seed: int) -> BaseRanker:
    return make(entry.solver, {**entry.parameters, **point}, seed).fit(split.train, vali=split.vali)


def _best(entry: Entry, models: list[BaseRanker], vali: Queries) -> dict[str, int]:
    """Return the number of the best model on vali for each measure; the first of equals."""
    scores = [model.predict(vali) for model in models]
    if entry.choose != EACH:
        metric = parse_metric(entry.choose)
        k = int(np.argmax([metric.mean(one, vali) for one in scores]))
        return {measure.label: k for measure in entry.measures}
    return {
        m.label: int(np.argmax([measured(m, model, one, vali) for model, one in zip(models, scores, strict=True)]))
        for m in entry.measures
    }


def _present(part: Queries | None, split: Split, name: str) -> Queries:
    if part is None:
        raise DataError(
            f"{split.name} has no {name}.txt: the protocol of the papers needs train.txt, vali.txt and test.txt. "
            "Give a folder Fold1 ... Fold5 that holds all three."
        )
    return part
