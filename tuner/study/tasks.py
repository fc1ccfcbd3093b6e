"""From a solver and its parameters to what a worker has to evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ranktune.solvers.core.space import Choice, Value
from ranktune.solvers.registry import make, solver_class
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.study.declaration import Study


class Tasks:
    """The tasks of a study on the problem in folder."""

    def __init__(self, study: Study, folder: Path) -> None:
        self._study, self._folder, self._space = study, str(folder), study.union_space()

    def __call__(self, solver: str, parameters: Mapping[str, Value]) -> Task:
        """Return the task of these parameters, with the path of values that one fit can evaluate too."""
        name, path = self._path(solver, parameters)
        return Task(
            self._folder, self._study.metrics, solver, parameters, self._study.seed, path_parameter=name, path=path
        )

    def of(self, params: Mapping[str, Value]) -> Task:
        """Return the task of parameters by flat name, with a path only if the path is cheap."""
        solver, parameters = self._space.split(params)
        task = self(solver, parameters)
        return replace(task, path_parameter="", path=()) if solver_class(solver).path_expensive else task

    def _path(self, solver: str, parameters: Mapping[str, Value]) -> tuple[str, tuple[float, ...]]:
        """Return the path parameter and its values, "" and () if there is none."""
        if self._study.full or self._study.plan == "progressive":
            return "", ()
        name = make(solver, dict(parameters), self._study.seed).path_parameter
        if name is None or name not in parameters:
            return "", ()
        parameter, value = self._space.parameter(f"{solver}.{name}"), parameters[name]
        if isinstance(parameter, Choice) or not isinstance(value, int | float):
            return "", ()
        return name, solver_class(solver).path_values(parameter, value)
