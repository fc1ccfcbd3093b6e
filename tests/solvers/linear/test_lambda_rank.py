"""LambdaRank: that it follows its gradient, its laws, its parameters, and real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import defaults
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.linear.presets import LambdaRank
from ranktune.solvers.losses.pair_weights import DeltaNDCG
from ranktune.solvers.losses.pairwise import PairwiseLogistic
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from tests.support.plain_solvers import lambda_rank, rank_svm


def lists(seed: int = 0, noise: float = 0.5) -> Any:
    generator = np.random.default_rng(seed)
    qid = np.repeat(np.arange(40), generator.integers(1, 20, 40))
    X = generator.normal(size=(len(qid), 5)) * np.array([1.0, 10, 0.1, 1, 1])
    score = X @ [1.0, -0.1, 5.0, 0.0, 0.5] + noise * generator.normal(size=len(X))
    return X, np.digitize(score, [0.0, 1.0, 2.0]).astype(float), qid


def test_steps_are_those_of_adagrad_on_the_weighted_logistic_loss() -> None:
    X, y, qid = lists()
    queries, loss = Queries.from_arrays(X, y, qid=qid), PairwiseLogistic(DeltaNDCG(5))
    w, squares = np.zeros(5), np.zeros(5)
    for _ in range(12):
        _, by_score = loss.value_and_gradient(queries.features @ w, queries)
        gradient = queries.features.T @ by_score
        squares += gradient**2
        eta = 0.2 / np.sqrt(squares)
        w = w - eta * gradient
        w = np.sign(w) * np.maximum(np.abs(w) - eta * 0.01, 0.0) / (1.0 + eta * 0.1)
    ranker = lambda_rank(5, l1=0.01, l2=0.1, eta0=0.2, iterations=12).fit(queries)
    np.testing.assert_allclose(ranker.coef_, w, rtol=1e-6, atol=1e-9)
    assert ranker.n_iter_ == 12


@pytest.mark.parametrize("at", [1, 10, None])
def test_it_learns_to_rank(at: int | None) -> None:
    X, y, qid = lists(1, noise=0.0)
    queries = Queries.from_arrays(X, y, qid=qid)
    ranker = lambda_rank(at, scaling="standard").fit(queries)
    assert parse_metric("ndcg@10").mean(ranker.predict(queries), queries) > 0.97


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
def test_shifting_a_querys_features_changes_nothing(scaling: str) -> None:
    X, y, qid = lists(2)
    X = np.round(X, 3)
    shifts = np.random.default_rng(0).integers(-50, 50, (40, 5)).astype(float)
    one, two = (lambda_rank(scaling=scaling).fit(Z, y, qid=qid).coef_ for Z in (X, X + shifts[qid]))
    np.testing.assert_allclose(two, one, atol=1e-6)


def test_a_query_of_weight_two_is_one_that_stands_there_twice() -> None:
    X, y, qid = lists(3)
    again = qid == 7
    ranker = lambda_rank(scaling="standard")
    weighted = ranker.fit(X, y, qid=qid, query_weights={7: 2.0}).coef_
    twice = ranker.fit(np.vstack([X, X[again]]), np.append(y, y[again]), qid=np.append(qid, qid[again] + 100)).coef_
    np.testing.assert_allclose(twice, weighted, atol=1e-9)
    assert np.abs(ranker.fit(X, y, qid=qid).coef_ - weighted).max() > 1e-4


def test_dense_sparse_and_single_precision_agree() -> None:
    X, y, qid = lists(4)
    X = np.where(np.abs(X) < 0.3, 0.0, X).astype(np.float32).astype(np.float64)
    expected = lambda_rank(scaling="standard").fit(X, y, qid=qid).coef_
    for other in (sparse.csr_array(X), X.astype(np.float32), sparse.csr_array(X.astype(np.float32))):
        np.testing.assert_allclose(lambda_rank(scaling="standard").fit(other, y, qid=qid).coef_, expected, atol=1e-6)


def test_the_order_of_documents_of_different_grades_does_not_matter() -> None:
    X, y, qid = lists(5)
    order = np.lexsort((np.arange(len(y)), -y, np.random.default_rng(1).permutation(40)[qid]))  # equal ones keep theirs
    one, two = lambda_rank().fit(X, y, qid=qid), lambda_rank().fit(X[order], y[order], qid=qid[order])
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-9)


def test_grades_of_any_kind_train_unless_the_gain_says_otherwise() -> None:
    X, y, qid = lists(6)
    linear = lambda_rank(gain="linear").fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(lambda_rank().fit(X, y - 0.5, qid=qid).coef_, linear, atol=1e-12)
    with pytest.raises(DataError, match="grade"):
        lambda_rank(gain="exp2").fit(X, y - 0.5, qid=qid)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"at": 0}, "at=0"),
        ({"gain": "log"}, "gain='log'"),
        ({"l1": -1.0}, "l1=-1.0"),
        ({"l2": np.inf}, "l2=inf"),
        ({"eta0": 0.0}, "eta0=0.0"),
        ({"iterations": 0}, "^iterations=0"),
        ({"scaling": "list"}, "scaling='list'"),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        lambda_rank(**parameters).fit(*lists()[:2])


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_ranks_real_data_about_as_well_as_ranksvm(letor_folds: Any, name: str) -> None:
    metric, difference = parse_metric("ndcg@10"), []
    for fold in ("Fold1", "Fold3", "Fold5"):
        train, vali = (read_text(letor_folds[name] / fold / f"{part}.txt") for part in ("train", "vali"))
        ours = make("LambdaRank", defaults(LambdaRank.space)).fit(train)
        theirs = rank_svm(C=0.02, scaling="standard", average="pairs").fit(train)
        scores = [np.nanmean(metric.per_query(ranker.predict(vali), vali)) for ranker in (ours, theirs)]
        difference.append(scores[0] - scores[1])
    assert np.mean(difference) > -0.015
