"""Costs of features: how they are declared, which entry counts, and what a model costs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.encoding import Category, TableEncoding
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.feature_costs import FeatureCosts, read_costs

NAMES = ("bm25_title", "bm25_body", "emb_1", "emb_2", "age")
COSTS = {"bm25*": 2.0, "bm25_body": 3.0, "vectors": {"features": ["emb_*"], "cost": 20}}


def described(names: tuple[str, ...] | None, count: int) -> Queries:
    return Queries.from_arrays(np.zeros((2, count)), [0, 1], feature_names=names)


def test_groups_are_paid_once_and_the_longest_name_counts() -> None:
    features = FeatureCosts.parse(COSTS).of(described(NAMES, 5))
    alone = [features.cost_of(np.array([k])) for k in range(5)]
    assert alone == [2.0, 3.0, 20.0, 20.0, 1.0]
    assert features.cost_of(np.array([2, 3])) == 20.0
    assert features.cost_of(np.arange(5)) == 26.0
    assert features.cost_of(np.array([], dtype=np.int64)) == 0.0


def test_without_costs_features_are_counted() -> None:
    features = FeatureCosts().of(described(None, 4))
    assert features.cost_of(np.array([1, 3])) == 2.0
    assert FeatureCosts.parse({"f2": 5, "f?": 0}).of(described(None, 4)).cost_of(np.arange(4)) == 5.0


def test_the_features_of_one_column_are_computed_together() -> None:
    encoding = TableEncoding(columns={"shop": Category(("a", "b"), False)})
    names = (*encoding.features_of("shop"), "price")
    queries = replace(described(names, len(names)), encoding=encoding)
    assert FeatureCosts.parse({"shop": 7}).of(queries).cost_of(np.arange(len(names))) == 8.0


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"bm25*": -1}, "'bm25\\*' cannot cost -1"),
        ({"bm25*": True}, "cannot cost True"),
        ({"bm25*": float("nan")}, "cannot cost nan"),
        ({"g": {"features": ["emb_1"]}}, "the group 'g' is"),
        ({"g": {"features": [], "cost": 1}}, "the group 'g' is"),
        ({"g": {"features": ["emb_1"], "cost": "x"}}, "'g' cannot cost 'x'"),
    ],
)
def test_what_is_no_cost_is_refused(costs: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        FeatureCosts.parse(costs)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"bm52*": 1}, "the data have no feature 'bm52\\*'"),
        ({"*_1": 1, "em*": 2, "e*1": 3}, "'.*' and '.*' both fit the feature 'emb_1'"),
        ({"a": {"features": ["age"], "cost": 1}, "b": {"features": ["age"], "cost": 2}}, "'a' and 'b' both fit"),
    ],
)
def test_costs_that_do_not_fit_the_data_are_refused(costs: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        FeatureCosts.parse(costs).of(described(NAMES, 5))


def test_costs_are_read_from_text() -> None:
    assert read_costs("bm25*=2, bm25_body = 3") == {"bm25*": 2.0, "bm25_body": 3.0}
    for text in ("bm25", "=3", "bm25=dear"):
        with pytest.raises(ParameterError):
            read_costs(text)
