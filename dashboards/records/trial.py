"""A finished trial as pages show it, and summaries of several trials: counts, the best, the best so far."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from ranktune.solvers.names import SOLVER, current_names
from ranktune.tuner.storage import attributes as keys

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import JsonView
    from ranktune.solvers.core.space import Value

OF_SAME_NAME = keys.NONZEROS, keys.MICROSECONDS, keys.BYTES, keys.COST, keys.EXPECTED_GAIN, keys.LEAD
_PART = re.compile(r"(\d+) of (\d+)$")


@dataclass(frozen=True)
class Trial:
    """A finished trial: evaluated in full, stopped early because it was significantly worse, or failed.

    number        its place in the order in which trials were requested, from 0; place: the same from 1, as it is shown
    params        of its solver, under their own names; active parameters only
    value         the metric on the validation queries, None where it failed; means: the mean of every metric. The value
                  of a trial that was stopped early estimates its full value: it can be drawn, but is never the best
    error_of_mean standard error of value over the evaluated queries
    seconds       processor time of the fits; microseconds: to score a document; bytes: of the model;
                  nonzeros: features; cost: what these cost, None where the study gives no costs
    begun, ended  seconds since 1970; worker: the process; restarts: how often its worker was lost before
    stopped       the part of the plan after which it was stopped, "fold 2 of 5", "" for none; error_of_estimate: the
                  standard deviation of the estimated value; parts: the score of each evaluated part
    path          (value of path_parameter, metric) of each model of a regularization path, the requested value last;
                  params holds the best of them. path_parameter is "" where one fit gave one model
    learning_curve (queries learned from, metric of the next ones) of an online learner in a progressive plan
    origin        why it was tried, one of ORIGINS, the name of a sampler, or unknown; with the gain over the best trial
                  that was then expected, and the lead over it where the trial became the best
    split         name of its split, "" where the study has one
    """

    number: int
    solver: str
    params: Mapping[str, Value]
    value: float | None
    error_of_mean: float | None
    means: Mapping[str, float]
    seconds: float
    nonzeros: float | None
    microseconds: float | None
    bytes: float | None
    begun: float | None
    ended: float | None
    worker: str
    restarts: int
    error: str | None
    warnings: tuple[str, ...]
    stopped: str = ""
    error_of_estimate: float | None = None
    parts: tuple[float, ...] = ()
    path_parameter: str = ""
    path: tuple[tuple[float, float], ...] = ()
    learning_curve: tuple[tuple[float, float], ...] = ()
    split: str = ""
    cost: float | None = None
    origin: str = "unknown"
    expected_gain: float | None = None
    lead: float | None = None

    @classmethod
    def from_record(
        cls,
        flat_params: Mapping[str, Value],
        value: float | None,
        attributes: JsonView,
        begun: float | None,
        ended: float | None,
        split: str = "",
    ) -> Self:
        """Return the trial that a record holds as an Optuna trial with parameters by flat name."""
        flat_params = current_names(flat_params)
        solver = str(flat_params[SOLVER])
        prefix = f"{solver}."
        params = {name.removeprefix(prefix): v for name, v in flat_params.items() if name.startswith(prefix)}
        path_parameter, path = next(iter(dict(attributes.get(keys.PATH) or {}).items()), ("", ()))
        return cls(
            number=int(attributes[keys.NUMBER]),
            solver=solver,
            params=params,
            value=value,
            error_of_mean=_root(attributes.get(keys.VARIANCE)),
            means=dict(attributes.get(keys.MEANS, {})),
            seconds=float(attributes.get(keys.SECONDS, 0.0)),
            **{name: attributes.get(name) for name in OF_SAME_NAME},
            origin=attributes.get(keys.ORIGIN, "unknown"),
            begun=begun,
            ended=ended,
            worker=str(attributes.get(keys.WORKER, "")),
            restarts=int(attributes.get(keys.RESTARTS, 0)),
            error=attributes.get(keys.ERROR),
            warnings=tuple(attributes.get(keys.WARNINGS, ())),
            stopped=str(attributes.get(keys.STOPPED, "")),
            error_of_estimate=_root(attributes.get(keys.PARTIAL)),
            parts=tuple(float(part) for part in attributes.get(keys.PARTS, ())),
            path_parameter=str(path_parameter),
            path=_levelled(path, params.get(path_parameter), value),
            learning_curve=tuple((float(n), float(v)) for n, v in attributes.get(keys.LEARNING_CURVE, ())),
            split=split,
        )

    @property
    def place(self) -> int:
        """The number from 1."""
        return self.number + 1

    @property
    def flat_params(self) -> dict[str, Value]:
        """The parameters by flat name, with the solver."""
        return {SOLVER: self.solver} | {f"{self.solver}.{name}": value for name, value in self.params.items()}

    @property
    def full_value(self) -> float | None:
        """The value of a trial that was evaluated in full, None of one that failed or was stopped early."""
        return None if self.stopped else self.value

    @property
    def requested_params(self) -> Mapping[str, Value]:
        """The parameters that were requested; params has the best value of the path instead."""
        return {**self.params, self.path_parameter: self.path[-1][0]} if self.path else self.params

    @property
    def requested_value(self) -> float | None:
        """The metric at the requested parameters, None where the trial was not evaluated in full."""
        return self.path[-1][1] if self.path and self.full_value is not None else self.full_value

    def shifted(self, by: float) -> Self:
        """Return the trial with its value and its path moved by an amount; itself where it failed or does not move."""
        if self.value is None or by == 0.0:
            return self
        return replace(self, value=self.value + by, path=tuple((place, mean + by) for place, mean in self.path))

    @property
    def full_seconds(self) -> float:
        """The seconds that all parts take, extrapolated from those that were evaluated."""
        parts = _PART.search(self.stopped)
        done, of = (int(parts[1]), int(parts[2])) if parts else (1, 1)
        return self.seconds * max(of / max(done, 1), 1.0)


def _levelled(
    path: Iterable[tuple[float, float]], chosen: Value | None, value: float | None
) -> tuple[tuple[float, float], ...]:
    """Return a path shifted to the trial's value: the metric on the evaluated parts may be far from an estimate."""
    means = tuple((float(place), float(mean)) for place, mean in path)
    level = next((value - mean for place, mean in means if place == chosen and value is not None), 0.0)
    return tuple((place, mean + level) for place, mean in means)


def _root(variance: float | None) -> float | None:
    return math.sqrt(variance) if variance is not None and variance >= 0.0 else None


@dataclass(frozen=True)
class Counts:
    """How many trials were evaluated in full, stopped early or failed, and their processor seconds.

    saved estimates the seconds that early stopping saved: parts that were skipped take as long as the others.
    """

    complete: int
    stopped: int
    failed: int
    spent: float
    saved: float


def counts(trials: Iterable[Trial]) -> Counts:
    """Return how trials ended."""
    counted = list(trials)
    return Counts(
        complete=sum(trial.full_value is not None for trial in counted),
        stopped=sum(bool(trial.stopped) for trial in counted),
        failed=sum(trial.value is None for trial in counted),
        spent=sum(trial.seconds for trial in counted),
        saved=sum(trial.full_seconds - trial.seconds for trial in counted),
    )


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """Return the best of the trials that were evaluated in full, the first of equals; None where there is none."""
    known = [(trial.full_value, trial) for trial in trials if trial.full_value is not None]
    return max(known, key=lambda scored: scored[0])[1] if known else None
