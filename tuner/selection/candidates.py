"""The candidates of a split: the best trials of each solver.

Finalists (`ranktune.tuner.policy.trials`) are scored again on fresh folds over all development queries; the highest
there is chosen. Test queries are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.solvers.metrics.means import linearised
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.feature_sets import solver_parameters
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration that may be chosen on one split.

    number   of its trial; -1 for a blend, whose params are the shares of its members
    place    among the candidates of its solver, by their trials
    vali     (n validation queries,) what its trial scored, value is the mean; empty for a blend
    rescored (n development queries,) what it scored on fresh folds; None where it was not scored there
    vali_weights, rescored_weights  weights of these queries, None where each counts once
    scores   (n_documents,) float32, of the development documents on fresh folds; None likewise
    trials   how many trials of its solver succeeded; seconds: wall time of its own, and repeated the share of it that a
             fit repeats
    path     parameter and values that its trial went along, each fit from the one before; "" and () if it did not
    is_first whether a study tries it first of its solver, but for the value of its path
    members  of a blend, with their shares in the order of params
    """

    solver: str
    params: Mapping[str, Value]
    value: float
    vali: Floats
    trials: int
    rescored: Floats | None = None
    number: int = -1
    place: int = 0
    seconds: float = 0.0
    repeated: float = 1.0
    path: tuple[str, tuple[float, ...]] = ("", ())
    scores: NDArray[np.float32] | None = None
    members: tuple[Candidate, ...] = field(default=())
    vali_weights: Floats | None = None
    rescored_weights: Floats | None = None
    is_first: bool = False

    @property
    def parts(self) -> frozenset[str]:
        """The kinds of parts of its model (`ranktune.solvers.models.blend.parts_of`)."""
        if self.members:
            return frozenset[str]().union(*(member.parts for member in self.members))
        return solver_class(self.solver).model_parts(solver_parameters(self.params))

    @property
    def fit_seconds(self) -> float:
        """The seconds of its trial that a fit repeats."""
        return self.seconds * self.repeated

    @property
    def values(self) -> Floats:
        """The values by query that the choice is made by: on fresh folds, else those of the trial."""
        return self.vali if self.rescored is None else self.rescored

    @property
    def weights(self) -> Floats | None:
        """The weights of the queries of values."""
        return self.vali_weights if self.rescored is None else self.rescored_weights

    @property
    def merit(self) -> tuple[bool, float]:
        """Sort key: a score on fresh folds, where it has one, before that of the trial."""
        if self.rescored is None:
            return False, self.value
        return True, float(np.nanmean(linearised(self.rescored, self.rescored_weights)))


def task_of(study: Study, problem: Problem, candidate: Candidate, seed: int) -> Task:
    """Return the task of a candidate, which names what its trial left too."""
    return Task(str(problem.folder), study.metrics, candidate.solver, candidate.params, seed, budget=study.budget)


def best_by_solver(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the best candidate of each solver, best first: by fresh folds where rescored, else by their place."""

    def key(candidate: Candidate) -> tuple[bool, float]:
        is_rescored, value = candidate.merit
        return is_rescored, value if is_rescored else -candidate.place

    best: dict[str, Candidate] = {}
    for candidate in sorted(candidates, key=key, reverse=True):
        best.setdefault(candidate.solver, candidate)
    return sorted(best.values(), key=lambda candidate: candidate.merit, reverse=True)
