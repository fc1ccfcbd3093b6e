"""The incumbents: the best complete trial of each search, which the next trials are raced against."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.evaluation.racing import Estimate, estimate_by_sample, estimate_in_full
from ranktune.tuner.evaluation.task import Outcome
from ranktune.tuner.statistics.pareto import within_limits
from ranktune.tuner.storage.record import PARTS


class Incumbents:
    """The scores of the best complete trial of each search that keeps the limits.

    `progressive` is whether trials are evaluated by orders of all queries, rather than by folds; `weights` are those of
    the validation queries, None if they have none.
    """

    def __init__(self, limits: Mapping[str, float], *, progressive: bool, weights: Floats | None = None) -> None:
        self._limits, self._progressive, self._weights = limits, progressive, weights
        self._best: dict[str, tuple[float, Floats]] = {}
        self._samples: dict[str, tuple[str, tuple[Floats, ...]]] = {}
        self._solvers: set[str] = set()

    def update(
        self,
        search: str,
        solver: str,
        trial: FrozenTrial,
        per_query: Floats | None,
        samples: tuple[Floats, ...] = (),
    ) -> None:
        """Add a finished trial with its values by query, in full and after samples; None where it was not complete."""
        if trial.state != TrialState.COMPLETE or trial.value is None or per_query is None:
            return
        self._solvers.add(solver)
        values = np.array(trial.user_attrs.get(PARTS, ()), dtype=np.float64) if self._progressive else per_query
        better = search not in self._best or trial.value > self._best[search][0]
        if better and len(values) and within_limits(trial.user_attrs, self._limits):
            self._best[search] = trial.value, values
            self._samples[search] = solver, samples

    def scores(self, search: str, solver: str) -> Floats | None:
        """Return what a trial of solver has to beat; None until a trial of that solver is complete."""
        return self._best[search][1] if search in self._best and solver in self._solvers else None

    def leader(self, search: str) -> tuple[str, Floats | None, tuple[Floats, ...]]:
        """Return the solver of the best trial of any solver, what it scored, and that after samples of the queries."""
        solver, samples = self._samples.get(search, ("", ()))
        return solver, self._best[search][1] if solver else None, samples

    def estimate(
        self, outcome: Outcome, metric: str, incumbent: Floats | None, in_samples: tuple[Floats, ...] = ()
    ) -> Estimate | None:
        """Return what a stopped trial would have scored in full, None for a trial that was not stopped."""
        if not outcome.stopped or incumbent is None:
            return None
        values = outcome.per_query[metric]
        if outcome.samples and len(outcome.steps) == len(outcome.samples):  # stopped before the fit to all queries
            return estimate_by_sample(values, incumbent, in_samples[len(outcome.samples) - 1], self._weights)
        if self._progressive:
            parts = [value for _, _, value in outcome.steps]
            return estimate_in_full(np.concatenate([parts, np.full(len(incumbent) - len(parts), np.nan)]), incumbent)
        return estimate_in_full(values, incumbent, self._weights)
