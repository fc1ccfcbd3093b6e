"""Blocks of whole queries: they cover all queries once, hold what select returns, and copy no features."""

from itertools import pairwise

import numpy as np
import pytest

from ranktune.solvers.core.arrays import stored_values
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.queries import concatenate
from tests.support.query_samples import assert_same, some


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
    queries = some(1, layout=layout).replaced(baseline=np.random.default_rng(0).normal(size=some(1).n_documents))
    for first, last in query_ranges(queries.starts, 17):
        assert_same(block_of(queries, first, last), queries.select(range(first, last)))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_features_of_blocks_are_views_and_join_to_the_whole(layout: str) -> None:
    queries = some(1, layout=layout)
    blocks = [block_of(queries, first, last) for first, last in query_ranges(queries.starts, 10)]
    values = [stored_values(block.features) for block in blocks]
    assert all(np.shares_memory(value, stored_values(queries.features)) for value in values if value.size)
    assert concatenate(blocks).fingerprint == queries.fingerprint
