"""LambdaRank and ListNet: that they follow their gradients, against scipy, their grades and their parameters."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.pair_weights import DeltaNDCG
from ranktune.solvers.losses.pairwise import PairwiseLogistic
from tests.support.plain_solvers import lambda_rank, list_net


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


def test_the_order_of_documents_of_different_grades_does_not_matter() -> None:
    X, y, qid = lists(5)
    order = np.lexsort((np.arange(len(y)), -y, np.random.default_rng(1).permutation(40)[qid]))  # equal ones keep theirs
    ordered, shuffled = lambda_rank().fit(X, y, qid=qid), lambda_rank().fit(X[order], y[order], qid=qid[order])
    np.testing.assert_allclose(shuffled.coef_, ordered.coef_, atol=1e-9)


def test_grades_of_any_kind_train_unless_the_gain_says_otherwise() -> None:
    X, y, qid = lists(6)
    linear = lambda_rank(gain="linear").fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(lambda_rank().fit(X, y - 0.5, qid=qid).coef_, linear, atol=1e-12)
    with pytest.raises(DataError, match="grade"):
        lambda_rank(gain="exp2").fit(X, y - 0.5, qid=qid)


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_it_minimises_what_it_says(gain: str) -> None:
    X, y, qid = lists()
    ranker = list_net(gain=gain, temperature=0.7, l2=0.01, tol=1e-9).fit(X, y, qid=qid)
    gains = (y if gain == "linear" else 2**y - 1) / 0.7
    rows = [qid == q for q in range(40) if len(set(y[qid == q])) > 1]

    def objective(w: Any) -> Any:
        return np.mean([-softmax(gains[r]) @ log_softmax(X[r] @ w) for r in rows]) + 0.005 * w @ w

    expected = minimize(objective, np.zeros(5), options={"gtol": 1e-9})
    np.testing.assert_allclose(ranker.coef_, expected.x, atol=1e-6)
    assert ranker.objective_ == pytest.approx(expected.fun, rel=1e-10)
    assert ranker.converged_
