"""The table holds what the metric says of each column, dense or sparse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.feature_tables import candidates, check_metric, feature_table
from ranktune.solvers.metrics.metrics import parse_metric


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_every_entry_is_the_metric_of_a_column(hard_queries: Queries, layout: type) -> None:
    metric, chosen = parse_metric("ndcg@3"), np.array([0, 2, 5])
    table = feature_table(metric, hard_queries.with_features(layout(hard_queries.features)), chosen)
    assert table.shape == (2, hard_queries.n_queries, 3)
    for place, sign in enumerate((1.0, -1.0)):
        for at, f in enumerate(chosen):
            expected = metric.per_query(sign * hard_queries.features[:, f], hard_queries)
            assert np.array_equal(table[place, :, at], expected, equal_nan=True)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_of_many_features_those_that_are_rarely_zero_are_candidates(layout: type) -> None:
    X = np.zeros((10, 5))
    X[:3, 0], X[:9, 1], X[:1, 3], X[:, 4] = 1.0, 2.0, 3.0, 4.0
    queries = Queries.from_arrays(layout(X), np.arange(10) % 2)
    assert candidates(queries, 2).tolist() == [1, 4]
    assert candidates(queries, 5).tolist() == [0, 1, 2, 3, 4]


def test_a_metric_without_bounds_cannot_weigh_queries() -> None:
    check_metric("auto")
    check_metric("ndcg@10")
    with pytest.raises(ParameterError, match="no upper bound"):
        check_metric("dcg@10")
