"""Fitting the configuration of a task within its limit: once, along a path of values, or by growing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.boosting.early_stopping import Patience
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.accumulator import ScoreAccumulator
from ranktune.tuner.evaluation.feature_sets import solver_parameters
from ranktune.tuner.evaluation.racing import GrowthRace
from ranktune.tuner.evaluation.task import Task


class LimitReached(Exception):
    """A task took longer than its limit, and nothing that was fitted until then counts."""


def fitted(
    task: Task, path: Sequence[float], train: Queries, scores: ScoreAccumulator, deadline: float
) -> Iterator[BaseRanker]:
    """Yield the fitted ranker, or the one of each value of the path, which is valid until the next.

    Raises LimitReached between two steps once the steady clock is past the deadline.
    """
    ranker = unfitted(task)
    steps = ranker.fit_path(train, path) if path else ranker.fit_steps(train)
    while True:
        with scores.fitting():
            step = next(steps, None)
        if step is None:
            break
        if time.monotonic() > deadline:
            raise LimitReached
        if isinstance(step, tuple):
            yield step[1]
    if not path:
        yield ranker


def grown(
    task: Task, train: Queries, vali: Queries, scores: ScoreAccumulator, deadline: float
) -> tuple[BaseRanker, str]:
    """Return a boosted ranker grown until validation queries stop it, or until the deadline of the steady clock.

    The text says after how many rounds it was stopped because it cannot become as good as the incumbent, empty where
    it was not. Raises LimitReached where the first round has not ended at the deadline.
    """
    ranker = unfitted(task)
    ranker.set_params(**{task.path_parameter: task.bound, "metric": task.metrics[0]})
    rate = float(ranker.get_params().get("learning_rate", 1.0))
    race = GrowthRace(task.incumbent, task.bound, rate, weights=vali.query_weights)
    metric = parse_metric(task.metrics[0])
    with scores.fitting():
        last, took = float("inf"), 0.0
        for step in ranker.fit_steps(train, vali=vali):
            now = time.monotonic()
            took, last = max(now - last, 0.0), now
            if now + took > deadline:  # another round would end too late
                break
            if race.is_look(step.iteration) and race.is_lost(metric.per_query(ranker.predict(vali), vali)):
                return ranker, f"{step.iteration} rounds"
    if n_rounds(ranker) == 0:
        raise LimitReached
    return ranker, ""


def patience_of(task: Task) -> Patience | None:
    """Return what ends the growth of a boosted ranker along its path of rounds; None for a path of other values."""
    if not (task.bound and task.path):
        return None
    return Patience(int(unfitted(task).get_params()["patience"]))


def n_rounds(ranker: BaseRanker) -> int:
    """Return the rounds of a boosted ranker, whose fit may have been cut; 0 where there is none."""
    trees = getattr(ranker, "trees_", None)
    rounds = getattr(ranker, "rounds_", ()) or (0 if trees is None else trees.n_trees,)
    return round(sum(rounds) / len(rounds))


def unfitted(task: Task) -> BaseRanker:
    """Return the ranker of a task, not fitted."""
    ranker = make(task.solver, solver_parameters(task.parameters), task.seed)
    if task.threads > 1 and "threads" in ranker.get_params():
        ranker.set_params(threads=task.threads)
    return ranker
