"""Tables for other programs hold what the terminal shows."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group
from rich.text import Text

import ranktune
from ranktune.dashboards.terminal.leaderboard import report
from ranktune.dashboards.terminal.tables import formatted, table
from tests.dashboards.terminal.test_leaderboard import ROWS, result
from tests.support.commands import called, letor, succeeded

CELLS = [[f"{mean:.4f}", f"{mean:.4f} [0.440, 0.560]"] for mean in (0.5, 0.49, 0.46)]


def test_csv_has_every_column_and_row() -> None:
    head, *rows = csv.reader(StringIO(formatted(report(result()), "csv")))
    assert head == ["solver", "vali", "test [95%]", "p Holm", "features", "kB", "us/doc", "fit s", "trials"]
    assert [row[:3] for row in rows] == [
        [row.solver, f"{row.vali.mean:.4f}", f"{row.test.mean:.4f} [0.440, 0.560]"]
        for row in ROWS
        if row.vali and row.test
    ]


def test_what_is_special_in_a_format_is_escaped() -> None:
    rows = table(("a_1", "b"), ("n",))
    rows.add_row("x|y & 50%", "two\nlines", "1")
    both = Group(Text("A sentence.\nAnother."), rows)
    assert formatted(both, "markdown") == (
        "A sentence.\nAnother.\n\n| a_1 | b | n |\n| --- | --- | --: |\n| x\\|y & 50% | two lines | 1 |\n"
    )
    text = formatted(both, "latex")
    assert text.startswith("% A sentence.\n% Another.\n\n\\begin{tabular}{llr}\n\\toprule\na\\_1 & b & n \\\\\n")
    assert "x|y \\& 50\\% & two lines & 1 \\\\" in text and text.endswith("\\bottomrule\n\\end{tabular}\n")


def test_every_command_that_prints_tables_takes_a_format(tmp_path: Path) -> None:
    head, *rows = csv.reader(StringIO(succeeded("solvers", "--format", "csv")))
    assert head[0] == "solver" and any(row[0].startswith("RankSVM") for row in rows)
    letor(tmp_path / "train.txt", 20, 1)
    assert succeeded("data", tmp_path / "train.txt", "--format", "latex").count("\\begin{tabular}") >= 1
    assert (
        "is not one of 'csv', 'latex', 'markdown'"
        in called("solvers", "--format", "xml", env={"COLUMNS": "200"}).output
    )
    assert "tabular" not in succeeded("solvers")  # the format of one command is not that of the next


@pytest.mark.parametrize("verbose", [True, False])
def test_progress_from_python_is_wanted_or_not(
    verbose: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = letor(tmp_path / "train.txt", 20, 1)
    given: dict[str, Any] = {
        "solvers": "RidgeRanker",
        "trials": 2,
        "jobs": 1,
        "home": tmp_path,
        "name": "s",
        "sampler": "random",
    }
    done = ranktune.tune(data, verbose=verbose, **given)
    said = capsys.readouterr()
    assert ("trial 2 of 2" in said.err) == verbose and not said.out and (verbose or not said.err)
    assert list(done.to_frame()["solver"]) == [row.solver for row in done.leaderboard]
