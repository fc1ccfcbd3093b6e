"""The pointwise baselines against closed forms and scikit-learn used directly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from ranktune.solvers.errors import ParameterError, RankTuneWarning
from ranktune.solvers.metrics import parse_metric
from ranktune.solvers.pointwise import LogisticRanker, PointwiseRanker, RidgeRanker, SVRRanker
from ranktune.solvers.queries import Queries

ALL = [RidgeRanker, LogisticRanker, SVRRanker]


def data(seed: int = 0) -> Any:
    """Features of very different scales, one constant; queries of different lengths and levels."""
    generator = np.random.default_rng(seed)
    qid = np.repeat(np.arange(40), generator.integers(1, 30, 40))
    X = generator.random((len(qid), 5)) * np.array([1e-3, 1.0, 50.0, 1e4, 1.0])
    X[:, 4] = 2.0
    score = X / X.std(axis=0).clip(1e-9) @ np.array([1.0, -0.5, 0.3, 0.8, 0.0])
    level = generator.normal(size=40) * 3  # some queries have better documents than others
    y = np.clip(np.round(score + level[qid]), 0, 4)
    return X, y, qid


def centred(values: Any, qid: Any) -> Any:
    return values - np.stack([values[qid == q].mean(axis=0) for q in range(qid.max() + 1)])[qid]


def standardised(X: Any) -> Any:
    return np.divide(1.0, X.std(axis=0), out=np.zeros(X.shape[1]), where=np.ptp(X, axis=0) > 0)


@pytest.mark.parametrize("centre", ["query", "none"])
def test_ridge_is_the_closed_form_on_standardised_features(centre: str) -> None:
    X, y, qid = data()
    ranker = RidgeRanker(alpha=30.0, centre=centre).fit(X, y, qid=qid)
    prepared, target = (centred(X, qid), centred(y, qid)) if centre == "query" else (X - X.mean(axis=0), y - y.mean())
    factor = standardised(prepared)
    Z = prepared * factor
    expected = np.linalg.solve(Z.T @ Z + 30.0 * np.eye(5), Z.T @ target) * factor
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(ranker.predict(X), X @ ranker.coef_, rtol=1e-9)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_logistic_minimises_the_cross_entropy_with_relevance(gain: str) -> None:
    X, y, qid = data(1)
    ranker = LogisticRanker(C=0.5, gain=gain, centre="none").fit(X, y, qid=qid)
    p = y / 4 if gain == "linear" else (2**y - 1) / 15
    factor = standardised(X)
    Z = X * factor

    def loss(parameters: Any) -> float:
        s = Z @ parameters[:5] + parameters[5]
        return float(0.5 * (np.logaddexp(0, s) - p * s).sum() + 0.5 * parameters[:5] @ parameters[:5])

    expected = minimize(loss, np.zeros(6), tol=1e-10).x[:5] * factor
    np.testing.assert_allclose(ranker.coef_ / factor.clip(1e-12), expected / factor.clip(1e-12), atol=2e-3)


def test_svr_minimises_the_squared_epsilon_insensitive_loss() -> None:
    X, y, qid = data(2)
    ranker = SVRRanker(C=0.1, epsilon=0.3).fit(X, y, qid=qid)
    prepared, target = centred(X, qid), centred(y, qid)
    factor = standardised(prepared)
    Z = prepared * factor

    def loss(parameters: Any) -> float:
        off = np.maximum(np.abs(Z @ parameters[:5] + parameters[5] - target) - 0.3, 0)
        return float(0.5 * parameters @ parameters + 0.1 * off @ off)  # liblinear penalises the intercept too

    expected = minimize(loss, np.zeros(6), tol=1e-10).x[:5]
    np.testing.assert_allclose(ranker.coef_[:4] / factor[:4], expected[:4], atol=2e-3)


@pytest.mark.parametrize("ranker", ALL)
def test_the_level_of_a_query_does_not_matter_when_centred(ranker: type[PointwiseRanker]) -> None:
    X, y, qid = data(3)
    shifts = np.random.default_rng(0).normal(size=(40, 5)) * X.std(axis=0)
    one, two = ranker().fit(X, y, qid=qid), ranker().fit(X + shifts[qid], y, qid=qid)
    np.testing.assert_allclose(one.coef_[:4], two.coef_[:4], rtol=1e-2)


@pytest.mark.parametrize("ranker", ALL)
def test_units_of_features_do_not_matter(ranker: type[PointwiseRanker]) -> None:
    X, y, qid = data(4)
    units = np.array([1e3, 1e-2, 7.0, 1e-4, 1.0])
    np.testing.assert_allclose(
        ranker().fit(X * units, y, qid=qid).predict(X * units),
        ranker().fit(X, y, qid=qid).predict(X),
        rtol=1e-2,
        atol=1e-2,
    )


@pytest.mark.parametrize("ranker", ALL)
def test_sparse_features_stay_sparse_and_agree_with_dense_ones(ranker: type[PointwiseRanker]) -> None:
    X, y, qid = data(5)
    X = np.where(X < np.median(X, axis=0), 0.0, X)
    X[:, 4] = 0.0
    dense = ranker(centre="none").fit(X, y, qid=qid).predict(X)
    thin = ranker(centre="none").fit(sparse.csr_array(X), y, qid=qid).predict(sparse.csr_array(X))
    assert np.corrcoef(dense, thin)[0, 1] > 0.9999


@pytest.mark.parametrize("ranker", ALL)
@pytest.mark.parametrize("centre", ["query", "none"])
def test_they_learn_to_rank(ranker: type[PointwiseRanker], centre: str) -> None:
    queries = Queries.from_arrays(*data(6)[:2], qid=data(6)[2])
    pairwise = parse_metric("pairwise")
    assert pairwise.mean(ranker(centre=centre).fit(queries).predict(queries), queries) > 0.85


def test_logistic_that_does_not_converge_warns_in_our_words() -> None:
    X, y, qid = data(7)
    with pytest.warns(RankTuneWarning, match="LogisticRanker stopped before it converged") as caught:
        LogisticRanker(C=1e6, max_iterations=1).fit(X, y, qid=qid)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (RidgeRanker(alpha=0.0), "alpha=0.0"),
        (LogisticRanker(C=-1.0), "C=-1.0"),
        (LogisticRanker(gain="exp"), "gain='exp'"),
        (LogisticRanker(max_iterations=0), "max_iterations=0"),
        (SVRRanker(epsilon=-0.1), "epsilon=-0.1"),
        (SVRRanker(centre="queries"), "Did you mean 'query'"),
    ],
)
def test_parameters_that_cannot_be(ranker: PointwiseRanker, message: str) -> None:
    X, y, qid = data()
    with pytest.raises(ParameterError, match=message):
        ranker.fit(X, y, qid=qid)
