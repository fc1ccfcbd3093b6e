"""Fitting the configuration of a task within its limit: once, along a path of values, by growing, or query by query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol, Self, runtime_checkable

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker, Step
from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.boosting.lightgbm.library import MAX_KEPT_BYTES
from ranktune.solvers.boosting.lightgbm.ranker import LightGBMRanker
from ranktune.solvers.boosting.training_queries import NONE, kinds_of
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import warn
from ranktune.solvers.core.memory import format_size
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.origins import note_selection
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.registry import make, solver_class
from ranktune.tuner.evaluation.evaluate import EvaluationRun, LimitReached
from ranktune.tuner.evaluation.feature_costs import HALF_LIFE, SHARES, solver_parameters
from ranktune.tuner.evaluation.models import growing_model, rounds_of
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.policy.racing import GrowthRace
from ranktune.tuner.splits.memory import left
from ranktune.tuner.splits.store import read_development, read_part

BYTES_OF_DOCUMENT, BYTES_OF_FIT = 100, 120 << 20
"""What LightGBM takes besides a byte for each column of a document: for each document, and in all."""
KEEP_EVERY = 60.0
"""Seconds between two savings of a model that grows, and before the first."""


def unfitted(task: Task) -> BaseRanker:
    """Return the unfitted ranker of a task; boosting is fitted and stopped by the metric of the study."""
    ranker = make(task.solver, solver_parameters(task.parameters), task.seed)
    if task.threads > 1 and "threads" in ranker.get_params():
        ranker.set_params(threads=task.threads)
    if isinstance(ranker, BoostedRanker) and "metric" not in task.parameters:
        ranker.set_params(metric=task.metrics[0])
    if task.after:
        assert isinstance(ranker, Continuing), task.solver
        ranker.continue_from(load_model(task.after))
    return ranker


@runtime_checkable
class Continuing(Protocol):
    """A ranker whose fit can go on from a model: boosting adds trees, online solvers begin with its weights."""

    def continue_from(self, model: Model | None) -> Self:
        """Let the next calls of fit go on from a model, None: from zero."""
        ...


def fitted(
    run: EvaluationRun, train: Queries, vali: Queries | None = None, *, cut: bool = False
) -> Iterator[BaseRanker]:
    """Yield the fitted ranker, or that of each value of the path that is still racing, which is valid until the next.

    A fit without a path may stop early by vali. Raises LimitReached between two steps once the time is over, unless it
    is boosting that may be cut: then the ranker has the rounds until there.
    """
    ranker, path = unfitted(run.task), run.task.path[: run.racing]
    steps = ranker.fit_path(train, path) if path else ranker.fit_steps(train, vali=vali)
    while True:
        with run.fitting():
            step = next(steps, None)
        if step is None:
            break
        if isinstance(step, Step):
            run.report(time.monotonic(), step.iteration)
        if cut and run.is_over and isinstance(ranker, BoostedRanker) and n_rounds(ranker):
            run.unfinished = True
            break
        run.check_time()
        if isinstance(step, tuple):
            yield step[1]
    if not path:
        yield ranker


def grown(
    run: EvaluationRun, train: Queries, vali: Queries, keep: Callable[[BaseRanker], None] | None = None
) -> tuple[BaseRanker, str]:
    """Return a boosted ranker grown until validation queries stop it, or until the time is over.

    An unfinished model of the same task is continued. keep is called with the ranker once a minute. The text says after
    how many rounds it was stopped because it cannot become as good as the incumbent, empty where it was not. Raises
    LimitReached where the first round has not ended in time.
    """
    task, ranker = run.task, unfitted(run.task)
    run.rounds, bound = _continued(task, ranker, train), task.bound
    bound -= run.rounds
    ranker.set_params(**{task.path_parameter: bound})
    rate = float(ranker.get_params().get("learning_rate", 1.0))
    race = GrowthRace(task.incumbent, bound, rate, weights=vali.query_weights, race=task.race)
    metric = parse_metric(task.metrics[0])
    with run.fitting():
        last, took, saved = float("inf"), 0.0, time.monotonic()
        for step in ranker.fit_steps(train, vali=vali):
            now = time.monotonic()
            took, last = max(now - last, 0.0), now
            if now + took > run.deadline:  # another round would end too late
                run.unfinished = True
                break
            run.report(now, run.rounds + step.iteration, -step.objective)
            if keep is not None and now - saved > KEEP_EVERY:
                saved = now
                keep(ranker)
            if race.is_look(step.iteration) and race.is_lost(metric.per_query(ranker.predict(vali), vali)):
                return ranker, f"{step.iteration} rounds"
    if n_rounds(ranker) == 0:
        raise LimitReached
    run.rounds += n_rounds(ranker)
    run.unfinished = run.unfinished and max(run.rounds, task.least) < task.bound
    return ranker, ""


def _continued(task: Task, ranker: BaseRanker, train: Queries) -> int:
    """Let a ranker continue the unfinished model of its task; return the rounds of that, 0 where there is none."""
    earlier = growing_model(task) if task.keep and isinstance(ranker, BoostedRanker) else None
    if earlier is None or earlier.n_features != train.n_features or not isinstance(ranker, BoostedRanker):
        return 0
    rounds = rounds_of(task, earlier)
    ranker.continue_from(earlier).set_params(random_state=task.seed + rounds)  # other draws than in its first rounds
    return rounds


def n_rounds(ranker: BaseRanker) -> int:
    """Return the rounds of a boosted ranker, whose fit may have been cut; 0 where there is none."""
    trees = getattr(ranker, "trees_", None)
    rounds = getattr(ranker, "rounds_", ()) or (0 if trees is None else trees.n_trees,)
    return round(sum(rounds) / len(rounds))


@runtime_checkable
class _OnePassRanker(Protocol):
    def progressive(self, queries: Queries, order: Ints) -> Floats: ...


def progressive(run: EvaluationRun, queries: Queries, order: Ints) -> tuple[BaseRanker, Floats]:
    """Return a ranker fitted query by query, and its scores, (n_documents,), each from before its query was learned."""
    run.check_time()
    ranker = unfitted(run.task)
    assert isinstance(ranker, _OnePassRanker), run.task.solver
    with run.fitting():
        scores = ranker.progressive(queries, order)
    return ranker, scores


def sample(numbers: Ints, count: int, seed: int) -> Ints:
    """Return the numbers of a sample of that many queries, ascending; all where count is 0 or not smaller."""
    if not 0 < count < len(numbers):
        return numbers
    return np.sort(np.random.default_rng([seed, 7]).permutation(numbers)[:count])


def read_for_fit(task: Task, numbers: Ints) -> Queries:
    """Return the development queries of these numbers, to fit the configuration of a task to, with its recency weights.

    Where memory is limited, and the bins of LightGBM would take more, with the columns that are computed within
    queries, it is the largest sample of them that fits, and a RankTuneWarning says so.
    """
    room, development = left(), read_development(task.folder)
    if room is None or development.is_sparse or not issubclass(solver_class(task.solver), LightGBMRanker):
        return weighed(read_part(task.folder, numbers), task.parameters)
    documents, room_of_documents = int(development.lengths[numbers].sum()), room - BYTES_OF_FIT
    kinds = kinds_of(development, str(task.parameters.get("within_query", NONE)))
    columns = kinds * development.n_features
    in_blocks = documents * columns > MAX_KEPT_BYTES and documents * (columns + BYTES_OF_DOCUMENT) <= room_of_documents
    table = 0 if kinds == 1 or in_blocks else columns * development.features.dtype.itemsize
    of_document = columns + table + BYTES_OF_DOCUMENT
    most = room_of_documents // of_document
    if 0 < most < documents:
        count = max(int(most / documents * len(numbers)), 1)
        warn(
            f"{task.solver} is fitted to a sample of {count} of {len(numbers)} queries, whose bins fit the "
            f"{format_size(room)} of memory that are left. Give more memory (memory=), or fewer jobs."
        )
        numbers = sample(numbers, count, task.seed)
        documents = int(development.lengths[numbers].sum())
    queries, shared = read_part(task.folder, numbers), development.n_documents * (columns + table)
    is_kept = development.n_documents * max(columns, table) <= MAX_KEPT_BYTES
    if is_kept and documents + shared // of_document > most:
        queries = replace(queries, features_checked=True)  # without an origin, whose bins and columns it would share
    return weighed(queries, task.parameters)


def weighed(queries: Queries, parameters: Mapping[str, Value]) -> Queries:
    """Return queries to fit a configuration to, with weights that halve with each of its half-lives of age."""
    share = SHARES[str(parameters.get(HALF_LIFE, "inf"))]
    if share == np.inf or queries.times is None:
        return queries
    age = queries.time_of_query.max() - queries.time_of_query
    if not age.any():
        return queries
    weights = 0.5 ** (age / age.max() / share)
    result = queries.replaced(query_weights=queries.weight_of_query * weights)
    note_selection(result, queries, np.arange(queries.n_queries))
    return result
