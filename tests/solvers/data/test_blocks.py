"""Blocks of whole queries: they cover all queries once, hold what select returns, and copy no features."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import dense, stored_values
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.queries import Queries, concatenate


def _queries(seed: int, layout: str) -> Queries:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 9, 20)
    n = int(lengths.sum())
    X = generator.normal(size=(n, 5)).astype(np.float32) * (generator.random((n, 5)) < 0.4)
    queries = Queries.from_arrays(
        sparse.csr_array(X) if layout == "csr" else X,
        generator.integers(0, 3, n),
        group=lengths,
        document_ids=[f"d{k}" for k in range(n)],
        feature_names=list("abcde"),
        query_weights=generator.random(20) + 0.5,
        document_weights=generator.random(n) + 0.5,
        positions=generator.integers(0, 9, n),
        monotone=[1, 0, 0, -1, 0],
    )
    return replace(queries, baseline=generator.normal(size=n))


@pytest.mark.parametrize("seed", range(20))
def test_ranges_cover_all_queries_and_are_as_long_as_allowed(seed: int) -> None:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 30, generator.integers(1, 40))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    most = int(generator.integers(1, 60))
    result = list(query_ranges(starts, most))
    assert [first for first, _ in result] == [0, *(last for _, last in result[:-1])]
    assert result[-1][1] == len(lengths)
    for first, last in result:
        assert starts[last] - starts[first] <= most or last == first + 1
    for (first, last), (_, following) in pairwise(result):  # no range could have had one query more
        assert following > last
        assert starts[last + 1] - starts[first] > most


def test_a_range_of_no_rows_is_refused() -> None:
    with pytest.raises(ParameterError, match="max_rows=0"):
        list(query_ranges(np.array([0, 3]), 0))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_block_holds_what_select_returns(layout: str) -> None:
    queries = _queries(0, layout)
    for first, last in query_ranges(queries.starts, 17):
        block, selected = block_of(queries, first, last), queries.select(range(first, last))
        assert block.fingerprint == selected.fingerprint
        assert (dense(block.features) == dense(selected.features)).all()
        assert block.query_ids.tolist() == selected.query_ids.tolist()
        assert block.document_ids is not None
        assert selected.document_ids is not None
        assert block.document_ids.tolist() == selected.document_ids.tolist()
        assert block.feature_names == selected.feature_names
        assert block.monotone is not None
        assert block.monotone.tolist() == [1, 0, 0, -1, 0]
        assert block.baseline is not None
        assert selected.baseline is not None
        assert block.baseline.tolist() == selected.baseline.tolist()


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_features_of_blocks_are_views_and_join_to_the_whole(layout: str) -> None:
    queries = _queries(1, layout)
    blocks = [block_of(queries, first, last) for first, last in query_ranges(queries.starts, 10)]
    values = [stored_values(block.features) for block in blocks]
    assert all(np.shares_memory(value, stored_values(queries.features)) for value in values if value.size)
    assert concatenate(blocks).fingerprint == queries.fingerprint


def test_a_block_of_queries_with_missing_values_allows_them() -> None:
    X = np.array([[1.0], [np.nan], [2.0]])
    queries = Queries.from_arrays(X, [0, 1, 2], group=[2, 1])
    assert [block_of(queries, k, k + 1).has_missing for k in (0, 1)] == [True, True]
