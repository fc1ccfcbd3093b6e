"""The papers' evaluation protocols, as plans: which queries models are fitted on, chosen by and scored on.

folds        fit every point of the grid on a fold's train.txt, or those that the tuner asks for, choose one by its
             vali.txt, score that one on its test.txt; a figure is the mean over folds of each fold's mean over queries
every-point  the same without a choice: every point is scored, for plots of a trade-off
progressive  go through all queries in random orders, each scored before the model is updated with it; a figure is the
             mean over orders of the mean over queries
tuner        samplers search the grid for the best mean over folds on vali.txt, from several seeds: see tuner_runs
daily        every simulated day ElasticRank is tuned and trained anew on the days before, and judged on the next

The ElasticRank paper says that a new model is trained at regular intervals, such as daily, on the logs of the past few
days, and that 30 evaluations are typical. Its logs were never published. Here a day has lists of products of which some
are bought. The weights that decide turn slowly, and there are more lists on some days than on others. An evaluation is
one pass over the lists of the past days, each scored before it is learned from; its value is the mean of the metric
over those of the last day. The model of the best evaluation is judged on the next day.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, RankTuneError, RankTuneWarning
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make, solver_class
from ranktune.studies.papers.lattice import search
from ranktune.studies.papers.published import EACH, Point, PublishedMeasure, PublishedSystem
from ranktune.tuner.evaluation.evaluate import EvaluationPlan, EvaluationRun, FittedQueries, evaluate
from ranktune.tuner.evaluation.fitting import fitted, progressive
from ranktune.tuner.evaluation.task import Task, TaskOutcome

TIMINGS = 15
"""Repetitions of a timing, of which the median counts."""
PROGRESSIVE = "map:letor"
"""The metric of the progressive curves."""
STEPS = ("rounds", "passes")
"""Path parameters that count steps: fit_path gives the same bits as fit."""
NAME = "simulated days"
SEEDS = 1000
"""Seeds between those of two days."""
DAYS, PAST = 15, 3
"""Days, the first of which judges nothing, and how many of the past ones a pass goes over."""
FEATURES, EVERY, LENGTH = 200, 10, 20
"""Features, every tenth of which matters, and products of a list."""
LISTS = (100, 100, 100, 100, 100, 200, 200)
"""Lists of each day of a week."""
NOISE, BOUGHT = 1.5, 2.7
"""Noise beside a utility of deviation 1, and the sum from which a product is bought: 1 in 15 is."""


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
class FittedPoint:
    """A fitted point of a grid: the weights of its model (none but for linear models), and its metrics by query.

    vali, test  by metric, (n_queries,); vali is empty where no queries validate
    """

    point: Point
    weights: Floats
    vali: Mapping[str, Floats]
    test: Mapping[str, Floats]


@dataclass(frozen=True)
class PaperOutcomes(TaskOutcome):
    """The outcome of a plan of a paper: of each value of the task's path, what `FittedPoint` has besides its point."""

    fits: tuple[tuple[Floats, Mapping[str, Floats], Mapping[str, Floats]], ...] = ()


@dataclass(frozen=True, eq=False)
class OnFold(EvaluationPlan[PaperOutcomes]):
    """Fits to a fold's training queries, scored on its validation queries, if any, and on its test queries."""

    split: QuerySplit
    stops_early: bool = True
    parts = ("validation and test queries",)

    @cached_property
    def scored(self) -> tuple[Queries, ...]:
        """The validation queries, if any, and the test queries. Raises DataError without test queries."""
        test = present(self.split.test, self.split, "test")
        return (test,) if self.split.vali is None else (self.split.vali, test)

    def queries(self, task: Task) -> Queries:
        """Return the queries that are scored."""
        return concatenate(self.scored)

    @property
    def evaluated(self) -> Ints:
        """The numbers of the queries that a value of a path is chosen by: those that validate, where there are any."""
        return np.arange(self.scored[0].n_queries)

    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the fits of the path."""
        for ranker in fitted(run, self.split.train, self.split.vali if self.stops_early else None):
            yield self.fit(run, ranker, np.concatenate([ranker.predict(part) for part in self.scored]))

    def fit(self, run: EvaluationRun, ranker: BaseRanker, scores: Floats) -> FittedQueries:
        """Return the fit of a ranker that gave these scores of the documents, and keep its weights."""
        run.collected.append(np.array(getattr(ranker, "coef_", np.zeros(0))))
        return FittedQueries(ranker, run.queries, np.arange(run.queries.n_queries), scores=scores)

    def finished(self, run: EvaluationRun, outcome: TaskOutcome) -> PaperOutcomes:
        """Return the outcome with its fits."""
        vali, test = np.split(np.arange(run.queries.n_queries), [run.queries.n_queries - self.scored[-1].n_queries])

        def values(place: int, part: Ints) -> Mapping[str, Floats]:
            return {name: run.values(place, name, part) for name in run.task.metrics}

        fits = ((weights, values(place, vali), values(place, test)) for place, weights in enumerate(run.collected))
        return PaperOutcomes(**vars(outcome), fits=tuple(fits))


@dataclass(frozen=True, eq=False)
class InOrder(OnFold):
    """The test queries in an order, each scored before the model learns from it."""

    order: Ints = field(kw_only=True)

    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the ranker that has gone through the queries."""
        yield self.fit(run, *progressive(run, run.queries, self.order))


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


def one_fold(entry: PublishedSystem, split: QuerySplit, seed: int) -> PartResult:
    """Fit on split's training queries, choose by its validation queries, and score its test queries."""
    test = present(split.test, split, "test")
    vali = present(split.vali, split, "vali") if len(entry.points) > 1 else split.vali
    fits = _tuned(entry, split, seed) if entry.evaluations else list(fits_of(entry, split, seed))
    best = dict.fromkeys(entry.labels, fits[0])
    if vali is not None and entry.choose == EACH:
        best = {m.label: max(fits, key=lambda fit: measured(m, fit.weights, fit.vali, vali)) for m in entry.measures}
    elif vali is not None:
        best = dict.fromkeys(entry.labels, max(fits, key=lambda fit: mean_of(fit.vali[entry.choose])))
    values = {m.label: measured(m, best[m.label].weights, best[m.label].test, test) for m in entry.measures}
    return PartResult({"": values}, {label: fit.point for label, fit in best.items()})


def every_point(entry: PublishedSystem, split: QuerySplit, seed: int) -> PartResult:
    """Fit every point on split's training queries, and score it on the test queries."""
    test = present(split.test, split, "test")
    values = {}
    for fit in fits_of(entry, split, seed):
        values[named(fit.point)] = {m.label: measured(m, fit.weights, fit.test, test) for m in entry.measures}
    return PartResult(values)


def one_order(entry: PublishedSystem, queries: Queries, order: Ints, seed: int) -> PartResult:
    """Score each query in that order by a new model, then update the model with it."""
    (fit,) = _fits(entry, InOrder(QuerySplit("", queries, test=queries), order=order), entry.points, seed)
    values = {m.label: measured(m, fit.weights, fit.test, queries) for m in entry.measures}
    means = np.cumsum(fit.test[PROGRESSIVE][order]) / np.arange(1, len(order) + 1)
    return PartResult({"": values}, curves={PROGRESSIVE: means})


def all_queries(split: QuerySplit) -> Queries:
    """Return training, validation and test queries together."""
    return concatenate([part for part in (split.train, split.vali, split.test) if part is not None])


def measured(measure: PublishedMeasure, weights: Floats, values: Mapping[str, Floats], queries: Queries) -> float:
    """Return one measure of a model with these weights, which has these values by metric and query, (n_queries,)."""
    if measure.metric is None:
        return float(np.count_nonzero(weights)) if measure.label == "weights" else latency(weights, queries)
    if measure.over == "queries":
        return measure.scale * mean_of(values[measure.spelling], queries.query_weights)
    counts = Judgements.of(queries).pairs()
    return measure.scale * float(np.average(np.nan_to_num(values[measure.spelling]), weights=counts))


def latency(weights: Floats, queries: Queries) -> float:
    """Return the microseconds to score one document of queries by the features whose weight is not zero."""
    used = np.flatnonzero(weights)
    features, weights = queries.features[:, used], weights[used].astype(queries.features.dtype)
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


def fits_of(entry: PublishedSystem, split: QuerySplit, seed: int) -> Iterator[FittedPoint]:
    """Yield every point of the grid, fitted; numbers of steps at the cost of one fit."""
    name, path = solver_class(entry.solver).path_parameter, tuple[int, ...]()
    plan, groups = OnFold(split, entry.stops_early), [[point] for point in entry.points]
    if len(groups) > 1 and name in STEPS and tuple(entry.grid) == (name,):
        path = tuple(sorted(int(str(value)) for value in entry.grid[name]))
        groups = [[{name: value} for value in path]]
    for points in groups:
        yield from _fits(entry, plan, points, seed, path)


def _fits(
    entry: PublishedSystem, plan: OnFold, points: Sequence[Point], seed: int, path: tuple[float, ...] = ()
) -> list[FittedPoint]:
    """Return the points of a path, fitted, or the one point that is given; the metric of the choice is the first."""
    chosen = () if entry.choose == EACH else (entry.choose,)
    metrics = (*chosen, *(m.spelling for m in entry.measures if m.metric is not None), PROGRESSIVE)
    parameters = entry.parameters if path else entry.at(points[0])
    task = Task("", tuple(dict.fromkeys(metrics)), entry.solver, parameters, seed, path=path)
    return [FittedPoint(point, *fit) for point, fit in zip(points, evaluate(plan, task).fits, strict=True)]


def _tuned(entry: PublishedSystem, split: QuerySplit, seed: int) -> list[FittedPoint]:
    """Return the points that the tuner asks for, fitted; it maximises the metric of the choice on vali."""
    fits, plan = list[FittedPoint](), OnFold(split, entry.stops_early)

    def value(point: Point) -> float:
        fits.extend(_fits(entry, plan, [point], seed))
        return mean_of(fits[-1].vali[entry.choose])

    search(entry.grid, value, sampler=entry.sampler, seed=seed, evaluations=entry.evaluations)
    return fits


def present(part: Queries | None, split: QuerySplit, name: str) -> Queries:
    """Return part, the queries of split called name. Raises DataError where there are none."""
    if part is None:
        raise DataError(
            f"{split.name} has no {name}.txt: the protocol of the papers needs train.txt, vali.txt and test.txt. "
            "Give a folder Fold1 ... Fold5 that holds all three."
        )
    return part


def truth(turn: float, features: int, every: int) -> Floats:
    """Return the weights after a part of a quarter turn, (features,), of length 1, of every so many features."""
    ends = np.random.default_rng(0).normal(size=(2, features)) * (np.arange(features) % every == 0)
    ends[1] -= ends[0] * (ends[0] @ ends[1]) / (ends[0] @ ends[0])
    ends /= np.linalg.norm(ends, axis=1, keepdims=True)
    weights: Floats = np.cos(0.5 * np.pi * turn) * ends[0] + np.sin(0.5 * np.pi * turn) * ends[1]
    return weights


def lists_of(day: int, generator: np.random.Generator) -> Queries:
    """Return the lists of a day with what was bought."""
    lists = LISTS[day % len(LISTS)]
    X = generator.normal(size=(lists * LENGTH, FEATURES))
    utility = X @ truth(day / (DAYS - 1), FEATURES, EVERY) + NOISE * generator.normal(size=len(X))
    return Queries.from_arrays(X, (utility > BOUGHT).astype(int), group=[LENGTH] * lists)


@dataclass(frozen=True, eq=False)
class DayFit:
    """A point, its values by list of the last day, each before it was learned from, and the ranker after all lists."""

    point: Point
    values: Floats
    ranker: PassRanker


@dataclass(frozen=True, eq=False)
class Passes:
    """Passes over the lists of some days, one for each point that is evaluated."""

    entry: PublishedSystem
    days: Sequence[Queries]
    seed: int
    fits: list[DayFit] = field(default_factory=list)

    def value(self, point: Point) -> Floats:
        """Return the metric of each list of the last day, before it is learned from."""
        ranker = make(self.entry.solver, self.entry.at(point), self.seed)
        assert isinstance(ranker, PassRanker)
        *_, scores = (ranker.progressive(part) for part in self.days)
        values = parse_metric(self.entry.choose).per_query(scores, self.days[-1])
        self.fits.append(DayFit(point, values, ranker))
        return values

    @property
    def best(self) -> DayFit:
        """The fit with the highest mean."""
        return max(self.fits, key=lambda fit: float(np.nanmean(fit.values)))


def daily(entry: PublishedSystem, seed: int) -> PartResult:
    """Return the metric of each day's model on the next day, (DAYS - 1,), and its mean."""
    generator, metric = np.random.default_rng(seed), parse_metric(entry.choose)
    days = [lists_of(day, generator) for day in range(DAYS)]
    judged, before = list[float](), list[tuple[Point, Floats]]()
    for day, following in enumerate(days[1:]):
        passes = Passes(entry, days[max(0, day + 1 - PAST) : day + 1], seed)
        if not entry.evaluations:
            passes.value({})
        elif entry.carries == "choice" and before:
            passes.value(before[0][0])
        else:
            search(
                entry.grid, passes.value, sampler=entry.sampler, seed=seed + SEEDS * day,
                evaluations=entry.evaluations, before=before if entry.carries == "trials" else (),
            )  # fmt: skip
        judged.append(metric.mean(passes.best.ranker.predict(following), following))
        fits = [passes.best] if entry.carries == "choice" else passes.fits
        before = [(fit.point, fit.values) for fit in fits]
    return PartResult({"": {entry.choose: float(np.mean(judged))}}, curves={"days": np.array(judged)})
