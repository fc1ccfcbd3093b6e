"""The best single feature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.best_feature import BestFeature
from ranktune.solvers.metrics.metrics import parse_metric


def with_a_good_column(sign: float) -> Queries:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 4, 200).astype(float)
    X = np.where(generator.random((200, 5)) < 0.5, 0.0, generator.normal(size=(200, 5)))
    X[:, 3] = sign * (y + 0.5 * generator.normal(size=200))
    X[:, 1] = 1.0
    return Queries.from_arrays(X, y, qid=np.arange(200) // 10)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_finds_the_column_and_its_direction(sign: float, form: str) -> None:
    queries = with_a_good_column(sign)
    if form == "csr":
        queries = queries.with_features(sparse.csr_array(queries.features))
    ranker = BestFeature().fit(queries)
    assert ranker.coef_.tolist() == [0.0, 0.0, 0.0, sign, 0.0]
    assert ranker.feature_ == 3
    assert ranker.score_ == pytest.approx(parse_metric("ndcg@10").mean(ranker.predict(queries), queries), rel=1e-12)


@pytest.mark.parametrize("metric", ["map", "pairwise", "ndcg@3"])
def test_no_column_in_either_direction_is_better(metric: str) -> None:
    queries = with_a_good_column(0.0)
    ranker = BestFeature(metric).fit(queries)
    measure = parse_metric(metric)
    others = [measure.mean(sign * queries.features[:, j], queries) for j in (0, 2, 4) for sign in (1, -1)]
    assert ranker.score_ == pytest.approx(max(others), rel=1e-12)


def test_negative_grades_are_judged_by_pairs() -> None:
    queries = with_a_good_column(1.0)
    shifted = Queries.from_arrays(queries.features, queries.grades - 2, qid=queries.query_of_document)
    ranker = BestFeature().fit(shifted)
    assert ranker.feature_ == 3
    assert ranker.score_ == pytest.approx(parse_metric("pairwise").mean(ranker.predict(shifted), shifted), rel=1e-12)


def test_an_unknown_metric_is_refused_before_any_work() -> None:
    with pytest.raises(ParameterError, match="ndgc"):
        BestFeature("ndgc@10").fit(with_a_good_column(1.0))


@pytest.mark.parametrize("grades", [[0.5, 2.0, 1.0], [-1.0, 2.0, 0.0], [0.0, 31.0, 1.0]])
def test_grades_without_an_exponential_gain_are_judged_by_pairs(grades: list[float]) -> None:
    ranker = BestFeature().fit(np.array([[5.0, 1.0], [4.0, 3.0], [6.0, 2.0]]), grades)
    assert ranker.coef_.tolist() == [0.0, 1.0]
    assert ranker.score_ == 1.0


def test_of_too_many_features_those_that_are_mostly_zero_are_left_out() -> None:
    X = np.array([[0.0, 1.0, 0.1], [1.0, 2.0, 0.0], [0.0, 3.0, 0.4], [2.0, 4.0, 0.6]])
    ranker = BestFeature("map", max_features=2).fit(X, [0, 1, 0, 1])
    assert ranker.feature_ == 1 and ranker.coef_.tolist() == [0.0, 1.0, 0.0]
    assert BestFeature("map").fit(X, [0, 1, 0, 1]).feature_ == 0
