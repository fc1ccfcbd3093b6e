"""A finished trial as pages show it, and summaries of several trials: counts, the best, the best so far.

Trials and the leaderboard as columns, and as a data frame of the library that is installed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from ranktune.solvers.names import SOLVER, current_names
from ranktune.tuner.selection.results import Result
from ranktune.tuner.storage import attributes as keys

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import JsonView
    from ranktune.solvers.core.space import Value


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
    begun: float | None = None
    ended: float | None = None
    error_of_mean: float | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    nonzeros: float | None = None
    microseconds: float | None = None
    bytes: float | None = None
    worker: str = ""
    restarts: int = 0
    error: str | None = None
    warnings: tuple[str, ...] = ()
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
        chosen = (mean for place, mean in path if place == params.get(path_parameter))
        level = 0.0 if value is None else value - next(chosen, value)
        of_same_name = ((f.name, attributes.get(f.name)) for f in fields(cls))
        return cls(**{name: _fixed(stored) for name, stored in of_same_name if stored is not None} | {
            "solver": solver, "params": params, "value": value, "begun": begun, "ended": ended, "split": split,
            "error_of_mean": _root(attributes.get(keys.VARIANCE)),
            "error_of_estimate": _root(attributes.get(keys.PARTIAL)),
            "path_parameter": str(path_parameter),
            # the metric on the evaluated parts may be far from an estimate
            "path": tuple((float(place), float(mean) + level) for place, mean in path),
        })  # fmt: skip

    @property
    def place(self) -> int:
        """The number from 1."""
        return self.number + 1

    @property
    def state(self) -> str:
        """How it ended: "complete", "stopped" or "failed"."""
        return "failed" if self.value is None else "stopped" if self.stopped else "complete"

    @property
    def wall(self) -> float:
        """The wall time, in seconds."""
        return (self.ended or 0.0) - (self.begun or 0.0)

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


def _fixed(stored: Any) -> Any:
    """Return a list, and those in it, as tuples."""
    return tuple(map(_fixed, stored)) if isinstance(stored, list) else stored


def _root(variance: float | None) -> float | None:
    return math.sqrt(variance) if variance is not None and variance >= 0.0 else None


@dataclass(frozen=True)
class TrialCounts:
    """How many trials were evaluated in full, stopped early or failed, and their processor seconds.

    saved estimates the seconds that early stopping saved: parts that were skipped take as long as the others.
    """

    complete: int
    stopped: int
    failed: int
    spent: float
    saved: float

    @property
    def ended(self) -> list[tuple[str, int]]:
        """How many trials ended in each way that some did."""
        ways = ("evaluated in full", self.complete), ("stopped early", self.stopped), ("failed", self.failed)
        return [(way, count) for way, count in ways if count]


def counts(trials: Iterable[Trial]) -> TrialCounts:
    """Return how trials ended."""
    listed = list(trials)
    states = [trial.state for trial in listed]
    spent = sum(trial.seconds for trial in listed)
    saved = sum(trial.full_seconds for trial in listed) - spent
    return TrialCounts(states.count("complete"), states.count("stopped"), states.count("failed"), spent, saved)


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """Return the best of the trials that were evaluated in full, the first of equals; None where there is none."""
    known = [(trial.full_value, trial) for trial in trials if trial.full_value is not None]
    return max(known, key=lambda scored: scored[0])[1] if known else None


LIBRARIES = ("pandas", "polars", "pyarrow")
"""Libraries of data frames, the preferred first."""


def frame(columns: Mapping[str, Sequence[object]]) -> Any:
    """Return columns as a data frame of the first library that is installed, as a dict where none is."""
    for library in filter(find_spec, LIBRARIES):
        return getattr(import_module(library), "table" if library == "pyarrow" else "DataFrame")(dict(columns))
    return dict(columns)


def trial_columns(trials: Sequence[Trial]) -> dict[str, list[object]]:
    """Return trials as columns; a parameter that a trial does not have is None."""
    return _columns([
        {
            "split": trial.split, "number": trial.number, "solver": trial.solver, "state": trial.state,
            "value": trial.value, "seconds": trial.seconds, "features": trial.nonzeros, "bytes": trial.bytes,
            "microseconds": trial.microseconds, "begun": trial.begun, "ended": trial.ended, "error": trial.error,
            **{f"{trial.solver}.{name}": value for name, value in trial.params.items()},
        }
        for trial in trials
    ])  # fmt: skip


def leaderboard_columns(result: Result) -> dict[str, list[object]]:
    """Return the leaderboard as columns: an interval as two, the parameters as JSON."""
    rows = []
    for line in result.as_dict()["leaderboard"]:
        row: dict[str, object] = {}
        for name, value in line.items():
            if name.endswith("_interval"):
                row |= dict(zip((f"{name[:-9]}_low", f"{name[:-9]}_high"), value or (None, None), strict=True))
            elif name == "params":
                row[name] = json.dumps(value)
            elif name != "against":
                row[name] = value
        rows.append(row)
    return _columns(rows)


def _columns(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _of_one_type([row.get(name) for row in rows]) for name in names}


def _of_one_type(values: list[object]) -> list[object]:
    """Return values of one type besides None: numbers, else text, as data frames need them."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    if kinds <= {int, float}:
        return [float(value) if isinstance(value, int) else value for value in values]
    return [None if value is None else str(value) for value in values]
