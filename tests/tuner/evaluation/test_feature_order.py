"""Sets of features: they keep the limits, lie within each other, and explain nearly as much as the best of all sets."""

from collections.abc import Sequence
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.feature_costs import FeatureCosts, FeatureLimits, GroupedFeatures
from ranktune.tuner.evaluation.feature_order import ordered

TOLERANCE = 0.9
"""Share of what the best set explains that the greedy one explains at least."""


def correlated(seed: int, d: int = 6, queries: int = 30) -> Queries:
    """Queries whose grades follow some of d correlated features."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(queries * 8, d)) @ generator.normal(size=(d, d))
    y = X @ generator.normal(size=d) / 3.0 + generator.normal(size=len(X))
    return Queries.from_arrays(X, np.digitize(y, [-2.0, 0.0, 2.0]), group=[8] * queries)


def explained(queries: Queries, columns: Sequence[int]) -> float:
    """The share of the grades' variance within queries that a linear regression explains, by least squares."""

    def centred(values: Floats) -> Floats:
        cut = np.split(values, queries.starts[1:-1])
        return np.concatenate([part - part.mean(axis=0) for part in cut])

    if not columns:
        return 0.0
    X, y = centred(np.asarray(queries.features)[:, list(columns)]), centred(queries.grades)
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return 1.0 - float(residual @ residual) / float(y @ y)


def subsets(d: int) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(d), k) for k in range(1, d + 1))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("by_group", [False, True])
def test_the_set_explains_nearly_as_much_as_the_best_of_all(seed: int, by_group: bool) -> None:
    queries = correlated(seed)
    generator = np.random.default_rng(seed)
    group = np.array([0, 0, 1, 2, 2, 3]) if by_group else np.arange(6)
    features = GroupedFeatures(group, generator.integers(1, 6, size=group.max() + 1).astype(float))
    limits = FeatureLimits(cost=float(features.cost.sum()) / 2.0)
    best = max(explained(queries, subset) for subset in subsets(6) if features.cost_of(np.array(subset)) <= limits.cost)
    selected = ordered(queries, features, limits).first(1.0)
    assert features.cost_of(selected) <= limits.cost
    assert explained(queries, selected.tolist()) >= TOLERANCE * best


@given(
    seed=st.integers(0, 1000),
    costs=st.lists(st.integers(0, 9), min_size=5, max_size=5),
    groups=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    most=st.floats(0.0, 30.0),
    count=st.one_of(st.just(float("inf")), st.floats(0.0, 6.0)),
)
@settings(max_examples=60, deadline=None)
def test_every_part_keeps_the_limits_and_lies_within_the_larger(
    seed: int, costs: list[int], groups: list[int], most: float, count: float
) -> None:
    group = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    features = GroupedFeatures(group, np.array(costs[: group.max() + 1], dtype=float))
    order = ordered(correlated(seed, d=5, queries=6), features, FeatureLimits(most, count))
    before: Ints = np.empty(0, dtype=np.int64)
    for share in np.linspace(0.0, 1.0, 9):
        selected = order.first(float(share))
        assert features.cost_of(selected) <= most * (1 + 1e-6)
        assert len(selected) <= count
        assert set(before) <= set(selected)
        before = selected
    affordable = (features.cost[group] <= most).any() and count >= 1
    assert bool(len(before)) == affordable


def test_the_cheap_one_of_two_copies_is_taken() -> None:
    queries = correlated(3)
    X = np.asarray(queries.features)
    copies = queries.with_features(np.column_stack([X[:, 0], X, X[:, 1]]))
    costs = {"f1": 5.0, "f8": 5.0}
    selected = ordered(copies, FeatureCosts.parse(costs).of(copies), FeatureLimits(cost=6.0)).first(1.0)
    assert selected.tolist() == [1, 2, 3, 4, 5, 6]


def test_an_expensive_feature_that_alone_explains_enough_is_selected() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 6))
    queries = Queries.from_arrays(X, (X[:, 0] + 0.2 * X[:, 1] > 0).astype(int), group=[8] * 50)
    features = GroupedFeatures(np.arange(6), np.array([10.0, 0.1, 1.0, 1.0, 1.0, 1.0]))
    assert 0 in ordered(queries, features, FeatureLimits(cost=10.0)).first(1.0)


def test_monotone_relations_and_missing_values_count() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(600, 4))
    y = x[:, 1] + 0.1 * generator.normal(size=600)
    x[:, 1] = np.exp(6.0 * x[:, 1])  # linear in its rank alone
    x[y > 1.0, 2] = np.nan  # its absence says most
    queries = Queries.from_arrays(x, np.digitize(y, [-1.0, 0.0, 1.0]), group=[10] * 60)
    order = ordered(queries, FeatureCosts().of(queries), FeatureLimits(features=2.0))
    assert order.first(1.0).tolist() == [1, 2]


def test_sparse_and_very_many_features_are_screened() -> None:
    generator = np.random.default_rng(2)
    X = sparse.random_array((300, 1500), density=0.01, rng=generator, format="csr")
    X = sparse.csr_array(sparse.hstack([X, sparse.csr_array(generator.normal(size=(300, 1)))]))
    queries = Queries.from_arrays(X, (X.toarray()[:, -1] > 0).astype(int), group=[10] * 30)
    order = ordered(queries, FeatureCosts().of(queries), FeatureLimits(features=3.0))
    assert order.columns[0] == 1500
