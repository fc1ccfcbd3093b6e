"""The goals of benchmarks stand beside their newest results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ranktune.studies.benchmarks.__main__ import GOALS, app
from ranktune.studies.benchmarks.goals import starting
from ranktune.studies.benchmarks.goals.lines import Goal, goals_table
from ranktune.studies.benchmarks.results import Measurement
from ranktune.studies.benchmarks.tables import Row, Table


def test_a_goal_is_met_not_met_or_missing_by_the_newest_result(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"what": "a", "ratio": 0.5, "wanted": "<= 1", "met": True},
        {"what": "b", "ours s": 2.0, "ratio": 9.0},
    ]
    new = replace(Measurement().result("solvers", ["solvers"], [Table("T", rows)]), date="2026-02-01 10:00")
    new.write(tmp_path / "solvers.part.json")
    replace(new, date="2026-01-01 10:00", tables=[Table("T", [{**rows[1], "ours s": 0.1}])]).write(
        tmp_path / "solvers.json"
    )
    goals = [Goal(name, "ours s", most, {"what": name}) for name, most in (("b", 1.0), ("b", 2.0), ("c", 1.0))]
    table = goals_table(tmp_path, {"solvers": goals, "other": ()})
    assert [(row["line"], row["figure"], row["is"]) for row in table.rows] == [
        ("solvers: a", "0.5", "met"),
        ("solvers: b", "2", "not met"),
        ("solvers: b", "2", "met"),
        ("solvers: c", "", "missing"),
        ("other", "", "missing"),
    ]
    assert table.rows[0]["date"] == "2026-02-01" and "NAME is other, solvers:" in table.note


def test_without_a_command_all_goals_are_printed_at_80_columns(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["--results", str(tmp_path)], env={"COLUMNS": "80"}).output
    assert all(len(line) <= 80 for line in shown.splitlines()) and shown.count("missing") >= sum(
        map(len, GOALS.values())
    )
    names = {command.name for command in app.registered_commands}
    assert names <= set(re.findall(r"[a-z-]+", shown)) and set(GOALS) <= names


@pytest.mark.thorough
def test_the_declared_goals_of_starting_have_rows(tmp_path: Path) -> None:
    (table,) = starting.main(rounds=1, studies=False)
    assert all(goal.figure([table]) is not None for goal in starting.GOALS[:2])
    assert all(row["cpu s"] > 0.0 and row["wall s"] > 0.0 for row in table.rows)  # type: ignore[operator]
