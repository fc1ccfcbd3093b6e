"""Trees answer as a walk from the root down says, whatever holds the features; what is no tree is refused. Trees
prepared for many documents give the bits of a walk down each tree, whatever thresholds and values are."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ranktune.solvers import LinearModel, Queries, TreeModel
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.tree_kernels import BLOCK_ROWS, GROUP, MAX_LEAVES
from ranktune.solvers.models.tree_scoring import (
    MAX_THRESHOLDS,
    MIN_ROWS,
    SPARSE_ROWS,
    WALK_ROWS,
    can_be_quantised,
    quantised,
)
from ranktune.solvers.models.trees import ANY_VALUE, Trees, joined, one_tree, stumps
from tests.support.tree_samples import VALUES, grown, walked


def some(columns: int = 5) -> Trees:
    return joined([grown(seed, splits, columns) for seed, splits in enumerate((3, 0, 1, 17, 0, 40))])


def documents(rows: int, columns: int, dtype: Any = np.float64) -> Any:
    generator = np.random.default_rng(9)
    return generator.choice(VALUES, (rows, columns)).astype(dtype) * (generator.random((rows, columns)) < 0.6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, WALK_ROWS, 2 * WALK_ROWS + 3])
def test_scores_are_those_of_a_walk_down_each_tree(dtype: Any, rows: int) -> None:
    trees, X = some(), documents(rows, 5, dtype)
    expected = [walked(trees, row) for row in X]
    assert trees.scores(X).tolist() == expected
    for index in (np.int32, np.int64):
        thin = sparse.csr_array(X)
        thin.indices, thin.indptr = thin.indices.astype(index), thin.indptr.astype(index)
        assert trees.scores(thin).tolist() == expected
    assert trees.scores(X[:0]).shape == (0,)


@pytest.mark.parametrize("value", [0.1, 1.0 / 3.0, -2.7, 1e-30, 16777217.0])
def test_a_single_precision_value_at_a_threshold_goes_by_its_own_size(value: float) -> None:
    narrow = np.float32(value)
    tree = one_tree([0], [float(narrow)], [-1], [-2], [-1.0, 1.0])
    below, above = (np.nextafter(narrow, np.float32(end)) for end in (-np.inf, np.inf))
    steps = np.array([[below], [narrow], [above]])
    assert steps.dtype == np.float32
    assert tree.scores(steps).tolist() == [-1.0, -1.0, 1.0]
    before = one_tree([0], [np.nextafter(float(narrow), -np.inf)], [-1], [-2], [-1.0, 1.0])  # no float32 is between
    assert before.scores(steps).tolist() == [-1.0, 1.0, 1.0]


def test_a_sparse_matrix_stores_zeros_and_leaves_others_out() -> None:
    tree = one_tree([1, 2], [-0.5, 0.0], [-1, -2], [1, -3], [1.0, 2.0, 3.0])
    stored = sparse.csr_array((np.array([0.0, -0.0, -1.0]), np.array([1, 2, 1]), np.array([0, 2, 2, 3])), shape=(3, 4))
    assert tree.scores(stored).tolist() == [2.0, 2.0, 1.0]


def test_columns_that_no_tree_looks_at_may_be_many() -> None:
    wide = sparse.csr_array((np.array([1.0, 5.0]), (np.array([0, 1]), np.array([3_000_000, 7]))), shape=(2, 4_000_000))
    tree = one_tree([3_000_000], [0.5], [-1], [-2], [0.0, 1.0])
    assert tree.scores(wide).tolist() == [1.0, 0.0]


def test_joined_trees_add_up_and_scaling_multiplies() -> None:
    X = documents(50, 5)
    parts = [grown(1, 4, 5), some(), grown(2, 0, 5)]
    together = joined(parts)
    assert together.n_trees == 8 and together.n_splits == sum(part.n_splits for part in parts)
    assert np.allclose(together.scores(X), sum(part.scores(X) for part in parts), rtol=0, atol=1e-12)
    assert joined([joined(parts[:2]), parts[2]]).scores(X).tobytes() == together.scores(X).tobytes()
    assert together.scaled(4.0).scores(X).tobytes() == (4.0 * together.scores(X)).tobytes()
    assert together.features.tolist() == sorted({int(k) for part in parts for k in part.feature})


def test_stumps_are_sums_of_weighted_steps() -> None:
    X = documents(40, 5)
    features, thresholds, weights = [4, 0, 4], [0.1, -0.5, 1.0], [0.3, -2.0, 0.7]
    expected = sum(w * (X[:, f] > t) for f, t, w in zip(features, thresholds, weights, strict=True))
    assert np.allclose(stumps(features, thresholds, weights).scores(X), expected, rtol=0, atol=1e-15)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tree": ({"starts": np.array([0])}, "at least one tree"),
    "first start": ({"starts": np.array([1, 3, 4])}, "starts must rise"),
    "last start": ({"starts": np.array([0, 3, 5])}, "starts must rise"),
    "falling starts": ({"starts": np.array([0, 5, 4])}, "starts must rise"),
    "missing leaf": ({"value": np.zeros(5)}, "shapes"),
    "missing threshold": ({"threshold": np.zeros(3)}, "shapes"),
    "one child": ({"children": np.zeros((4, 1), dtype=np.int32)}, "shapes"),
    "NaN threshold": ({"threshold": np.array([0.0, np.nan, 0.0, 0.0])}, "not finite"),
    "infinite leaf": ({"value": np.array([0.0, 0.0, 0.0, 0.0, 0.0, np.inf])}, "not finite"),
    "negative column": ({"feature": np.array([0, 0, -1, 0], dtype=np.int32)}, "below 0"),
}


@pytest.mark.parametrize("change", WRONG)
def test_arrays_that_do_not_fit_are_refused(change: str) -> None:
    trees = joined([grown(0, 3, 2), grown(1, 1, 2)])
    changed, said = WRONG[change]
    with pytest.raises(DataError, match=said):
        replace(trees, **changed)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("split", range(4))
def test_every_other_child_is_refused(split: int, side: int) -> None:
    """Cycles, parents, children of other trees, leaves that are not there or taken: going down would err or not end."""
    trees = joined([grown(0, 3, 2), grown(1, 1, 2)])
    right = int(trees.children[split, side])
    for child in range(-9, 9):
        children = trees.children.copy()
        children[split, side] = child
        if child == right:
            replace(trees, children=children)
        else:
            with pytest.raises(DataError, match="child"):
                replace(trees, children=children)


SPECIAL = np.array(
    [
        *(0.0, -0.0, 5e-324, -5e-324, 1e-45, -1e-45, 1e-320, 0.1, float(np.float32(0.1)), 1 / 3, 16777217.0, -2.5),
        *(3.4028234663852886e38, 3.5e38, -3.5e38, 1e300, -ANY_VALUE, 1.7e308),
    ]
)
"""Zeros, denormals of both precisions, numbers between two of single precision, and beyond the largest."""


def assert_same(trees: Trees, X: Any) -> None:
    """Assert that prepared trees give the bits that walks give, which are those of the definition."""
    result = quantised(trees).scores(X)
    assert result.dtype == np.float64
    assert result.tobytes() == np.array([walked(trees, row) for row in X]).tobytes()


def rows_of(seed: int, shape: tuple[int, int], values: Floats, dtype: Any, missing: float) -> Any:
    generator = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        X = generator.choice(values, shape).astype(dtype)
    X[~np.isfinite(X)] = np.finfo(dtype).max
    X[generator.random(shape) < missing] = np.nan
    return X


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    splits=st.lists(st.integers(0, 40), min_size=1, max_size=9),
    columns=st.integers(1, 4),
    n_rows=st.integers(1, 40),
    single=st.booleans(),
    sides=st.booleans(),
)
def test_bits_of_the_definition(
    seed: int, splits: list[int], columns: int, n_rows: int, single: bool, sides: bool
) -> None:
    trees = joined([grown(seed + k, count, columns, values=SPECIAL, sides=sides) for k, count in enumerate(splits)])
    assert_same(trees, rows_of(seed, (n_rows, columns + 1), SPECIAL, np.float32 if single else np.float64, 0.3))


@pytest.mark.parametrize("n_trees", range(1, 2 * GROUP + 2))
def test_any_number_of_trees_is_added_in_their_order(n_trees: int) -> None:
    values = 10.0 ** np.arange(n_trees)[::-1] / 3
    assert_same(stumps(np.zeros(n_trees, dtype=int), np.arange(n_trees), values), np.arange(-1.0, n_trees)[:, None])


@pytest.mark.parametrize("n_leaves", [2, 64, 65, MAX_LEAVES])
@pytest.mark.parametrize("shape", ["chain", "bushy"])
def test_trees_of_up_to_256_leaves(n_leaves: int, shape: str) -> None:
    splits = np.arange(n_leaves - 1)
    if shape == "chain":
        left, right = ~splits, np.append(splits[1:], ~(n_leaves - 1))
        tree = one_tree(splits % 3, splits / 7, left, right, [*splits.tolist(), -1.0])
    else:
        tree = grown(5, n_leaves - 1, 3, values=np.linspace(-1.0, 1.0, 300), sides=True)
    assert can_be_quantised(tree)
    X = rows_of(3, (60, 3), np.linspace(-1.0, 40.0, 999), np.float64, 0.1)
    assert_same(joined([tree, grown(6, 3, 3), tree]), X)


@pytest.mark.parametrize("count", [MAX_THRESHOLDS - 1, MAX_THRESHOLDS, MAX_THRESHOLDS + 1, 2 * MAX_THRESHOLDS + 5])
def test_a_feature_may_have_any_number_of_thresholds(count: int) -> None:
    thresholds = np.random.default_rng(2).permutation(count) / 8.0
    around = np.ravel([np.nextafter(thresholds, end) for end in (-np.inf, 0.0, np.inf)])
    X = np.zeros((40, 2))
    X[:, 1] = np.random.default_rng(3).choice(np.append(thresholds, around), len(X))
    assert_same(stumps(np.full(count, 1), thresholds, 1.0 / (1.0 + thresholds)), X)


def test_trees_with_more_leaves_are_walked() -> None:
    large = joined([grown(1, MAX_LEAVES, 3), grown(2, 5, 3)])
    assert not can_be_quantised(large)
    X = np.random.default_rng(3).normal(size=(40, 3))
    large.preparation.n_scored = 10**9
    assert large.scores(X).tolist() == [walked(large, row) for row in X]
    assert large.preparation.trees is None


def test_trees_are_prepared_once_they_have_scored_enough_rows_and_copies_start_anew() -> None:
    trees = joined([grown(seed, 12, 3) for seed in range(20)])
    X = np.random.default_rng(3).normal(size=(MIN_ROWS, 3))
    while trees.preparation.trees is None and trees.preparation.n_scored < 10**5:
        before = trees.scores(X)
    prepared = trees.preparation.trees
    assert prepared is not None
    assert trees.scores(X).tobytes() == before.tobytes()
    assert trees.scores(X[:1]).tobytes() == before[:1].tobytes()
    assert trees.preparation.trees is prepared
    copy = pickle.loads(pickle.dumps(trees))
    assert copy.preparation.trees is None and copy.preparation.n_scored == 0
    assert trees.scaled(2.0).preparation.trees is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_have_the_scores_of_dense_ones(dtype: Any) -> None:
    trees = joined([grown(seed, 20, 7) for seed in range(20)]).on_columns(np.array([2, 3, 5, 7, 11, 13, 17]))
    X = sparse.random_array((SPARSE_ROWS + 50, 20), density=0.3, rng=np.random.default_rng(4), dtype=dtype).tocsr()
    for _ in range(3):
        result = trees.scores(X)
        assert result.tobytes() == np.array([walked(trees, row) for row in X.toarray()]).tobytes()
    assert trees.preparation.trees is not None


@pytest.mark.parametrize("n_rows", [1, MIN_ROWS, 3 * BLOCK_ROWS])
def test_models_and_blends_predict_the_same_bits_however_many_documents(n_rows: int) -> None:
    generator = np.random.default_rng(8)
    X = generator.normal(size=(3 * BLOCK_ROWS, 4)).astype(np.float32)
    members = [TreeModel(joined([grown(s + 50 * k, 15, 4) for s in range(30)]), 4, "GBDT") for k in range(2)]
    linear = LinearModel(generator.normal(size=4), "RankSVM")
    blend = blended([*members, linear], [0.3, 0.6, 1.5], "blend", {})
    together = joined([members[0].trees.scaled(0.3), members[1].trees.scaled(0.6)])
    expected = LinearModel(1.5 * linear.weights, "RankSVM").predict(X) + np.array([walked(together, row) for row in X])
    for _ in range(3):
        assert blend.predict(X[:n_rows]).tobytes() == expected[:n_rows].tobytes()
    assert blend.predict(Queries.from_arrays(X, np.zeros(len(X)))).tobytes() == expected.tobytes()
