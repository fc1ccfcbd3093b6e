"""The incumbent itself, learning on: boosting adds trees to it, an online solver begins with its weights.

The part of its configuration with the largest share whose solver can do that is evaluated by the plan of the study. For
each fold the incumbent goes on with the queries of the other folds, so that it is judged on queries that neither knows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.data.columns.encoding import Age, TableEncoding
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.evaluate import attempt, evaluate
from ranktune.tuner.evaluation.fitting import Continuing
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.evaluation.task import Task, chosen_parameters
from ranktune.tuner.selection.finals import Candidate, Finalist, entry_of, is_within, task_of
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import Executor

START = "continued.json"
"""The incumbent on the columns of the new data, in the folder of the problem."""


def continued(
    study: Study, problem: SplitProblem, former: Candidate, model: Path, executor: Executor, deadline: Deadline
) -> tuple[Candidate, Task] | None:
    """Return the incumbent that goes on, with what it scores by validation and the task of its final fit.

    None where no part of its configuration can go on from its model, where the data lack one of its features,
    where a system that must load the model could not, and where the fits fail or the time is over.
    """
    parts = former.members or (former,)
    shares = [float(str(share)) for share in former.params.values()] if former.members else [1.0]
    able = [k for k, member in enumerate(parts) if isinstance(make(member.solver, {}, study.seed), Continuing)]
    if not able or study.plan == "progressive" or study.budget is not None:
        return None
    member = parts[max(able, key=lambda k: shares[k])]
    placed = placed_on(load_model(model), problem.development)
    if placed is None or not can_load(study.serve, former.parts | member.parts):
        return None
    start = str(problem.folder / START)
    with writing(problem.folder):
        placed.save(start)
    task = Tasks(study, problem.folder)(member.solver, member.params)
    task = replace(task, keep=False, after=start, limit=deadline.left)
    outcome = executor.submit(attempt, task).result()
    if outcome.error or outcome.stopped:
        return None
    values, weights = outcome.per_query[study.metric], problem.validation_queries.query_weights
    found = chosen_parameters(task, outcome)
    best = Candidate(member.solver, found, mean_of(values, weights), values, 1, vali_weights=weights)
    return best, replace(task_of(study, problem, best), after=start, limit=deadline.left)


def placed_on(model: Model, queries: Queries) -> Model | None:
    """Return a model that reads its features by name from the columns of queries, None where one is not there.

    The levels of a category may come in another order on another day, but ages before another date are other numbers.
    Without names the columns are the features.
    """
    names = queries.feature_names
    if model.feature_names is None or names is None:
        return model if model.feature_names == names and model.n_features == queries.n_features else None
    now = TableEncoding() if queries.encoding is None else queries.encoding
    before = TableEncoding() if model.encoding is None else model.encoding
    moved = {c for c, kind in before.columns.items() if isinstance(kind, Age) and now.columns.get(c) != kind}
    used = before.sources([model.feature_names[k] for k in model.used_features]).values()
    if not set(model.feature_names) <= set(names) or not moved.isdisjoint(used):
        return None
    columns = np.array([names.index(name) for name in model.feature_names], dtype=np.int64)
    return model.on_columns(columns, len(names), names).replaced(encoding=queries.encoding)


def entry_of_continued(
    study: Study, problem: SplitProblem, candidate: Candidate, task: Task, executor: Executor
) -> Finalist | None:
    """Return a candidate that goes on from the incumbent, with its model and test scores, None beyond the limits."""
    made = executor.submit(evaluate, Final(study.refit or not problem.given_split), task).result()
    entry: Finalist = executor.call(entry_of, study, problem, candidate, made)
    return entry if is_within(study, entry) else None


def is_preferred(continued: Candidate, anew: Candidate, fresh: NDArray[np.bool_]) -> bool:
    """Return whether validation prefers what goes on to what is fitted anew, by queries the incumbent does not know.

    fresh, (n_vali,), says which these are.
    """
    if len(continued.vali) != len(fresh) or not fresh.any():
        return False
    if len(anew.vali) != len(fresh):
        return True
    weights = None if continued.vali_weights is None else continued.vali_weights[fresh]
    return mean_of(continued.vali[fresh], weights) > mean_of(anew.vali[fresh], weights)
