"""The goals of benchmarks stand beside their newest results."""

import re
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import Measurement, goals_table
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row


def test_a_goal_is_met_or_not_and_a_benchmark_without_a_result_missing(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"what": "a", "beside": "x", "ratio": 0.5, "wanted": "<= 1", "met": True},
        {"what": "b", "ours s": 2.0, "ratio": 9.0, "wanted": "ratio <= 10, ours s <= 1", "met": False},
        {"what": "c", "s": 1.0, "wanted": "", "met": True},
    ]
    new = replace(Measurement().result("solvers", ["solvers"], [BenchmarkTable("T", rows)]), date="2026-02-01 10:00")
    new.write(tmp_path / "solvers.part.json")
    table = goals_table(tmp_path, ["other", "solvers"])
    assert [(row["line"], row["figure"], row["is"]) for row in table.rows] == [
        ("other", "", "missing"),
        ("solvers: a", "0.5", "met"),
        ("solvers: b", "2", "not met"),
    ]
    assert table.rows[1]["date"] == "2026-02-01" and "NAME is other:" in table.note and "1 of 3 met" in table.title


def test_without_a_command_all_goals_are_printed_at_80_columns(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["--results", str(tmp_path)], env={"COLUMNS": "80"}).output
    names = {command.name for command in app.registered_commands}
    assert all(len(line) <= 80 for line in shown.splitlines()) and shown.count("missing") == len(names)
    assert names <= set(re.findall(r"[a-z-]+", shown))
