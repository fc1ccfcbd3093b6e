"""The benchmarks run, on cases made small, and report what they measured."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks import cases, memory, solvers
from ranktune.studies.benchmarks.__main__ import app

SMALL = {
    "a": partial(cases.many_queries, 20, 11, n_features=8, mean_length=70),
    "as": partial(cases.many_queries, 10, 12, n_features=8, mean_length=70),
    "c": partial(cases.one_query, 300),
    "d": partial(cases.sparse_query, 300, 200, 5, 20),
}


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
    with pytest.raises(ParameterError, match="Known: a, as, c, cs, d"):
        cases.case("sa")


def test_every_comparison_runs(small: None) -> None:
    found = CliRunner().invoke(app, ["solvers", "--repeats", "1", "--json"], catch_exceptions=False)
    lines = json.loads(found.stdout)
    output = " ".join(line["what"].lower() for line in lines)
    assert all(name.split("-")[0] in output for name in solvers.BENCHMARKS)
    assert all(line["ours"] > 0.0 and line["theirs"] > 0.0 for line in lines)
    output = CliRunner().invoke(app, ["solvers", "ranksvm-dense", "--repeats", "1"], catch_exceptions=False).stdout
    assert "sklearn Ridge" in output and "ratio <= 0.9" in output


def test_an_unknown_comparison_gets_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'pegasos'"):
        CliRunner().invoke(app, ["solvers", "pegasus"], catch_exceptions=False)


@pytest.mark.thorough
def test_peak_memory_is_that_of_a_process_of_its_own(small: None) -> None:
    held = np.ones(300 << 17)  # 300 MB here are not there
    for name in ("a", "d"):
        found = CliRunner().invoke(
            app, ["memory", "--solver", "RankSVM", "--case", name], catch_exceptions=False
        ).stdout  # fmt: skip
        peak = float(next(line for line in found.splitlines() if line.startswith("RankSVM")).split()[1])
        assert 50.0 < peak < 300.0
    assert held[0] == 1.0
