"""Queries on disk come back bit for bit, mapped rather than read."""

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries
from tests.support.query_samples import assert_same, some


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_trip(tmp_path: Path, layout: str, dtype: str) -> None:
    queries = some(1, layout=layout, dtype=dtype)
    write_queries(queries, tmp_path / "q", documents=True)
    assert_same(read_queries(tmp_path / "q"), queries)


def test_changing_what_was_read_does_not_change_the_file(tmp_path: Path, hard_queries: Queries) -> None:
    write_queries(hard_queries, tmp_path)
    mapped = read_queries(tmp_path)
    mapped.features[:] = 0.0
    assert read_queries(tmp_path).fingerprint == hard_queries.fingerprint


def test_ids_of_any_type_become_plain(tmp_path: Path) -> None:
    queries = Queries.from_arrays(np.eye(3), [0, 1, 2], qid=[("x", 1), 2.5, "t"])
    write_queries(queries, tmp_path)
    assert read_queries(tmp_path).query_ids.tolist() == ["('x', 1)", "2.5", "t"]
