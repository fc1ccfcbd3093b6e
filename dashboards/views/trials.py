"""Trials: every finished trial with all that is known of it, to filter, sort and take away."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ranktune.dashboards.figures.panels import Cell, Panel, Table
from ranktune.dashboards.records.study import StudyData, Trial
from ranktune.dashboards.views.registry import finite

COLUMNS = (
    "trial", "solver", "value", "standard error", "stopped after", "give or take", "parameters", "on its path",
    "seconds", "weights", "us a document", "bytes", "ended", "worker", "restarts", "error", "warnings",
)  # fmt: skip


def panels(data: StudyData) -> list[Panel]:
    """Return the table of all trials."""
    note = "" if data.trials else "No trial has finished yet."
    if any(trial.stopped for _, trial in data.trials):
        note = (
            "The value of a trial that was stopped early is an estimate of what it would have been in full, give or "
            "take one standard deviation."
        )
    return [Panel("trials", "Every finished trial", trials_table(data), None, note)]


def trials_table(data: StudyData) -> Table:
    """Return a row a trial; columns in which nothing is known are left out."""
    several = len(data.splits) > 1
    others = [name for name in data.study.metrics if name != data.metric]
    columns = (*(("fold",) if several else ()), *COLUMNS[:6], *others, *COLUMNS[6:])
    rows = [[*((split,) if several else ()), *_row(trial, others)] for split, trial in data.trials]
    always = {"trial", "solver", "value", "parameters"}
    kept = [k for k, name in enumerate(columns) if name in always or any(row[k] not in (None, "", 0) for row in rows)]
    named = [data.metric if columns[k] == "value" else columns[k] for k in kept]
    return Table(tuple(named), [[row[k] for k in kept] for row in rows])


def _row(trial: Trial, others: list[str]) -> list[Cell]:
    return [
        trial.number,
        trial.solver,
        trial.value,
        trial.error_of_mean,
        trial.stopped or None,
        trial.error_of_estimate,
        *(trial.means.get(name) for name in others),
        ", ".join(f"{name}={_short(value)}" for name, value in trial.params.items()),
        _path(trial),
        trial.seconds,
        trial.nonzeros,
        trial.microseconds,
        trial.bytes,
        _when(trial.ended),
        trial.worker,
        trial.restarts,
        trial.error,
        "; ".join(trial.warnings),
    ]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _path(trial: Trial) -> str | None:
    """Return what the values of the parameter along which it was learnt scored, in the order in which they came."""
    told = ", ".join(f"{value:.4g}: {mean:.4f}" for value, mean in trial.path)
    return f"{trial.path_parameter} {told}" if told else None


def _when(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def trials_json(data: StudyData) -> str:
    """Return every trial with all its fields as JSON, parameters and metrics by name."""
    return json.dumps([{"fold": split} | _plain(trial) for split, trial in data.trials], allow_nan=False)


def _plain(trial: Trial) -> dict[str, Any]:
    plain: dict[str, Any] = finite(dict(vars(trial)))
    return plain


def trials_csv(data: StudyData) -> str:
    """Return every trial as csv: a column a parameter and a metric; empty where a trial has none.

    Texts that a spreadsheet would take for a formula get an apostrophe before them.
    """
    trials = [{"fold": split} | _flat(trial) for split, trial in data.trials]
    names = list(dict.fromkeys(name for trial in trials for name in trial))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([guarded(name) for name in names])
    for trial in trials:
        writer.writerow([guarded(trial.get(name)) for name in names])
    return buffer.getvalue()


def _flat(trial: Trial) -> dict[str, Any]:
    kept: dict[str, Any] = _plain(trial)
    kept["warnings"] = "; ".join(trial.warnings)
    kept |= {
        "parts": " ".join(map(str, trial.parts)),
        "path": " ".join(f"{value}:{mean}" for value, mean in trial.path),
    }
    kept |= {f"mean {name}": value for name, value in _mapping(kept.pop("means")).items()}
    return kept | {f"{trial.solver}.{name}": value for name, value in _mapping(kept.pop("params")).items()}


def _mapping(value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value
    return found


_FORMULA = re.compile(r"^[=+\-@\t\r]")


def guarded(value: Any) -> Any:
    """Return a cell that no spreadsheet runs: a text that begins like a formula begins with an apostrophe instead."""
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return "" if value is None else value
