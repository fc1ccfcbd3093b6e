"""A finished study in the terminal: the leaderboard and the conclusion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from statistics import fmean

from rich.console import Group, RenderableType
from rich.text import Text

from ranktune.dashboards.terminal.tables import DAGGER, FittedTable, four_digits, titled
from ranktune.solvers.core.errors import RankTuneError
from ranktune.tuner.selection.results import Result
from ranktune.tuner.selection.rows import BETTER, CHOSEN, WORSE, LeaderboardRow
from ranktune.tuner.statistics.measured import Interval

UNSERVED = " *"
"""Mark of rows whose models a system that the study serves cannot load."""
WHOLE = " (whole queries)"
"""Mark of rows whose models compare the documents of a query."""
OPTIONAL = ("kB", "us/doc", "fit s", "trials", "again", "features", "p Holm", "test [95%]")
"""Columns that a narrow terminal leaves out, the first of them first."""


def report(result: Result, *, answered: bool = False, details: bool = False, folds: bool = True) -> RenderableType:
    """Return the leaderboard, with folds the chosen model of each fold if there are folds, and the conclusion.

    Where the answer stands above it already, what that says is left out.
    """
    parts = [titled(f"{result.study}: {result.metric}", leaderboard_table(result))]
    if result.folds and folds:
        parts.append(titled("chosen model of each fold", fold_table(result)))
    conclusion, above = result.conclusion, answer(result) if answered else []
    lines = [line for line in map(_nearby, conclusion.lines) if line not in above]
    if details:
        lines += ["", *map(_nearby, conclusion.details)]
    elif conclusion.details:
        lines.append(f"Details: `ranktune show {result.study} --wide`.")
    return Group(*parts, Text("\n".join(lines)))


def answer(result: Result) -> list[str]:
    """Return what is known once the chosen model is fitted."""
    found = result.conclusion
    return [_nearby(line) for line in (found.use, found.expect, found.gain, found.next[0])]


def _nearby(line: str) -> str:
    """Return a line whose paths below the current folder are relative to it."""
    return line.replace(f"{Path.cwd()}{os.sep}", "")


def leaderboard_table(result: Result) -> FittedTable:
    """Return the leaderboard: a row a model, the chosen first."""
    rows = result.leaderboard
    right = {
        "vali": _cells(rows, "vali.mean"),
        "again": _cells(rows, "again.mean"),
        "test [95%]": [_with_interval(row.test) for row in rows],
        **({} if result.clicks is None else {result.clicks.metric: _cells(rows, "beside.mean")}),
        "p Holm": _cells(rows, "p_holm", ".3f", ""),
        "features": _cells(rows, "nonzeros", ".0f"),
        "cost": _cells(rows, "cost", ".4g"),
        "kB": ["-" if row.is_baseline else f"{row.bytes / 1000.0:.1f}" for row in rows],
        "us/doc": _cells(rows, "microseconds", ".3f"),
        "fit s": _cells(rows, "seconds", ".2f"),
        "trials": [str(row.trials or "-") for row in rows],
    }
    for name in ("cost", "again"):  # no costs were given; no trial was scored again
        if set(right[name]) == {"-"}:
            del right[name]
    optional = tuple(name for name in OPTIONAL if name in right)
    names = {"solver": [row.solver + marks(row) for row in rows]}
    return FittedTable(names, right, optional, bold_first=True, further=partial(on_test, result))


def on_test(result: Result) -> dict[str, list[Text]]:
    """Return what the rows have on test: the mean with its interval, by each fold, and by other metrics."""
    from ranktune.dashboards.records.study import open_study  # it loads NumPy
    from ranktune.solvers.metrics.means import mean_of

    rows = result.leaderboard
    columns = {"test [95%]": _numbers([getattr(row.test, "mean", None) for row in rows])}
    for row, cell in zip(rows, columns["test [95%]"], strict=True):
        cell.append(DAGGER * (row.verdict in (BETTER, WORSE)) + _with_interval(row.test)[len(cell) :])
    with suppress(RankTuneError):  # what cannot be read is left out
        known = [(split, found) for split, found in open_study(Path(result.folder)).evidence if found.part == "test"]
        for metric in result.test_metrics if known else ():
            means: dict[str, list[float | None]] = {}
            for split, found in known:
                values = [mean_of(each, found.weights) for each in found.values[metric]]
                of_label = dict(zip((*found.labels, CHOSEN), (*values, values[0]), strict=True))
                means[f"{metric} {split}"] = [of_label.get(row.solver) for row in rows]
            if metric != result.metric:
                of_rows = zip(*means.values(), strict=True)
                columns[metric] = _numbers([None if None in each else fmean(each) for each in of_rows])
            if result.folds:
                columns |= {name: _numbers(each) for name, each in means.items()}
    return columns


def _numbers(values: Sequence[float | None]) -> list[Text]:
    """Return numbers as text, the highest bold."""
    best = four_digits(max((value for value in values if value is not None), default=None))
    cells = (four_digits(value) for value in values)
    return [Text(cell or "-", "bold" if cell == best else "") for cell in cells]


def _cells(items: Iterable[object], path: str, form: str = ".4f", absent: str = "-") -> list[str]:
    """Return the number of each item at the path of an attribute, absent where there is none."""
    values = (reduce(lambda of, name: getattr(of, name, None), path.split("."), item) for item in items)
    return [absent if value is None or value != value else format(value, form) for value in values]


def marks(row: LeaderboardRow) -> str:
    """Return the marks of a row: its one feature, that no system loads its model, that it compares documents."""
    feature = f" ({row.feature[:20]})" if row.feature else ""
    return feature + UNSERVED * (not row.is_served) + WHOLE * row.needs_queries


def fold_table(result: Result) -> FittedTable:
    """Return the chosen model of each fold."""
    folds = result.folds
    left = {"fold": [fold.name for fold in folds], "solver": [fold.best.solver for fold in folds]}
    tests = [_with_interval(fold.best.test) for fold in folds]
    return FittedTable(left, {"vali": _cells(folds, "best.vali.mean"), "test [95%]": tests})


def _with_interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.mean:.4f} [{interval.low:.3f}, {interval.high:.3f}]"
