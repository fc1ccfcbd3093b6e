"""What is decided on the table: orders of configurations and choices among trials, on values that are known."""

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.names import STANDARD
from ranktune.studies.benchmarks.results import append_result
from ranktune.studies.benchmarks.task_table.rows import Row
from ranktune.studies.laboratory.__main__ import app
from ranktune.studies.laboratory.analysis import ordered, picked
from ranktune.studies.laboratory.configurations import configurations, name_of

GENERATOR = np.random.default_rng(0)


def row(task: str, name: str, vali: Floats, test: Floats) -> Row:
    return Row(task, name, 1.0, vali=vali, test=test)


def test_the_pick_is_the_best_by_validation() -> None:
    vali, test = np.array([[0.1, 0.9, 0.5], [0.7, 0.2, 0.8]]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert picked(vali, test, [0, 1, 2]).tolist() == [2.0, 6.0]
    assert picked(vali, test, [2, 0]).tolist() == [3.0, 6.0]


def test_a_portfolio_begins_with_the_best_and_goes_on_with_what_it_lacks() -> None:
    """The second configuration is good where the first is not; the third, a little better, is like the first."""
    values = np.array([[0.9, 0.1, 0.8], [0.9, 0.2, 0.9], [0.2, 0.8, 0.3]])
    assert ordered(values, values, 3)[:2] == [0, 1]
    assert sorted(ordered(values, values, 9)) == [0, 1, 2]


def test_the_commands_read_the_table(tmp_path: Path) -> None:
    every = configurations(STANDARD, 1)
    for seed in (0, 40):
        for params in every:
            values = GENERATOR.random(40)
            append_result(tmp_path / "rows", row(f"drawn-{seed}", name_of(params), values, values).as_json())
    result = CliRunner().invoke(app, ["order", "--keep", str(tmp_path / "rows"), "--count", "2"])
    assert result.exit_code == 0, result.output
    assert "the best of all in hindsight" in result.output


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    for command in (["portfolio", "--seeds", "0:0"], ["order"]):
        result = CliRunner().invoke(app, [*command, "--keep", str(tmp_path / "rows")])
        assert result.exit_code == 2 and "0 tasks to learn from and 0 that confirm" in result.stderr
    result = CliRunner().invoke(app, ["table", "--keep", str(tmp_path / "rows"), "--seeds", "7:"])
    assert result.exit_code == 2 and "'7:' are no seeds" in result.stderr
