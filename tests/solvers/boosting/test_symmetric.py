"""SymmetricGBDT against trees grown by brute force; missing values, parts, shared bins, losses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting import bins as binning
from ranktune.solvers.boosting import symmetric as growing
from ranktune.solvers.boosting.bins import binned
from ranktune.solvers.boosting.growth import queries_with_pairs
from ranktune.solvers.boosting.objectives import QueryError
from ranktune.solvers.boosting.symmetric import KEPT, SymmetricGBDT
from ranktune.solvers.boosting.symmetric_kernels import order_leaves
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric

ALL: Mapping[str, Any] = {"feature_share": 1.0, "row_share": 1.0}


def graded(seed: int = 0, *, missing: bool = False, weighted: bool = False, queries: int = 40) -> Queries:
    """Queries of 2 to 24 documents, graded by a product of features and by what is missing."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 25, queries)
    number = np.repeat(np.arange(queries), lengths)
    X = np.round(generator.normal(size=(lengths.sum(), 5)), 1)
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * generator.normal(size=len(X))
    if missing:
        lacking = generator.random(X.shape) < 0.2
        lacking[:, 4] = False
        score -= 2.0 * lacking[:, 3]
        X[lacking] = np.nan
    weights = generator.random(queries) + 0.5 if weighted else None
    grades = np.digitize(score, np.quantile(score, [0.5, 0.8]))
    return Queries.from_arrays(X, grades, qid=number, query_weights=weights)


def brute_force(queries: Queries, rounds: int, depth: int, l2: float, rate: float) -> Floats:
    """Grow trees that try each threshold at each level; return the scores of the documents."""
    X, scores = np.asarray(queries.features), np.zeros(queries.n_documents)
    error, cuts = QueryError(queries, queries.grades), binned(queries.features, 128).cuts
    sides = [np.isnan(X[:, f]) | (X[:, f] <= cut) for f in range(X.shape[1]) for cut in cuts[f]]

    def steps(leaves: Floats) -> tuple[float, Floats]:
        score, step = 0.0, np.zeros(len(X))
        for leaf in np.unique(leaves):
            inside = leaves == leaf
            G, H = gradient[inside].sum(), curvature[inside].sum()
            score += G * G / (H + l2)
            step[inside] = -rate * G / (H + l2)
        return float(score), step

    for _ in range(rounds):
        gradient, curvature = error.derivatives(scores)
        leaves = np.zeros(len(X))
        for _ in range(depth):
            values = [steps(2 * leaves + ~side)[0] for side in sides]
            leaves = 2 * leaves + ~sides[int(np.argmax(np.array(values) > max(values) - 1e-9))]
        scores = scores + steps(leaves)[1]
    return scores


@pytest.mark.parametrize(("kept", "l2"), [(0, 3.0), (1, 0.0), (2, 3.0)])
@pytest.mark.parametrize(("missing", "weighted"), [(False, False), (True, True)])
def test_each_level_has_the_best_split_of_all(
    kept: int, missing: bool, weighted: bool, l2: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "MAX_SUMS", kept * 8 * 4 * 2 * 129)
    queries = queries_with_pairs(graded(missing=missing, weighted=weighted))
    ranker = SymmetricGBDT(trees=4, depth=4, l2=l2, **ALL).fit(queries)
    scores = brute_force(queries, 4, 4, l2, 0.1)
    np.testing.assert_allclose(ranker.predict(queries), scores, rtol=0.0, atol=1e-10)
    trees = ranker.trees_
    assert np.diff(trees.starts).tolist() == [15] * 4
    for first in trees.starts[:-1]:
        for level in range(4):
            nodes = first + np.arange(2**level - 1, 2 ** (level + 1) - 1)
            assert len(np.unique(np.column_stack([trees.feature[nodes], trees.threshold[nodes]]), axis=0)) == 1


def source_of(queries: Queries, **params: Any) -> Any:
    return SymmetricGBDT(**params)._source(InMemory(queries))


def test_a_part_has_the_bins_of_all() -> None:
    queries, numbers = graded(), np.arange(3, 30)
    some = queries.select(numbers)
    for data in (source_of(queries).part(numbers), source_of(some)):
        growth = data.growth(1)
        assert growth.grow()
        assert data.bins.cuts is source_of(queries).bins.cuts
        tree = growth.trees(0, 1)
        np.testing.assert_allclose(tree.scores(some.features), growth._scores, rtol=0.0, atol=1e-12)
    del data, growth, queries, some
    assert len(KEPT) <= 2


def test_missing_values_go_left_only_where_some_were_seen() -> None:
    queries = graded(missing=True)
    trees = SymmetricGBDT(trees=30).fit(queries).trees_
    assert trees.missing_left is not None
    seen = trees.feature != 4
    assert trees.missing_left[seen].all()
    assert (trees.missing_left == trees.zero_left)[~seen].all()
    metric = parse_metric("ndcg@10")
    zeros = queries.with_features(np.nan_to_num(np.asarray(queries.features)))
    values = [metric.mean(SymmetricGBDT(**ALL).fit(data).predict(data), data) for data in (queries, zeros)]
    assert values[0] > values[1] + 0.002


def test_sparse_features_with_missing_values_are_those_of_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = graded(missing=True)
    thin = queries.with_features(sparse.csr_array(queries.features))
    ours = [SymmetricGBDT(trees=10).fit(data).trees_ for data in (queries, thin)]
    np.testing.assert_array_equal(ours[0].threshold, ours[1].threshold)
    np.testing.assert_array_equal(ours[0].value, ours[1].value)
    monkeypatch.setattr(binning, "MAX_DENSE_BYTES", 10)
    with pytest.raises(DataError, match="too many for trees of dense features"):
        SymmetricGBDT().fit(replace(thin))


@pytest.mark.parametrize("loss", ["squared", "yetirank", "smoothed"])
def test_threads_change_no_bit_and_each_loss_learns(loss: str) -> None:
    train, test = graded(queries=150), graded(1, queries=80)
    rankers = [SymmetricGBDT(loss=loss, threads=threads).fit(train) for threads in (1, 3)]
    assert rankers[0].predict(test).tobytes() == rankers[1].predict(test).tobytes()
    assert parse_metric("ndcg@10").mean(rankers[0].predict(test), test) > 0.85


def test_leaves_are_ordered_and_lose_little() -> None:
    generator, losses = np.random.default_rng(0), []
    for _ in range(300):
        signs = generator.integers(-1, 2, generator.integers(1, 6))
        free = generator.normal(size=2 ** len(signs))
        weights = generator.random(len(free)) * (generator.random(len(free)) < 0.8)
        values = free.copy()
        order_leaves(signs, weights, values)
        cube = values.reshape([2] * len(signs))
        for level, sign in enumerate(signs):
            assert (sign * np.diff(cube, axis=level) >= 0.0).all()
        if signs.any():
            constant = weights @ free / max(weights.sum(), 1e-9)
            losses.append([weights @ (values - free) ** 2, weights @ (constant - free) ** 2])
        else:
            np.testing.assert_array_equal(values, free)
    ours, of_constants = np.sum(losses, axis=0)
    assert ours < 0.7 * of_constants


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_split_against_its_constraint_is_not_chosen(sign: int) -> None:
    X = np.random.default_rng(0).random((200, 2))
    queries = Queries.from_arrays(X, (X[:, 0] > 0.5).astype(int), qid=np.arange(200) // 20)
    trees = SymmetricGBDT(trees=10, **ALL).fit(queries, monotone={0: sign, 1: sign}).trees_
    assert (trees.feature[trees.starts[0]] == 0) == (sign > 0)
