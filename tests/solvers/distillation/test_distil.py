"""Distillation: how far a staircase may be from its line, what stays as it is, and what is learnt from scores."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ranktune.solvers import distil
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.distillation import MAX_STEPS, STEPS, staircase
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps
from tests.support.export_samples import random_trees

NAMES = ("a", "b", "c", "d", "e", "f")


def documents(seed: int = 0, queries: int = 40) -> Queries:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(10 * queries, 6))
    X[:, 1] = generator.integers(3, size=len(X))  # a feature of few values
    return Queries.from_arrays(X, np.zeros(len(X)), qid=np.repeat(np.arange(queries), 10), feature_names=NAMES)


def blend() -> BlendModel:
    weights = LinearModel(np.array([1.0, -2.0, 0.0, 0.5, 0.0, -1e-3]), "RankSVM", feature_names=NAMES)
    trees = TreeModel(random_trees(1, count=5).scaled(0.3), 6, "LambdaMART", feature_names=NAMES)
    return BlendModel((weights, trees), "Blend", feature_names=NAMES, metric="ndcg@10", fingerprint="abc")


def spread(scores: Floats, queries: Queries) -> float:
    return float(np.sqrt(np.mean(without_level(scores, queries) ** 2)))


values = st.lists(st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, 1.5]), min_size=1, max_size=60)


@settings(deadline=None)
@given(values, st.floats(-10.0, 10.0).filter(lambda w: abs(w) > 1e-3), st.floats(1e-3, 1e3))
def test_a_staircase_is_near_its_line_and_rises_with_it(known: list[float], weight: float, step: float) -> None:
    x = np.array(known)
    tree = staircase(0, weight, x, step)
    result = tree.scores(np.sort(x)[:, None])
    assert tree.n_splits < MAX_STEPS and len(np.unique(x)) > tree.n_splits
    assert (np.diff(result) * np.sign(weight) >= -1e-9 * np.abs(result).max()).all()
    if tree.n_splits + 1 <= len(np.unique(x)) < MAX_STEPS:  # the steps were not widened
        assert np.abs(result - weight * np.sort(x)).max() <= step * (1 + 1e-9)


def test_few_values_are_met_exactly() -> None:
    x = np.repeat([0.0, 0.25, 7.0], [5, 1, 3])
    tree = staircase(2, -4.0, x, 1e-6)
    rows = np.zeros((6, 3))
    rows[:, 2] = [0.0, 0.25, 7.0, -9.0, 99.0, 0.1]
    assert tree.scores(rows).tolist() == [0.0, -1.0, -28.0, 0.0, -28.0, 0.0]


def test_neighbouring_numbers_are_told_apart() -> None:
    x = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert staircase(0, 1e18, x, 1e-3).n_splits == 1


def test_many_values_share_the_most_steps_there_may_be() -> None:
    x = np.random.default_rng(0).normal(size=5000)
    tree = staircase(0, 1.0, x, 1e-9)
    assert 150 < tree.n_splits < MAX_STEPS
    assert np.abs(tree.scores(x[:, None]) - x).max() < 0.1


def test_a_sum_of_weights_and_trees_becomes_trees_that_score_alike() -> None:
    model, queries, fresh = blend(), documents(0), documents(1)
    copy = distil(model, queries)
    assert isinstance(copy, TreeModel)
    assert copy.trees.n_trees == 5 + 4  # a staircase for each weight
    assert (copy.feature_names, copy.metric, copy.fingerprint) == (NAMES, "ndcg@10", "abc")
    scores = model.predict(queries)
    reach = np.ptp(queries.features, axis=0) * np.abs(model.parts[0].weights)  # type: ignore[attr-defined]
    steps = np.maximum(spread(scores, queries) / STEPS, 1.25 * 1.25 * reach / MAX_STEPS)  # at most so high
    assert np.abs(copy.predict(queries) - scores).max() <= steps.sum()
    inside = (np.abs(fresh.features) < np.abs(queries.features).max(axis=0)).all(axis=1)
    errors = copy.predict(fresh) - model.predict(fresh)
    assert errors[inside].std() < 0.01 * scores.std() and inside.mean() > 0.5
    np.testing.assert_array_equal(distil(model, queries).predict(fresh), copy.predict(fresh))


def test_columns_are_matched_by_name_and_sparse_ones_are_taken() -> None:
    model, queries = blend(), documents()
    expected = distil(model, queries).predict(queries)
    turned = replace(queries, features=np.ascontiguousarray(queries.features[:, ::-1]), feature_names=NAMES[::-1])
    np.testing.assert_array_equal(distil(model, turned).predict(queries), expected)
    stored = replace(queries, features=sparse.csr_array(queries.features))
    np.testing.assert_array_equal(distil(model, stored).predict(queries), expected)


def test_a_single_model_is_returned_unchanged() -> None:
    trees = TreeModel(stumps([0], [0.0], [1.0]), 6, "RankBoost")
    line = LinearModel(np.ones(6), "RankSVM")
    assert distil(trees, documents()) is trees
    assert distil(line, documents(), "linear") is line
    assert isinstance(distil(line, documents()), TreeModel)


def test_features_scaled_by_query_are_learnt() -> None:
    model, queries, fresh = LinearModel(np.arange(6.0), "Ranker", list_scaling=True), documents(0, 200), documents(1)
    copy = distil(model, queries)
    ours, theirs = (without_level(each.predict(fresh), fresh) for each in (model, copy))
    assert isinstance(copy, TreeModel) and np.corrcoef(ours, theirs)[0, 1] > 0.9


def test_fewer_trees_are_learnt_the_more_the_better() -> None:
    model, queries, fresh = blend(), documents(0, 100), documents(1)
    expected = model.predict(fresh)
    errors = []
    for count in (10, 200):
        copy = distil(model, queries, trees=count)
        assert isinstance(copy, TreeModel) and copy.trees.n_trees == count
        errors.append(float(np.std(copy.predict(fresh) - expected)))
    assert errors[1] < 0.6 * errors[0] and errors[1] < 0.4 * expected.std()


def test_weights_are_recovered_from_scores() -> None:
    weights = np.array([1.0, -2.0, 0.0, 0.5, 0.0, 3.0])
    flat = TreeModel(stumps([2], [1e9], [1.0]), 6, "RankBoost")  # no document is above
    copy = distil(BlendModel((LinearModel(weights, "x"), flat), "Blend"), documents(), "linear")
    assert isinstance(copy, LinearModel)
    np.testing.assert_allclose(copy.weights, weights, atol=0.05)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="into='forest'"):
        distil(blend(), documents(), "forest")
    with pytest.raises(ParameterError, match="trees=0"):
        distil(blend(), documents(), trees=0)
    with pytest.raises(ParameterError, match="exclude each other"):
        distil(blend(), documents(), "linear", trees=5)
    with pytest.raises(DataError, match="same score"):
        distil(LinearModel(np.zeros(6), "x"), documents())
    with pytest.raises(DataError, match="6 named features"):
        distil(blend(), replace(documents(), feature_names=tuple("uvwxyz")))
