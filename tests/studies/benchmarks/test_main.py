"""The benchmarks run, on cases made small, and report what they measured. The goals of benchmarks stand beside their
newest results. Tables of benchmarks on the terminal, in files and in Markdown."""

import json
import re
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse
from typer.testing import CliRunner

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.studies.benchmarks import cases, serving, solvers
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import BenchmarkResult, Measurement, goals_table
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, drawn, markdown, text_of

SMALL = {
    "a": partial(cases.many_queries, 20, 11, n_features=8, mean_length=70),
    "as": partial(cases.many_queries, 10, 12, n_features=8, mean_length=70),
    "c": partial(cases.one_query, 300),
    "d": partial(cases.sparse_query, 300, 200, 5, 20),
}


def stored(folder: Path, *arguments: str) -> Any:
    """Return the result that a command stores; what it prints fits a terminal."""
    file = folder / "result.json"
    result = CliRunner().invoke(app, [*arguments, "--store", str(file)], catch_exceptions=False)
    assert result.exit_code == 0 and max(map(len, result.stdout.splitlines())) <= 80
    return BenchmarkResult.read(file)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "data", lambda name: SMALL[name]())


def test_cases_are_what_they_say() -> None:
    dense = SMALL["a"]()
    assert dense.n_queries == 20 and dense.features.dtype == np.float32
    assert set(np.unique(dense.grades)) <= {0.0, 1.0, 2.0, 3.0, 4.0}
    low = np.minimum.reduceat(dense.features, dense.starts[:-1])
    high = np.maximum.reduceat(dense.features, dense.starts[:-1])
    assert (low == 0.0).all() and (high == 1.0).all()
    assert len(np.unique(SMALL["c"]().grades)) == 300
    thin = SMALL["d"]()
    assert thin.is_sparse and len(np.unique(thin.grades)) == 20
    lengths = np.sqrt(np.asarray(sparse.csr_array(thin.features).power(2).sum(axis=1)))
    assert np.allclose(lengths, 1.0, atol=1e-6)
    assert SMALL["d"]().fingerprint == thin.fingerprint
    with pytest.raises(ParameterError, match="Known: a, as, c, d"):
        cases.case("sa")


@pytest.mark.thorough
def test_every_comparison_runs(small: None, tmp_path: Path) -> None:
    (table,) = stored(tmp_path, "solvers", "--repeats", "1").tables
    output = " ".join(str(line["what"]).lower() for line in table.rows)
    assert all(name.split("-")[0] in output for name in solvers.BENCHMARKS)
    assert all(line["ours s"] > 0.0 and line["theirs s"] > 0.0 for line in table.rows)
    output = CliRunner().invoke(app, ["solvers", "ranksvm-dense", "--repeats", "1"], catch_exceptions=False).stdout
    assert "sklearn Ridge" in output and "ratio <= 0.9" in output
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("solvers", "pegasus"), "Did you mean"),
        (("turnkey", "none", "--rival", "ranktune"), "error: none: holds no data set"),
    ],
)
def test_an_error_gives_one_message(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ") and message in done.stderr


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


TABLE = BenchmarkTable(
    "what it is", [{"solver": "RankSVM", "s": 0.123456, "n": 12345}, {"solver": "a|b", "met": False}], "so"
)


def test_a_stored_result_is_read_as_it_was(tmp_path: Path) -> None:
    result = Measurement().result("solvers", ["solvers", "--repeats", "3"], [TABLE])
    result.write(tmp_path / "solvers.json")
    assert BenchmarkResult.read(tmp_path / "solvers.json") == result
    assert result.command == "python -m ranktune.studies.benchmarks solvers --repeats 3"
    assert result.cores >= 1 and result.memory_gb > 0.1 and result.processor and result.load >= 0.0
    assert {"ranktune", "numpy", "scipy"} < set(result.versions)
    for text in ("{", "[]", "{}", json.dumps({"tables": [{}]})):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(DataError, match="not a stored result"):
            BenchmarkResult.read(tmp_path / "other.json")


def test_cells_are_words() -> None:
    cells = (None, True, False, 3, 12345, 0.123456, 1234.5, 1e-7, float("nan"), "text")
    assert [text_of(cell) for cell in cells] == [
        "", "yes", "NO", "3", "12,345", "0.1235", "1,234", "1e-07", "nan", "text",
    ]  # fmt: skip


def test_a_table_is_markdown_with_all_columns() -> None:
    assert markdown(TABLE).splitlines() == [
        "**what it is**", "", "| solver | s | n | met |", "|---|---:|---:|---:|", "| RankSVM | 0.1235 | 12,345 |  |",
        r"| a\|b |  |  | NO |", "", "so",
    ]  # fmt: skip


def test_a_wide_table_folds_its_words_and_keeps_its_numbers() -> None:
    row: Row = {"what": "words " * 20, "beside": "others " * 20, **{f"number {k}": 0.1234 for k in range(3)}}
    console = Console(file=StringIO(), width=80)
    console.print(drawn(replace(TABLE, title="median [quartiles]", rows=[row]), 80))
    output = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, output.splitlines())) <= 80 and output.count("0.1234") == 3 and output.count("words") == 20
    assert "median [quartiles]" in output  # no markup


def test_a_failure_is_stored_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row: Row = {"model": "trees", "batch": 1, "predict": 1.0, "same bits": True}
    monkeypatch.setattr(serving, "compare", lambda *_: [row])
    order = ["serving", "--store", str(tmp_path / "r.json")]
    assert CliRunner().invoke(app, order).exit_code == 0
    monkeypatch.setattr(serving, "compare", lambda *_: [{**row, "same bits": False}])
    assert CliRunner().invoke(app, order).exit_code == 1
    assert BenchmarkResult.read(tmp_path / "r.json").tables[0].rows[0]["same bits"] is False
