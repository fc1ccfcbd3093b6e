"""The goals of all benchmarks beside their newest stored results: each met, not met, or without a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktune.studies.benchmarks.results import Result
from ranktune.studies.benchmarks.tables import Cell, Row, Table, text_of

FIGURES = ("ratio", "predict", "mean ms", "s", "found")
"""Columns of the figure that a row with the columns "wanted" and "met" is about, the first that it has."""
SAID = ("wanted", "met", "beside", "found")


@dataclass(frozen=True)
class Goal:
    """A figure of a benchmark's first table with that begin of its title, and the most that it may be.

    row has cells of its row, column is that of the figure, unit what it is counted in.
    """

    line: str
    column: str
    most: float
    row: Mapping[str, Cell] = field(default_factory=dict)
    unit: str = ""
    title: str = ""

    def figure(self, tables: Iterable[Table]) -> float | None:
        """Return the figure, None where no table has it."""
        rows = (row for table in tables if table.title.startswith(self.title) for row in table.rows)
        found = (row.get(self.column) for row in rows if self.row.items() <= row.items())
        return next((float(value) for value in found if isinstance(value, int | float)), None)


def goals_table(folder: Path, goals: Mapping[str, Iterable[Goal]]) -> Table:
    """Return a line for each goal of each benchmark, those in the stored results of a folder and the declared ones.

    goals has the declared ones by the name of the benchmark, which is that of its file; every benchmark is a key.
    """
    rows: list[Row] = []
    for name, declared in goals.items():
        files = sorted([*folder.glob(f"{name}.json"), *folder.glob(f"{name}.*.json")])
        results = [Result.read(path) for path in files]
        for result in results:
            rows += _in_rows(result)
        newest = max(results, key=lambda result: result.date, default=None)
        rows += [_line(name, goal, newest) for goal in declared]
        if newest is None and not declared:
            rows.append(_row(name, "", "", "missing", ""))
    absent = sorted({str(row["line"]).partition(":")[0] for row in rows if row["is"] == "missing"})
    command = "python -m ranktune.studies.benchmarks NAME --store docs/benchmarks/results/NAME.json"
    note = f"Without a result, where NAME is {', '.join(absent)}: {command}" if absent else ""
    return Table(f"Goals of the benchmarks: {sum(row['is'] == 'met' for row in rows)} of {len(rows)} met", rows, note)


def _in_rows(result: Result) -> Iterator[Row]:
    """Yield a line for each row that says itself what is wanted."""
    for row in (row for table in result.tables for row in table.rows if row.get("wanted")):
        wanted = str(row["wanted"])
        column = "ours s" if wanted.endswith(" s") else next(name for name in FIGURES if name in row)
        words = (value if isinstance(value, str) else f"{name} {value:,}" for name, value in _names(row))
        state = "met" if row["met"] else "not met"
        yield _row(f"{result.benchmark}: {', '.join(words)}", text_of(row[column]), wanted, state, result.date[:10])


def _names(row: Row) -> Iterator[tuple[str, str | int]]:
    """Yield the cells that name a row: its words and whole numbers."""
    for name, value in row.items():
        if isinstance(value, str | int) and not isinstance(value, bool) and name not in SAID:
            yield name, value


def _line(benchmark: str, goal: Goal, result: Result | None) -> Row:
    value = None if result is None else goal.figure(result.tables)
    state = "missing" if value is None else "met" if value <= goal.most else "not met"
    wanted = f"<= {goal.most:g} {goal.unit}".strip()
    date = "" if result is None or value is None else result.date[:10]
    return _row(f"{benchmark}: {goal.line}", text_of(value), wanted, state, date)


def _row(line: str, figure: str, wanted: str, state: str, date: str) -> Row:
    return {"line": line, "figure": figure, "goal": wanted, "is": state, "date": date}
