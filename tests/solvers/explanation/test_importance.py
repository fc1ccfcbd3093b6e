"""Importance is what a loop over features, shuffles and queries finds; effects are those of a loop over documents."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, dense
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.contributions import grid_of, partial_effects, shuffled_rows, shuffling_losses
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.custom import CustomModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_samples import random_rows, random_trees

WIDTH = 4
METRIC = parse_metric("ndcg@3:empty=skip")


class Product:
    def predict(self, X: Any, qid: Any = None) -> Floats:
        scores: Floats = X[:, 0] * X[:, 1]
        return scores if qid is None else scores + np.asarray(qid)


def models() -> dict[str, Model]:
    weights, adds = np.random.default_rng(0).normal(size=(2, WIDTH))
    linear = LinearModel(weights, "RankSVM", missing=adds)
    scaled = LinearModel(adds, "ListNet", missing=weights, list_scaling=True)
    trees = TreeModel(random_trees(0, features=WIDTH), WIDTH, "LambdaMART")
    custom = CustomModel(Product(), WIDTH, "Mine", "Mine")
    blend = BlendModel((linear, scaled, custom), "Blend")
    return {"linear": linear, "list": scaled, "trees": trees, "custom": custom, "blend": blend}


def queries(layout: Any = np.asarray, seed: int = 0) -> Queries:
    generator = np.random.default_rng(seed)
    X = random_rows(seed, 60, WIDTH) * (generator.random((60, WIDTH)) < 0.7)
    grades = generator.integers(0, 3, 60).astype(float)
    grades[:10] = 0.0  # a query without an order
    return Queries.from_arrays(layout(X), grades, group=[10, 3, 7, 20, 20])


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_losses_are_those_of_a_loop(name: str, layout: Any) -> None:
    if name in ("custom", "blend") and layout is not np.asarray:
        pytest.skip("the estimator is written for dense features")
    model, data = models()[name], queries(layout)
    X = np.array(dense(data.features))
    groups = [np.array([2]), np.array([0, 3])]
    result = shuffling_losses(model, data, METRIC, groups, repeats=3, seed=7)
    before = METRIC.per_query(model.predict(data), data)
    for losses, columns in zip(result, groups, strict=True):
        generator, total = np.random.default_rng([7, int(columns[0])]), np.zeros(data.n_queries)
        for _ in range(3):
            changed, taken = X.copy(), shuffled_rows(data, generator)
            for row, source in enumerate(taken):
                for column in columns:
                    changed[row, column] = X[source, column]
            total += before - METRIC.per_query(model.predict(data.with_features(layout(changed))), data)
        np.testing.assert_allclose(losses, total / 3, rtol=0, atol=1e-12)


def test_shuffled_rows_stay_in_their_query_and_are_uniform() -> None:
    data, generator = queries(), np.random.default_rng(0)
    for _ in range(20):
        rows = shuffled_rows(data, generator)
        assert sorted(rows) == list(range(60))
        assert (data.query_of_document[rows] == data.query_of_document).all()
    drawn = [tuple(shuffled_rows(data, generator)[10:13]) for _ in range(3_000)]
    counts = np.array([drawn.count(order) for order in permutations((10, 11, 12))])
    assert counts.sum() == 3_000
    assert (np.abs(counts - 500) < 100).all()  # five standard deviations


def test_a_feature_of_the_query_and_an_unused_one_lose_nothing() -> None:
    data = queries()
    X = np.array(data.features)
    X[:, 1] = data.query_of_document
    model = LinearModel(np.array([1.0, 5.0, 0.0, 1.0]), "RankSVM")
    losses = shuffling_losses(model, data.with_features(X), METRIC, [np.array([1]), np.array([2]), np.array([0])])
    assert np.nanmax(np.abs(losses[:2])) < 1e-12
    assert np.nanmean(losses[2]) != 0.0
    assert np.isnan(losses[:, 0]).all()


def effects_by_loop(model: Model, data: Queries, column: int, grid: Floats) -> Floats:
    X = np.asarray(data.features)
    before, result = model.predict(data), np.zeros(len(grid))
    for k, value in enumerate(grid):
        for a, b in zip(data.starts[:-1], data.starts[1:], strict=True):
            rows = X[a:b].copy()
            rows[:, column] = value
            result[k] += np.mean(model.predict(rows) - before[a:b].mean()) / data.n_queries
    return result


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_effects_are_those_of_a_loop(name: str) -> None:
    model, data = models()[name], queries()
    for column in range(WIDTH):
        grid = grid_of(data, column, 5)
        np.testing.assert_allclose(
            partial_effects(model, data, column, grid), effects_by_loop(model, data, column, grid), rtol=0, atol=1e-9
        )


def test_effects_with_missing_values_and_features_scaled_by_query() -> None:
    """A document that has its own value, or the mean where it lacks one, changes nothing; the slope is the weight over
    the range."""
    data = queries()
    X = np.array(data.features)
    X[::7, 0] = np.nan
    lacking = Queries.from_arrays(X, data.grades, group=data.lengths)
    weights = np.array([2.0, 0.0, 0.0, 1.0])
    model = LinearModel(weights, "ListNet", list_scaling=True, missing=np.array([0.5, 0.0, 0.0, 0.0]))
    result = partial_effects(model, lacking, 0, np.array([0.0, 1.0]))
    ranges = [np.nanmax(part) - np.nanmin(part) for part in np.split(X[:, 0], data.starts[1:-1])]
    assert result[1] - result[0] == pytest.approx(2.0 * np.mean(1.0 / np.array(ranges)))
    means = np.mean([
        np.mean(np.where(np.isnan(part), np.nanmean(part), part)) * 2.0 / spread + 0.5 * np.isnan(part).mean()
        for part, spread in zip(np.split(X[:, 0], data.starts[1:-1]), ranges, strict=True)
    ])  # fmt: skip
    assert result[0] == pytest.approx(-means)
    assert (partial_effects(model, lacking, 1, np.array([0.0, 1.0])) == 0.0).all()


def test_effects_of_a_blend_and_an_estimator_of_the_users() -> None:
    class Alone(Product):
        def predict(self, X: Any) -> Floats:  # type: ignore[override]
            return super().predict(X)

    data, custom = queries(), CustomModel(Alone(), WIDTH, "Mine", "Mine", factor=3.0)
    linear = models()["linear"]
    grid = grid_of(data, 0, 4)
    assert len(grid) == len(np.unique(grid)) == 4
    np.testing.assert_allclose(
        partial_effects(custom, data, 0, grid), effects_by_loop(custom, data, 0, grid), rtol=0, atol=1e-9
    )
    both = partial_effects(BlendModel((linear, custom), "Blend"), data, 0, grid)
    parts = [partial_effects(part, data, 0, grid) for part in (linear, custom)]
    np.testing.assert_allclose(both, parts[0] + parts[1], rtol=0, atol=1e-12)


def test_the_grid_of_a_feature_without_values_is_empty() -> None:
    data = Queries.from_arrays(np.array([[np.nan, 1.0], [np.nan, 1.0]]), [0.0, 1.0])
    columns = [grid_of(data, j).tolist() for j in range(2)]
    assert columns == [[], [1.0]]
