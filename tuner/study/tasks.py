"""From a solver and its parameters to what a worker has to evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ranktune.solvers.core.space import Choice, Int, Value
from ranktune.solvers.registry import make, solver_class
from ranktune.tuner.evaluation.feature_costs import solver_parameters
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.study.declaration import Study

ROUND_STEP = 1.15
"""Factor from the rounds after which a model that grows is scored on folds to the next ones: the resolution of the
rounds that are chosen. A finer one takes more time to score."""


class Tasks:
    """The tasks of a study on the problem in folder."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study, self._folder, self._space = study, str(folder), study.union_space()

    def __call__(self, solver: str, parameters: Mapping[str, Value]) -> Task:
        """Return the task of these parameters, with the path of values that one fit can evaluate too."""
        study = self.study
        name, path = self._path(solver, parameters)
        bound, least = self._bounds(solver, name)
        path = rounds_between(least, bound) if bound else path
        return Task(
            self._folder,
            study.metrics,
            solver,
            parameters,
            study.seed,
            keep=not study.strict and study.plan != "progressive",
            bound=bound,
            least=least,
            path_parameter=name,
            path=path,
            budget=study.budget,
        )

    def of(self, params: Mapping[str, Value], path: bool = False) -> Task:
        """Return the task of parameters by flat name, with an expensive path only if `path`."""
        solver, parameters = self._space.split(params)
        task = self(solver, parameters)
        return without_path(task) if solver_class(solver).path_expensive and not path else task

    def _bounds(self, solver: str, path_parameter: str) -> tuple[int, int]:
        """Return the most rounds of a solver that validation queries stop, and the fewest; 0, 1 for other solvers."""
        if not path_parameter or not solver_class(solver).grows:
            return 0, 1
        parameter = self._space.parameter(f"{solver}.{path_parameter}")
        assert isinstance(parameter, Int)
        confined = parameter not in solver_class(solver).space
        return (parameter.high if confined else POLICY.scoring.max_rounds), parameter.low

    def _path(self, solver: str, parameters: Mapping[str, Value]) -> tuple[str, tuple[float, ...]]:
        """Return the path parameter and its values, "" and () if there is none."""
        if self.study.full or self.study.plan == "progressive":
            return "", ()
        name = make(solver, solver_parameters(parameters), self.study.seed).path_parameter
        if name is None or name not in parameters:
            return "", ()
        parameter, value = self._space.parameter(f"{solver}.{name}"), parameters[name]
        if isinstance(parameter, Choice) or not isinstance(value, int | float):
            return "", ()
        return name, solver_class(solver).path_values(parameter, value)


def rounds_between(least: int, bound: int) -> tuple[int, ...]:
    """Return the rounds after which folds compare a model that grows, from the fewest to the most."""
    count = int(np.ceil(np.log(bound / least) / np.log(ROUND_STEP))) if bound > least else 0
    return tuple(dict.fromkeys(round(value) for value in np.geomspace(least, bound, count + 1)))


def without_path(task: Task) -> Task:
    """Return the task of a single value of the path parameter."""
    return replace(task, path_parameter="", path=())
