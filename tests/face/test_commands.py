"""The tables and pages of the smaller commands."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from ranktune.command_line.app import app
from ranktune.command_line.commands import all_solvers, as_text, data_table, describe, solver_page, solvers_table
from ranktune.solvers.registry import SOLVERS, STANDARD
from tests.support.commands import called, printed

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def test_every_solver_is_told_with_a_summary() -> None:
    result = all_solvers()
    assert [result["name"] for result in result] == list(SOLVERS)
    assert {result["name"] for result in result if result["standard"]} == set(STANDARD)
    assert all(10 < len(result["summary"]) < 130 for result in result), [result["summary"] for result in result]
    assert json.loads(json.dumps(result)) == result
    text = printed(solvers_table(result), 80)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert all(f" {name} " in text for name in SOLVERS)


@pytest.mark.parametrize("name", list(SOLVERS))
def test_a_page_has_every_tuned_parameter_with_its_range(name: str) -> None:
    text = printed(solver_page(name))
    assert f"{name}: " in text
    for parameter in SOLVERS[name].space:
        assert f"  {parameter.name} " in text
        assert str(parameter.default) in text


NUMPYDOC = """Rank by example: what follows is not in the summary.

A paragraph that is longer than eighty columns is wrapped, and its lines are joined
before.

Parameters
----------
C : float, default=1.0
    Inverse strength of the penalty, which is also much longer than a line of eighty columns.
tol : float, default=1e-4
    Tolerance.

Examples
--------
>>> 1 + 1
2

References
----------
A. Author, 2020.
"""


def test_a_numpydoc_docstring_is_a_page_of_text_without_examples() -> None:
    assert as_text(NUMPYDOC).splitlines() == [
        "Rank by example: what follows is not in the summary.",
        "",
        "A paragraph that is longer than eighty columns is wrapped, and its lines are",
        "joined before.",
        "",
        "PARAMETERS",
        "C : float, default=1.0",
        "    Inverse strength of the penalty, which is also much longer than a line of",
        "    eighty columns.",
        "tol : float, default=1e-4",
        "    Tolerance.",
        "",
        "REFERENCES",
        "A. Author, 2020.",
    ]
    assert as_text(NUMPYDOC[: NUMPYDOC.index("References")]).endswith("    Tolerance.")


@pytest.mark.parametrize("folds", [1, 5])
def test_a_description_of_data_fits_80_columns_with_the_names_of_its_rows(folds: int, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for fold in range(1, folds + 1):
        for part in ("train", "vali", "test"):
            file = tmp_path / f"Fold{fold}" / f"{part}.txt"
            file.parent.mkdir(exist_ok=True)
            grades = generator.integers(0, 12, 400)
            file.write_text("".join(f"{g} qid:{k // 20} 1:{generator.random():.3f}\n" for k, g in enumerate(grades)))
    result = describe(str(tmp_path) if folds > 1 else str(tmp_path / "Fold1" / "train.txt"))
    if folds == 1:
        result["parts"] = [result["parts"][0] | {"part": part} for part in ("train", "vali", "test")]
    text = printed(data_table(result), 80)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    first = {line.strip().split("  ")[0] for line in text.splitlines()}
    names = {f"Fold{k} {part}" for k in range(1, 6) for part in ("train", "vali", "test")}
    assert names <= first if folds > 1 else {"queries", "grades", "distinct grades", "queries with one grade"} <= first


def test_a_description_of_data_says_what_tune_will_say_of_grades_below_0(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,grade,a\n1,-1,0.5\n1,1,0.2\n2,0,0.1\n2,2,0.7\n")
    assert "The lowest grade is -1." in describe(str(path))["remarks"][0]
    path.write_text(path.read_text().replace("-1", "0"))
    assert "remarks" not in describe(str(path))


def panels(*words: str) -> dict[str, list[str]]:
    """Return the first lines of the rows of each panel of a help in 80 columns."""
    text = called(*words, "--help", env={"COLUMNS": "80"}).stdout
    assert all(len(line) <= 80 for line in text.splitlines())
    parts = re.split(r"^(\S.*):\n", text, flags=re.MULTILINE)[1:]
    return {
        title: [line for line in rows.splitlines() if re.match("  ?[a-z-]", line)]
        for title, rows in zip(parts[::2], parts[1::2], strict=True)
    }


def test_at_most_16_commands_are_listed_in_groups_with_whole_sentences() -> None:
    found = panels()
    listed = [line for title in list(found)[:-1] for line in found[title]]
    names = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    assert {line.split()[0] for line in listed} == names and len(listed) == len(names) <= 16
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed
    assert next(iter(found)) == "Tune" and next(reversed(found)) == "Options"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_a_panel_and_studies_have_at_most_40(command: str) -> None:
    found = panels(command)
    options = [line.split()[0] for title, lines in found.items() if title != "Arguments" for line in lines]
    known = [each.opts[0] for each in COMMANDS[command].params if each.param_type_name == "option"]
    assert len(options) == len(set(options)) == len(known) + 1  # --help
    assert len(options) <= 40


def test_common_options_come_first() -> None:
    titles, lines = zip(*panels("tune").items(), strict=True)
    assert titles[:3] == ("Arguments", "The study", "Columns, and how data are read")
    assert [line.split()[0] for line in lines[1]][:3] == ["--test", "--vali", "--metric"]
    assert [line.split()[0] for line in lines[2]][:2] == ["--qid", "--grade"]
