"""ListNet against scipy, its laws, its parameters, and real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.solvers.core.space import defaults
from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.linear.presets import ListNet
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from tests.support.plain_solvers import list_net, rank_svm


def lists(seed: int = 0, noise: float = 0.5) -> Any:
    generator = np.random.default_rng(seed)
    qid = np.repeat(np.arange(40), generator.integers(1, 20, 40))
    X = generator.normal(size=(len(qid), 5)) * np.array([1.0, 10, 0.1, 1, 1])
    score = X @ [1.0, -0.1, 5.0, 0.0, 0.5] + noise * generator.normal(size=len(X))
    return X, np.digitize(score, [0.0, 1.0, 2.0]).astype(float), qid


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_it_minimises_what_it_says(gain: str) -> None:
    X, y, qid = lists()
    ranker = list_net(gain=gain, temperature=0.7, l2=0.01, tol=1e-9).fit(X, y, qid=qid)
    worth = (y if gain == "linear" else 2**y - 1) / 0.7
    rows = [qid == q for q in range(40) if len(set(y[qid == q])) > 1]

    def objective(w: Any) -> Any:
        return np.mean([-softmax(worth[r]) @ log_softmax(X[r] @ w) for r in rows]) + 0.005 * w @ w

    expected = minimize(objective, np.zeros(5), options={"gtol": 1e-9})
    np.testing.assert_allclose(ranker.coef_, expected.x, atol=1e-6)
    assert ranker.objective_ == pytest.approx(expected.fun, rel=1e-10)
    assert ranker.converged_


def test_l1_makes_zeros() -> None:
    X, y, qid = lists()
    coef = list_net(l1=0.05, l2=0.0, scaling="standard").fit(X, y, qid=qid).coef_
    assert coef[3] == 0.0
    assert np.count_nonzero(coef) >= 2


def test_noiseless_weights_are_recovered() -> None:
    generator = np.random.default_rng(3)
    X, truth = generator.normal(size=(4000, 4)), np.array([2.0, -1.0, 0.5, 0.0])
    coef = list_net(l2=1e-8, tol=1e-7).fit(X, X @ truth, qid=np.arange(4000) // 20).coef_
    np.testing.assert_allclose(coef, truth, atol=1e-5)  # softmax(s) = softmax(y) where s = y


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
def test_shifting_a_querys_features_changes_nothing(scaling: str) -> None:
    X, y, qid = lists(1)
    shifts = np.random.default_rng(0).integers(-50, 50, (40, 5)).astype(float)
    one, two = (list_net(scaling=scaling, tol=1e-8).fit(Z, y, qid=qid).coef_ for Z in (X, X + shifts[qid]))
    np.testing.assert_allclose(two, one, atol=1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_a_query_of_weight_two_is_one_that_stands_there_twice(l1: float) -> None:
    X, y, qid = lists(2)
    again = qid == 7
    twice = (np.vstack([X, X[again]]), np.append(y, y[again]), np.append(qid, qid[again] + 100))
    for scaling in ("standard", "none"):
        ranker = list_net(l1=l1, scaling=scaling, tol=1e-8)
        weighted = ranker.fit(X, y, qid=qid, query_weights={7: 2.0}).coef_
        np.testing.assert_allclose(ranker.fit(*twice[:2], qid=twice[2]).coef_, weighted, atol=1e-6)
        assert np.abs(ranker.fit(X, y, qid=qid).coef_ - weighted).max() > 1e-4


def test_dense_sparse_and_single_precision_agree() -> None:
    X, y, qid = lists(3)
    X = np.where(np.abs(X) < 0.3, 0.0, X).astype(np.float32).astype(np.float64)
    for l1 in (0.0, 0.01):
        ranker = list_net(l1=l1, scaling="standard", tol=1e-7)
        expected = ranker.fit(X, y, qid=qid).coef_
        for other in (sparse.csr_array(X), X.astype(np.float32), sparse.csr_array(X.astype(np.float32))):
            np.testing.assert_allclose(ranker.fit(other, y, qid=qid).coef_, expected, atol=1e-6)


def test_steps_can_be_stopped_and_too_few_warn_once() -> None:
    X, y, qid = lists(4)
    ranker = list_net(scaling="standard")
    steps = ranker.fit_steps(X, y, qid=qid)
    next(steps), next(steps)
    assert ranker.n_iter_ == 1
    assert ranker.predict(X).std() > 0.0
    with pytest.warns(RankTuneWarning, match="ListNet stopped before it converged: after 2 iterations") as caught:
        list_net(max_iterations=2, l2=0.0).fit(X, y, qid=qid)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gain": "log"}, "gain='log'"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"l1": -1.0}, "l1=-1.0"),
        ({"l2": None}, "l2=None"),
        ({"scaling": "list"}, "scaling='list' is unknown.*minmax, none, standard"),
        ({"tol": 0}, "tol=0"),
        ({"max_iterations": 1.5}, "max_iterations=1.5"),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        list_net(**parameters).fit(*lists()[:2])


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_either_gain_takes_any_grade(gain: str) -> None:
    assert list_net(gain=gain).fit([[0.0], [1.0]], [-1.0, 0.5]).coef_[0] > 0.0
    assert list_net(gain=gain).fit([[0.0], [1.0]], [0.0, 5000.5]).coef_[0] > 0.0


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_ranks_real_data_about_as_well_as_ranksvm(letor_folds: Any, name: str) -> None:
    metric, difference = parse_metric("ndcg@10"), []
    for fold in ("Fold1", "Fold3", "Fold5"):
        train, vali = (read_text(letor_folds[name] / fold / f"{part}.txt") for part in ("train", "vali"))
        ours = make("ListNet", defaults(ListNet.space)).fit(train)
        theirs = rank_svm(C=0.02, scaling="standard", average="pairs").fit(train)
        scores = [np.nanmean(metric.per_query(ranker.predict(vali), vali)) for ranker in (ours, theirs)]
        difference.append(scores[0] - scores[1])
    assert np.mean(difference) > -0.01
