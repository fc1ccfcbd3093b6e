"""Tables for other programs hold what the terminal shows."""

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group
from rich.text import Text

import ranktune
from ranktune.dashboards.terminal.leaderboard import report
from ranktune.dashboards.terminal.tables import formatted, table
from ranktune.tuner.selection.rows import WORSE
from tests.dashboards.terminal.test_leaderboard import ROWS
from tests.support.commands import letor, succeeded
from tests.support.finished import Finished


def test_a_leaderboard_is_one_table_of_numbers_over_folds_and_metrics(finished: Finished) -> None:
    rows = (replace(ROWS[0], verdict=WORSE), ROWS[1])
    found = replace(finished.result("folds"), leaderboard=(finished.result("folds").leaderboard[0], *rows))
    table = report(found, folds=False)
    first, *others = csv.DictReader(StringIO(formatted(table, "csv")))
    means = [float(first[f"ndcg@10 {fold.name}"]) for fold in found.folds]
    assert means == pytest.approx([fold.best.test.mean for fold in found.folds if fold.best.test], abs=1e-4)
    assert float(first["test"]) == pytest.approx(sum(means) / 2, abs=1e-4) and first["p Holm"] == ""
    assert [(row["solver"], row["test"], row["test low"], row["test high"]) for row in others] == [
        ("RankSVM", "0.5000", "0.440", "0.560"),
        ("RidgeRanker", "0.4900", "0.440", "0.560"),
    ]
    latex, markdown = formatted(table, "latex"), formatted(table, "markdown")
    best = max(first["test"], *(row["test"] for row in others))
    assert rf" \textbf{{{best}" in latex and f" **{best}" in markdown
    assert latex.count(r"0.5000$^{\dagger}$") == markdown.count("0.5000\u2020") == 1
    legend = "\u2020 differs significantly from the first row: p Holm of at most 0.05."
    assert f"% {legend}\n" in latex and f"\n{legend}\n" in markdown
    assert legend not in formatted(report(finished.result("folds")), "markdown")  # where nothing does
    assert float(first["map"]) == pytest.approx((float(first["map Fold1"]) + float(first["map Fold2"])) / 2, abs=1e-4)


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
