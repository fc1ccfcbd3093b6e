"""Trials: every finished trial with all of its values, to filter, sort and save."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ranktune.dashboards.figures.panels import Cell, Frame, Panel
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial, counts


def panels(data: StudyData) -> list[Panel]:
    """Return the table of all trials."""
    note = "" if data.trials else "No trial has finished yet."
    if any(trial.stopped for trial in data.trials):
        note = "The value of a trial that was stopped early is an estimate; its error is one standard deviation."
    n = counts(data.trials)
    answer = f"{n.complete} evaluated in full, {n.stopped} stopped early, {n.failed} failed." * bool(data.trials)
    return [Panel("trials", "Every finished trial", trials_table(data), None, note, "", answer)]


def trials_table(data: StudyData) -> Frame:
    """Return a row a trial, with a column for each parameter, which solvers share; empty columns are left out."""
    always = ["trial", "solver", data.metric]
    parameters = list(dict.fromkeys(name for trial in data.trials for name in trial.params))
    rows = [_row(trial, data.study.metrics, data.metric, parameters) for trial in data.trials]
    names = list(rows[0]) if rows else always
    names = [name for name in names if name in always or any(row[name] not in (None, "", 0) for row in rows)]
    return Frame(tuple(names), [[row[name] for name in names] for row in rows])


def _row(trial: Trial, metrics: Sequence[str], metric: str, parameters: Sequence[str]) -> dict[str, Cell]:
    """Return the cells of a trial by column; a parameter that is called like another column is marked as one."""
    when = None if trial.ended is None else datetime.fromtimestamp(trial.ended, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    path = ", ".join(f"{value:.4g}: {mean:.4f}" for value, mean in trial.path)
    before: dict[str, Cell] = {
        "fold": trial.split, "trial": trial.place, "solver": trial.solver, metric: trial.value,
        "standard error": trial.error_of_mean, "stopped after": trial.stopped or None,
        "error of estimate": trial.error_of_estimate, "origin": trial.origin,
        "expected gain": trial.expected_gain, "lead": trial.lead,
        **{name: trial.means.get(name) for name in metrics if name != metric},
    }  # fmt: skip
    after: dict[str, Cell] = {
        "path": f"{trial.path_parameter} {path}" if path else None, "seconds": trial.seconds,
        "weights": trial.nonzeros, "us a document": trial.microseconds, "bytes": trial.bytes, "ended": when,
        "worker": trial.worker, "restarts": trial.restarts, "error": trial.error,
        "warnings": "; ".join(trial.warnings),
    }  # fmt: skip
    taken = before.keys() | after.keys()
    given = {f"parameter {name}" if name in taken else name: trial.params.get(name) for name in parameters}
    return before | given | after
