"""Trees answer as a walk from the root down says, whatever holds the features; what is no tree is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.models.tree_scoring import WALK_ROWS
from ranktune.solvers.models.trees import Trees, joined, one_tree, stumps
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
