"""Compare: two studies side by side, their settings, their best value by number of trials, their leaderboards."""

from __future__ import annotations

import numpy as np

from ranktune.dashboards.analysis.tuning_value import best_by_number, best_so_far_figure, mean_of_splits
from ranktune.dashboards.figures.panels import Cell, Panel, Table
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views.overview import leaderboard_figure, leaderboard_table, sentences, setting
from ranktune.solvers.core.arrays import Floats

NO_CURVE = np.full(0, np.nan)


def panels(a: StudyData, b: StudyData) -> list[Panel]:
    """Return the settings that differ, the best so far, and the leaderboards."""
    return [_settings(a, b), _race(a, b), _leaderboard("first", a), _leaderboard("second", b)]


def _settings(a: StudyData, b: StudyData) -> Panel:
    first, second = a.study.as_dict(), b.study.as_dict()
    rows: list[list[Cell]] = [
        [name, setting(first.get(name)), setting(second.get(name))]
        for name in dict.fromkeys([*first, *second])
        if name != "name" and first.get(name) != second.get(name)
    ]
    note = "" if rows else "Every setting is the same."
    columns = ("setting", *_names(a, b))
    return Panel("settings", "Settings that differ", Table(columns, rows), None, note)


def _names(a: StudyData, b: StudyData) -> tuple[str, str]:
    return (a.name, b.name) if a.name != b.name else (f"{a.name} (first)", f"{b.name} (second)")


def _race(a: StudyData, b: StudyData) -> Panel:
    curves = {
        name: mean_of_splits([best_by_number(split) for split in study.splits])
        for name, study in zip(_names(a, b), (a, b), strict=True)
    }
    title = f"Best validation {a.metric} by number of trials"
    longest = max(len(curve) for curve in curves.values())
    shown = [k for k in range(longest) if k == longest - 1 or any(_changed(curve, k) for curve in curves.values())]
    rows = [[k + 1, *(_at(curve, k) for curve in curves.values())] for k in shown]
    table = Table(("trials", *curves), rows)
    if a.metric != b.metric:
        why = f"The studies maximise different metrics ({a.metric} and {b.metric}): their values are not comparable."
        return Panel("race", title, table, None, why)
    if not any(np.isfinite(curve).any() for curve in curves.values()):
        return Panel("race", title, table, None, "No trial has succeeded yet.")
    same = a.study.data == b.study.data
    note = "" if same else "The studies name different data: their values compare only where the content is equal."
    return Panel("race", title, table, best_so_far_figure(a, curves, None, NO_CURVE), note)


def _changed(curve: Floats, k: int) -> bool:
    return k < len(curve) and bool(np.isfinite(curve[k])) and (k == 0 or curve[k] != curve[k - 1])


def _at(curve: Floats, k: int) -> float | None:
    known = curve[: k + 1]
    return float(known[-1]) if len(known) and np.isfinite(known[-1]) else None


def _leaderboard(key: str, study: StudyData) -> Panel:
    title = f"Leaderboard of {study.name}"
    if study.result is None:
        return Panel(f"leaderboard-{key}", title, Table(("solver",), []), None, "The study is not finished.")
    table, figure = leaderboard_table(study.result), leaderboard_figure(study.result)
    return Panel(f"leaderboard-{key}", title, table, figure, sentences(study.result))
