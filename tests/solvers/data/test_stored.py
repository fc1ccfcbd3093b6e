"""Queries on disk come back bit for bit, mapped rather than read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(tmp_path: Path, layout: str, dtype: type) -> None:
    generator = np.random.default_rng(0)
    X: NDArray[Any] = generator.normal(size=(30, 4)).astype(dtype) * (generator.random((30, 4)) < 0.5)
    features = sparse.csr_array(X) if layout == "csr" else X
    qid = np.repeat(["a", "b", "c"], 10)
    weights = {"b": 2.5} if layout == "csr" else None
    queries = Queries.from_arrays(
        features, generator.integers(0, 3, 30), qid=qid, feature_names=list("wxyz"), query_weights=weights
    )
    write_queries(queries, tmp_path / "q")
    loaded = read_queries(tmp_path / "q")
    assert loaded.fingerprint == queries.fingerprint
    assert loaded.query_ids.tolist() == ["a", "b", "c"]
    assert loaded.feature_names == ("w", "x", "y", "z")
    assert loaded.is_sparse == (layout == "csr")
    assert loaded.weight_of_query.tolist() == queries.weight_of_query.tolist()


def test_changing_what_was_read_does_not_change_the_file(tmp_path: Path, hard_queries: Queries) -> None:
    write_queries(hard_queries, tmp_path)
    mapped = read_queries(tmp_path)
    mapped.features[:] = 0.0
    assert read_queries(tmp_path).fingerprint == hard_queries.fingerprint


def test_ids_of_any_type_become_plain(tmp_path: Path) -> None:
    queries = Queries.from_arrays(np.eye(3), [0, 1, 2], qid=[("x", 1), 2.5, "t"])
    write_queries(queries, tmp_path)
    assert read_queries(tmp_path).query_ids.tolist() == ["('x', 1)", "2.5", "t"]
