"""The table holds what the metric says of each column, dense or sparse."""

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Matrix
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


@pytest.mark.parametrize(
    "metric",
    ["ndcg@1", "ndcg@3", "ndcg@10", "ndcg@32", "ndcg@40", "dcg@5:sklearn", "ndcg@4:short=0", "precision@3",
     "precision@9:short=cut", "recall@4:empty=0", "wta", "ndcg@5:ties=input", "map@5", "mrr", "pairwise", "ndcg"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_many_columns_at_once_give_the_bits_of_each(
    metric: str, dtype: type, layout: type, hard_queries: Queries
) -> None:
    """Columns without ties, with some, and with hardly anything else, such as words; queries of one document."""
    X = hard_queries.features
    wide: Matrix = np.hstack([np.round(X, 0), X, np.where(np.abs(X) < 1.2, 0.0, 1.0), np.exp(X)]).astype(dtype)
    measure, chosen = parse_metric(metric), np.array([1, *range(3, 24)])
    table = feature_table(measure, hard_queries.with_features(layout(wide)), chosen)
    for place, sign in enumerate((1.0, -1.0)):
        for at, f in enumerate(chosen):
            expected = measure.per_query(sign * wide[:, f].astype(np.float64), hard_queries)
            assert np.array_equal(table[place, :, at], expected, equal_nan=True)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_parts_of_few_values_are_the_same_table(
    layout: type, hard_queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = hard_queries.with_features(layout(np.tile(hard_queries.features, (1, 3))))
    metric, chosen = parse_metric("ndcg@3"), np.arange(1, 18)
    whole = feature_table(metric, wide, chosen)
    monkeypatch.setattr("ranktune.solvers.metrics.feature_tables.PART", 3 * wide.n_documents)
    assert np.array_equal(feature_table(metric, wide, chosen), whole, equal_nan=True)


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
