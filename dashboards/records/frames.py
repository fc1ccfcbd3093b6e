"""Trials and the leaderboard as columns, and as a data frame of the library that is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ranktune.dashboards.records.trial import Trial
from ranktune.tuner.selection.results import Result

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Libraries of data frames, the preferred first."""

Columns = Mapping[str, Sequence[object]]


def frame(columns: Columns) -> Any:
    """Return columns as a data frame of the first library that is installed, as a dict where none is."""
    for library in LIBRARIES:
        if find_spec(library) is not None:
            return getattr(import_module(library), "table" if library == "pyarrow" else "DataFrame")(dict(columns))
    return dict(columns)


def trial_columns(trials: Sequence[Trial]) -> dict[str, list[object]]:
    """Return trials as columns; a parameter that a trial does not have is None."""
    rows: list[dict[str, object]] = [
        {
            "split": trial.split, "number": trial.number, "solver": trial.solver, "state": _state(trial),
            "value": trial.value, "seconds": trial.seconds, "features": trial.nonzeros, "bytes": trial.bytes,
            "microseconds": trial.microseconds, "begun": trial.begun, "ended": trial.ended, "error": trial.error,
        }
        for trial in trials
    ]  # fmt: skip
    for row, trial in zip(rows, trials, strict=True):
        row |= {f"{trial.solver}.{name}": value for name, value in trial.params.items()}
    return _columns(rows)


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
            elif not isinstance(value, dict):
                row[name] = value
        row.pop("against", None)  # a dict, or None
        rows.append(row)
    return _columns(rows)


def _state(trial: Trial) -> str:
    return "failed" if trial.value is None else "stopped" if trial.stopped else "complete"


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
