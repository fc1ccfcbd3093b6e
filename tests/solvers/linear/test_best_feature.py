"""The best single feature."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.best_feature import BestFeature, _rivals
from ranktune.solvers.metrics.metrics import parse_metric


def with_a_good_column(sign: float) -> Queries:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 4, 200).astype(float)
    X = np.where(generator.random((200, 5)) < 0.5, 0.0, generator.normal(size=(200, 5)))
    X[:, 3] = sign * (y + 0.5 * generator.normal(size=200))
    X[:, 1] = 1.0
    return Queries.from_arrays(X, y, qid=np.arange(200) // 10)


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("metric", ["map", "pairwise", "ndcg@10"])
def test_no_column_in_either_direction_is_better(sign: float, form: Any, metric: str) -> None:
    queries, measure = with_a_good_column(sign), parse_metric(metric)
    ranker = BestFeature(metric).fit(queries.with_features(form(queries.features)))
    values = {(j, s): measure.mean(s * queries.features[:, j], queries) for j in (0, 2, 3, 4) for s in (1.0, -1.0)}
    assert ranker.score_ == pytest.approx(max(values.values()), rel=1e-12)
    if sign:
        assert ranker.feature_ == 3 and ranker.coef_.tolist() == [0.0, 0.0, 0.0, sign, 0.0]


def many_queries(n_queries: int = 1500) -> Queries:
    """Columns of rising quality, every second one falling, each rounded more than the one before."""
    generator = np.random.default_rng(3)
    y = generator.integers(0, 4, 6 * n_queries).astype(float)
    signs, noise = np.array([1.0, -1.0] * 6), np.linspace(8.0, 4.0, 12)
    X = np.round((y[:, None] + noise * generator.normal(size=(len(y), 12))) * signs, 1)
    X[:, 5] = 2.0
    return Queries.from_arrays(X, y, qid=np.arange(len(y)) // 6)


@pytest.mark.parametrize("metric", ["ndcg@3", "map", "precision@2"])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_of_many_queries_a_sample_does_not_change_the_choice(metric: str, form: str) -> None:
    queries = many_queries()
    given = queries if form == "dense" else queries.with_features(sparse.csr_array(queries.features))
    steps = list((ranker := BestFeature(metric)).fit_steps(given))
    measure = parse_metric(metric)
    means = {
        (j, s): measure.mean(s * queries.features[:, j], queries) for j in range(12) for s in (1.0, -1.0) if j != 5
    }
    feature, sign = max(means, key=lambda key: means[key])
    assert (ranker.feature_, ranker.coef_[ranker.feature_]) == (feature, sign)
    assert ranker.score_ == means[feature, sign] and steps[-1].objective == -ranker.score_
    assert [step.iteration for step in steps] == list(range(1, len(steps) + 1)) and len(steps) > 2


def test_a_feature_that_only_trails_by_chance_is_compared_on_all_queries() -> None:
    generator = np.random.default_rng(0)
    table = generator.random((3, 2, 250))
    table[1, 0] = table[0, 0] + 0.01 + 0.1 * generator.normal(size=250)  # within the errors of each other
    table[2] = table[0] - 0.5
    table[:2, 1] = table[2, 0] - 0.1
    assert _rivals(table).tolist() == [[True, False], [True, False], [False, False]]


def test_of_equally_good_features_the_first_is_taken() -> None:
    queries = with_a_good_column(1.0)
    doubled = queries.with_features(np.hstack([queries.features, 2.0 * queries.features, queries.features]))
    assert BestFeature().fit(doubled).feature_ == 3


def test_constant_features_alone_leave_no_choice() -> None:
    ranker = BestFeature().fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert ranker.coef_.tolist() == [0.0, 0.0]


def test_a_metric_that_skips_all_queries_is_refused() -> None:
    with pytest.raises(DataError, match="skips all 1 queries"):
        BestFeature("map:relevant=5").fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("grades", [[0.5, 2.0, 1.0], [-1.0, 2.0, 0.0], [0.0, 31.0, 1.0]])
def test_grades_without_an_exponential_gain_are_compared_by_pairs(grades: list[float]) -> None:
    ranker = BestFeature().fit(np.array([[5.0, 1.0], [4.0, 3.0], [6.0, 2.0]]), grades)
    assert ranker.coef_.tolist() == [0.0, 1.0]
    assert ranker.score_ == 1.0


def test_of_too_many_features_those_that_are_mostly_zero_are_left_out() -> None:
    X = np.array([[0.0, 1.0, 0.1], [1.0, 2.0, 0.0], [0.0, 3.0, 0.4], [2.0, 4.0, 0.6]])
    ranker = BestFeature("map", max_features=2).fit(X, [0, 1, 0, 1])
    assert ranker.feature_ == 1 and ranker.coef_.tolist() == [0.0, 1.0, 0.0]
    assert BestFeature("map").fit(X, [0, 1, 0, 1]).feature_ == 0
