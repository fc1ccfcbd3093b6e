"""Contributions are the Shapley values of the game that the package describes, counted over all coalitions."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, Matrix, dense
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import scaled_by_list
from ranktune.solvers.explanation import tree_contributions as trees_module
from ranktune.solvers.explanation.contributions import contributions, is_exact
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.custom import CustomModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined, one_tree
from tests.support.export_samples import random_rows, random_trees

WIDTH = 6
DOCUMENTS, BACKGROUND = np.array([0, 3]), np.array([1, 2, 4])


class Multiplied:
    """Features that work together, and one that does nothing."""

    def predict(self, X: Any) -> Floats:
        scores: Floats = X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3]
        return scores


class WithinQuery(Multiplied):
    def predict(self, X: Any, qid: Any = None) -> Floats:
        return super().predict(X)


def query(seed: int = 0, rows: int = 5, *, missing: float = 0.0, layout: Any = np.asarray) -> Queries:
    X = random_rows(seed, rows, WIDTH)
    X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    return Queries.from_arrays(layout(X), np.arange(float(rows)))


def with_sides(trees: Trees, seed: int) -> Trees:
    return replace(trees, missing_left=np.random.default_rng(seed).random(trees.n_splits) < 0.5)


def counted(score: Callable[[Matrix], Floats], document: Matrix, other: Matrix) -> Floats:
    """The Shapley values of the features of one document against those of another, by their definition."""
    width = len(document)
    values = np.zeros(width)
    for j in range(width):
        others = [i for i in range(width) if i != j]
        for size in range(width):
            weight = factorial(size) * factorial(width - size - 1) / factorial(width)
            for coalition in combinations(others, size):
                row = other.copy()
                row[list(coalition)] = document[list(coalition)]
                joined_by = row.copy()
                joined_by[j] = document[j]
                with_j, without = score(np.stack([joined_by, row]))
                values[j] += weight * (with_j - without)
    return values


def against_background(score: Callable[[Matrix], Floats], X: Matrix) -> Floats:
    return np.stack([np.mean([counted(score, X[a], X[z]) for z in BACKGROUND], axis=0) for a in DOCUMENTS])


def assert_adds_up(model: Model, queries: Queries) -> None:
    result, scores = contributions(model, queries, DOCUMENTS, BACKGROUND), model.predict(queries)
    np.testing.assert_allclose(
        result.sum(axis=1), scores[DOCUMENTS] - scores[BACKGROUND].mean(), rtol=0, atol=1e-9 * np.abs(scores).max()
    )


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_of_trees(seed: int, missing: float) -> None:
    trees = random_trees(seed, count=4, features=WIDTH, splits=9)
    trees = with_sides(joined([trees, one_tree([], [], [], [], [0.5])]), seed) if missing else trees
    queries, model = query(seed, missing=missing), TreeModel(trees, WIDTH, "LambdaMART")
    expected = against_background(trees.scores, np.asarray(queries.features))
    np.testing.assert_allclose(contributions(model, queries, DOCUMENTS, BACKGROUND), expected, rtol=0, atol=1e-12)
    assert_adds_up(model, queries)


def test_of_trees_in_blocks_of_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    model, queries = TreeModel(random_trees(1, features=WIDTH), WIDTH, "LambdaMART"), query()
    whole = contributions(model, queries, DOCUMENTS, BACKGROUND)
    monkeypatch.setattr(trees_module, "BLOCK", 1)
    assert (contributions(model, queries, DOCUMENTS, BACKGROUND) == whole).all()


def test_of_long_trees_add_up() -> None:
    """A tree of a single long path, on which a document and another part at every split."""
    splits, seed = 300, np.random.default_rng(0)
    chain = one_tree(
        np.arange(splits), np.zeros(splits), ~np.arange(splits), np.append(np.arange(1, splits), ~splits),
        seed.normal(size=splits + 1),
    )  # fmt: skip
    X = np.where(seed.random((5, splits)) < 0.02, -1.0, 1.0)
    assert_adds_up(TreeModel(chain, splits, "LambdaMART"), Queries.from_arrays(X, np.arange(5.0)))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("by_list", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_of_linear_models(missing: float, by_list: bool, dtype: Any, layout: Any) -> None:
    generator = np.random.default_rng(1)
    weights, adds = generator.normal(size=WIDTH), generator.normal(size=WIDTH) if missing else None
    weights[2] = 0.0
    model = LinearModel(weights, "RankSVM", list_scaling=by_list, missing=adds)
    queries = query(2, missing=missing, layout=lambda X: layout(X.astype(dtype)))
    assert_adds_up(model, queries)
    if not missing:
        X = scaled_by_list(queries.features, queries.starts) if by_list else queries.features
        X = dense(X).astype(np.float64)
        expected = weights * (X[DOCUMENTS] - X[BACKGROUND].mean(axis=0))
        np.testing.assert_allclose(contributions(model, queries, DOCUMENTS, BACKGROUND), expected, rtol=0, atol=1e-12)
    elif not by_list:
        expected = against_background(model.predict, dense(queries.features))
        np.testing.assert_allclose(contributions(model, queries, DOCUMENTS, BACKGROUND), expected, rtol=0, atol=1e-6)


def test_of_a_blend_are_those_of_its_parts() -> None:
    trees = TreeModel(with_sides(random_trees(0, features=WIDTH), 0), WIDTH, "LambdaMART")
    weights, adds = np.random.default_rng(0).normal(size=(2, WIDTH))
    linear = LinearModel(weights, "RankSVM", missing=adds)
    scaled = LinearModel(adds, "ListNet", missing=weights, list_scaling=True)
    queries, blend = query(3, missing=0.2), BlendModel((linear, scaled, trees), "Blend")
    assert_adds_up(blend, queries)
    parts = sum(contributions(part, queries, DOCUMENTS, BACKGROUND) for part in blend.parts)
    np.testing.assert_allclose(contributions(blend, queries, DOCUMENTS, BACKGROUND), parts, rtol=0, atol=1e-12)
    assert is_exact(blend)


def test_of_an_estimator_of_the_users_are_sampled_and_add_up() -> None:
    model, queries = CustomModel(Multiplied(), WIDTH, "Mine", "Mine", factor=2.0), query(6)
    assert_adds_up(model, queries)
    assert not is_exact(model)
    result = contributions(model, queries, DOCUMENTS, BACKGROUND)
    assert (result == contributions(model, queries, DOCUMENTS, BACKGROUND)).all()
    assert (result[:, 4:] == 0.0).all()
    expected = against_background(model.predict, np.asarray(queries.features))
    np.testing.assert_allclose(result, expected, rtol=0, atol=0.3 * np.abs(expected).max())
    np.testing.assert_allclose(result[:, 3], expected[:, 3], rtol=0, atol=1e-12)  # it adds by itself


def test_of_an_estimator_that_sees_the_whole_query_are_refused() -> None:
    model = CustomModel(WithinQuery(), WIDTH, "Mine", "Mine")
    with pytest.raises(ParameterError, match="WithinQuery takes qid"):
        contributions(model, query(), DOCUMENTS, BACKGROUND)
