"""The finished trials of a split in memory: the best of each solver, and what the next ones are raced against."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.evaluation.outcome_checks import judged_queries
from ranktune.tuner.evaluation.racing import Estimate, estimate_by_sample, estimate_in_full
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.samplers.first import is_first
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.statistics.pareto import within_limits
from ranktune.tuner.storage.record import PARTS, seconds_of
from ranktune.tuner.study.declaration import Study


class Incumbent(NamedTuple):
    """The best complete trial of a search that keeps the limits: its scores in full, and after samples of the queries.

    The scores are by query, of progressive evaluation by order of all queries.
    """

    solver: str
    value: float
    scores: Floats
    samples: tuple[Floats, ...]


class FinishedTrials:
    """The finished trials of a split, in the loop's memory.

    Attributes
    ----------
    best : dict of str to FrozenTrial
        The best complete trial of each solver.
    counted : array of shape (n_queries,) or None
        Which queries the metric counts; None before the first complete trial.
    """

    def __init__(self, study: Study, space: UnionSpace, weights: Floats | None = None) -> None:
        self._study, self._space, self.weights = study, space, weights
        self.best: dict[str, FrozenTrial] = {}
        self.counted: NDArray[np.bool_] | None = None
        self._first_seconds: dict[str, float] = {}
        self._incumbents: dict[str, Incumbent] = {}
        self._complete: set[str] = set()

    def add(self, search: str, trial: FrozenTrial, per_query: Floats | None, samples: tuple[Floats, ...] = ()) -> None:
        """Add a trial with its values by query, in full and after samples; None where it was not complete."""
        solver = str(trial.params[SOLVER])
        if trial.state != TrialState.COMPLETE or trial.value is None:
            return
        if is_first(trial.params, self._space):
            self._first_seconds[solver] = self._first_seconds.get(solver, 0.0) + seconds_of(trial)
        if solver not in self.best or trial.value > (self.best[solver].value or 0.0):
            self.best[solver] = trial
        if per_query is None:
            return
        if self.counted is None:
            self.counted = judged_queries(per_query)
        self._complete.add(solver)
        scores = per_query
        if self._study.plan == "progressive":
            scores = np.array(trial.user_attrs.get(PARTS, ()), dtype=np.float64)
        better = search not in self._incumbents or trial.value > self._incumbents[search].value
        if better and len(scores) and within_limits(trial.user_attrs, self._study.limits):
            self._incumbents[search] = Incumbent(solver, trial.value, scores, samples)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each solver's best trial, the best solver first; at least those of its first trials."""
        ranked = sorted(self.best.items(), key=lambda item: -(item[1].value or 0.0))
        return {solver: max(seconds_of(trial), self._first_seconds.get(solver, 0.0)) for solver, trial in ranked}

    def incumbent(self, search: str, solver: str = "") -> Incumbent | None:
        """Return what a trial of a search has to beat; None until one of its solver is complete."""
        return self._incumbents.get(search) if not solver or solver in self._complete else None

    def estimate(self, outcome: Outcome, task: Task) -> Estimate | None:
        """Return what a stopped trial would have scored in full, None for a trial that was not stopped."""
        if not outcome.stopped or task.incumbent is None:
            return None
        values = outcome.per_query[self._study.metric]
        if outcome.samples and len(outcome.steps) == len(outcome.samples):  # stopped before the fit to all queries
            sample = task.incumbent_samples[len(outcome.samples) - 1]
            return estimate_by_sample(values, task.incumbent, sample, self.weights)
        if self._study.plan == "progressive":
            parts = [value for _, _, value in outcome.steps]
            unknown = np.full(len(task.incumbent) - len(parts), np.nan)
            return estimate_in_full(np.concatenate([parts, unknown]), task.incumbent)
        return estimate_in_full(values, task.incumbent, self.weights)
