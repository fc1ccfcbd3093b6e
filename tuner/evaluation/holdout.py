"""Evaluation on one training and one validation part: on samples of growing size first, then on all training queries.

Boosting grows until the validation queries stop it, or the time limit: one fit finds the number of rounds. A sample is
the first queries of one random order, so that a smaller sample is a part of a larger one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.models.base import Model
from ranktune.tuner.evaluation.accumulator import ScoreAccumulator
from ranktune.tuner.evaluation.feature_sets import selected_columns, solver_parameters
from ranktune.tuner.evaluation.fitting import fitted, grown, n_rounds
from ranktune.tuner.evaluation.kept import keep_model, keep_scores
from ranktune.tuner.evaluation.racing import is_behind
from ranktune.tuner.evaluation.refit import as_model
from ranktune.tuner.evaluation.samples import read_for_fit, sample
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.splits.parts import read_part
from ranktune.tuner.splits.plans import Fold


def vali_weights(task: Task, fold: Fold, development: Queries) -> Floats | None:
    """Return the weights of the validation queries that score a task, None if they have none."""
    if development.query_weights is None:
        return None
    return development.query_weights[sample(fold.vali, task.vali_queries, task.seed)]


def by_split(task: Task, fold: Fold, development: Queries) -> Outcome:
    """Return what a configuration scores on the validation queries. Raises LimitReached."""
    deadline = time.monotonic() + task.limit
    weights = vali_weights(task, fold, development)
    after: list[Floats] = []
    steps: list[tuple[float, str, float]] = []
    for place, size in enumerate(task.samples):
        outcome = _on_sample(
            replace(task, queries=size, incumbent=None, keep=False, keep_scores=False), fold, development, deadline
        )
        after.append(outcome.per_query[task.metrics[0]])
        part = f"a sample of {size} queries"
        steps.append((time.time(), part, mean_of(after[-1], weights)))
        if place < len(task.incumbent_samples) and is_behind(after[-1], task.incumbent_samples[place], weights):
            return replace(outcome, stopped=part, steps=tuple(steps), samples=tuple(after))
    outcome = _on_sample(task, fold, development, deadline)
    return replace(outcome, steps=(*steps, *outcome.steps), samples=tuple(after))


def _on_sample(task: Task, fold: Fold, development: Queries, deadline: float) -> Outcome:
    """Return what a configuration scores, fitted to the sample of the task, or to all training queries."""
    whole = read_for_fit(task, sample(fold.train, task.queries, task.seed))
    judged = sample(fold.vali, task.vali_queries, task.seed)
    columns = selected_columns(task.folder, task.plan, 0, task.budget, task.parameters)
    train, vali = (part.with_columns(columns) for part in (whole, read_part(task.folder, judged)))
    documents = development.documents_of(judged)
    scores = ScoreAccumulator(development, replace(task, path=()) if task.bound else task)
    best, model, rounds, stopped = 0, None, 0, ""
    for place, (ranker, stopped) in enumerate(_rankers(task, train, vali, scores, deadline)):
        scores.score(place, ranker, vali, judged, documents, columns)
        best = scores.best(judged, place + 1)
        rounds = n_rounds(ranker)
        if task.keep and best == place and not stopped:
            model = as_model(ranker, task, whole, columns)
    scores.end_part("all queries")
    outcome = scores.outcome(best, judged, stopped)
    if task.bound:
        chosen = float(max(rounds, task.least))
        value = mean_of(outcome.per_query[task.metrics[0]], scores.weights(judged))
        outcome = replace(outcome, chosen=chosen, path=((chosen, value),))
    if model is not None:
        _keep(task, outcome, model, documents)
    return outcome


def _rankers(
    task: Task, train: Queries, vali: Queries, scores: ScoreAccumulator, deadline: float
) -> Iterator[tuple[BaseRanker, str]]:
    """Yield the rankers of a task, and where the fit was stopped."""
    if task.bound:
        yield grown(task, train, vali, scores, deadline)
    else:
        for ranker in fitted(task, task.path, train, scores, deadline):
            yield ranker, ""


def _keep(task: Task, outcome: Outcome, model: Model, documents: Ints | slice) -> None:
    """Leave the scores of the validation documents and the model for the end of the study."""
    assert outcome.scores is not None
    final = replace(task, parameters=chosen_parameters(task, outcome))
    keep_scores(final, outcome.scores[documents])
    keep_model(final, replace(model, parameters=solver_parameters(final.parameters)))  # type: ignore[type-var]


def chosen_parameters(task: Task, outcome: Outcome) -> dict[str, Value]:
    """Return the parameters of a task with the best value of its path."""
    name, given = outcome.path_parameter, dict(task.parameters)
    if outcome.chosen is None or name not in given:
        return given
    return {**given, name: int(outcome.chosen) if isinstance(given[name], int) else outcome.chosen}
