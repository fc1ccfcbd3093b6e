"""The benchmarks run, on cases made small, and report what they measured."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks import cases, memory, solvers
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import BenchmarkResult

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
    monkeypatch.setattr(memory, "case", lambda name: SMALL[name]())


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


def test_comparisons_by_their_names(small: None, tmp_path: Path) -> None:
    (table,) = stored(tmp_path, "solvers", "ranksvm-path", "one-pass", "--repeats", "1").tables
    row, *others = table.rows
    assert [line["what"] for line in others] == ["SOLAR2 one pass, case a", "LambdaRank 100 steps, case a"]
    assert row["what"] == "RankSVM 20 C, case as" and row["ratio"] == pytest.approx(row["ours s"] / row["theirs s"])


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


@pytest.mark.thorough
def test_peak_memory_is_measured_in_a_separate_process(small: None, tmp_path: Path) -> None:
    held = np.ones(300 << 17)  # 300 MB here are not there
    for name in ("a", "d"):
        (table,) = stored(tmp_path, "memory", "--solver", "RankSVM", "--case", name).tables
        (row,) = table.rows
        assert row["solver"] == "RankSVM" and 50.0 < row["peak MB"] < 300.0
    assert held[0] == 1.0


@pytest.mark.thorough
def test_a_pass_is_compared_with_one_configuration_alone(tmp_path: Path) -> None:
    options = ["one-pass", "--queries", "80", "--features", "50", "--configurations", "8", "--repeats", "1"]
    (times,) = stored(tmp_path, *options).tables
    mixes = {(row["features"], row["solvers"]) for row in times.rows}
    assert mixes == {(case, mix) for case in ("136 dense", "50 sparse") for mix in ("ElasticRank", "SOLAR1", "both")}
    assert all(row["race/alone"] > 0.0 for row in times.rows)
    assert [row["wanted"] for row in times.rows] == ["all/alone <= 3"] * 3 + [""] * 3
