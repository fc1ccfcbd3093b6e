"""Tables of benchmarks on the terminal, in files and in Markdown."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ranktune.solvers.core.errors import DataError
from ranktune.studies.benchmarks import serving
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import BenchmarkResult, Measurement
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, drawn, markdown, text_of

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


def test_every_benchmark_has_help_and_a_place_for_its_result() -> None:
    names = [command.name or "" for command in app.registered_commands]
    assert {"solvers", "objective", "memory", "parser", "sampler", "turnkey"} < set(names)
    for name in names:
        assert "--store" in CliRunner().invoke(app, [name, "--help"], catch_exceptions=False).stdout


def test_a_failure_is_stored_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row: Row = {"model": "trees", "batch": 1, "predict": 1.0, "same bits": True}
    monkeypatch.setattr(serving, "compare", lambda *_: [row])
    order = ["serving", "--store", str(tmp_path / "r.json")]
    assert CliRunner().invoke(app, order).exit_code == 0
    monkeypatch.setattr(serving, "compare", lambda *_: [{**row, "same bits": False}])
    assert CliRunner().invoke(app, order).exit_code == 1
    assert BenchmarkResult.read(tmp_path / "r.json").tables[0].rows[0]["same bits"] is False
