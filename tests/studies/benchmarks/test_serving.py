"""The benchmark of scoring runs on a small case, and says whether the scores are those of walks."""

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ranktune.studies.benchmarks import cases, serving
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import BenchmarkResult

SMALL = ["serving", "--trees", "8", "--leaves", "4", "--batches", "1,600", "--turns", "1"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "many_queries", partial(cases.many_queries, n_features=5))
    monkeypatch.setattr(serving, "MIN_SECONDS", 0.0)


def test_every_batch_of_trees_and_of_the_blend_is_a_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*SMALL, "--store", str(tmp_path / "result.json")])
    assert result.exit_code == 0
    (table,) = BenchmarkResult.read(tmp_path / "result.json").tables
    lines = [dict(row) for row in table.rows]
    assert [(row["model"], row["batch"]) for row in lines] == [(m, n) for m in ("trees", "blend") for n in (1, 600)]
    assert all(row["same bits"] and row["predict"] > 0.0 and row["LightGBM"] > 0.0 for row in lines)  # type: ignore[operator]
