"""Numbers of documents less the mean of their query."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.data.centring import without_level
from ranktune.solvers.data.queries import Queries


def test_values_without_the_level_of_their_query(hard_queries: Queries) -> None:
    values = np.random.default_rng(0).normal(size=hard_queries.n_documents)
    left = without_level(values, hard_queries)
    np.testing.assert_allclose(np.add.reduceat(left, hard_queries.starts[:-1]), 0.0, atol=1e-13)
    moved = values + np.arange(8.0)[hard_queries.query_of_document]
    np.testing.assert_allclose(without_level(moved, hard_queries), left, atol=1e-13)
