"""Compare: studies side by side, their settings, their best value by number of trials, their leaderboards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.analysis.tuning_value import best_by_number, best_so_far_figure, mean_of_splits
from ranktune.dashboards.figures.panels import Cell, Panel, Table
from ranktune.dashboards.figures.plotly import distinct
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views.overview import leaderboard_figure, leaderboard_table, sentences, setting
from ranktune.solvers.core.arrays import Floats

NO_CURVE = np.full(0, np.nan)


def panels(*studies: StudyData) -> list[Panel]:
    """Return the settings that differ, the best so far, and the leaderboards of two and more studies."""
    names = distinct([study.name for study in studies])
    boards = (_leaderboard(f"leaderboard-{k}", study) for k, study in enumerate(studies, 1))
    return [_settings(studies, names), _race(studies, names), *boards]


def _settings(studies: Sequence[StudyData], names: Sequence[str]) -> Panel:
    own = [study.study.as_dict() for study in studies]
    rows: list[list[Cell]] = [
        [name, *(setting(one.get(name)) for one in own)]
        for name in dict.fromkeys(name for one in own for name in one)
        if name != "name" and any(one.get(name) != own[0].get(name) for one in own)
    ]
    note = "" if rows else "Every setting is the same."
    return Panel("settings", "Settings that differ", Table(("setting", *names), rows), None, note)


def _race(studies: Sequence[StudyData], names: Sequence[str]) -> Panel:
    curves = {
        name: mean_of_splits([best_by_number(split) for split in study.splits])
        for name, study in zip(names, studies, strict=True)
    }
    first = studies[0]
    title = f"Best validation {first.metric} by number of trials"
    longest = max(len(curve) for curve in curves.values())
    shown = [k for k in range(longest) if k == longest - 1 or any(_changed(curve, k) for curve in curves.values())]
    rows = [[k + 1, *(_at(curve, k) for curve in curves.values())] for k in shown]
    table = Table(("trials", *curves), rows)
    metrics = dict.fromkeys(study.metric for study in studies)
    if len(metrics) > 1:
        why = f"The studies maximise different metrics ({' and '.join(metrics)}): their values are not comparable."
        return Panel("race", title, table, None, why)
    if not any(np.isfinite(curve).any() for curve in curves.values()):
        return Panel("race", title, table, None, "No trial has succeeded yet.")
    same = len({study.study.data for study in studies}) == 1
    note = "" if same else "The studies name different data: their values compare only where the content is equal."
    return Panel("race", title, table, best_so_far_figure(first, curves, None, NO_CURVE), note)


def _changed(curve: Floats, k: int) -> bool:
    return k < len(curve) and bool(np.isfinite(curve[k])) and (k == 0 or curve[k] != curve[k - 1])


def _at(curve: Floats, k: int) -> float | None:
    known = curve[: k + 1]
    return float(known[-1]) if len(known) and np.isfinite(known[-1]) else None


def _leaderboard(key: str, study: StudyData) -> Panel:
    title = f"Leaderboard of {study.name}"
    if study.result is None:
        return Panel(key, title, Table(("solver",), []), None, "The study is not finished.")
    table, figure = leaderboard_table(study.result), leaderboard_figure(study.result)
    return Panel(key, title, table, figure, sentences(study.result))
