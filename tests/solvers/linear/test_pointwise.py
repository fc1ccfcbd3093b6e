"""The pointwise baselines against closed forms and scikit-learn used directly."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVR

from tests.support.plain_solvers import logistic_ranker, ridge_ranker, svr_ranker


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


def prepared(X: Any, qid: Any, centre: str) -> tuple[Any, Any]:
    """Features as the rankers see them, copied here, and their factors."""
    Z = centred(X, qid) if centre == "query" else X
    return Z * standardised(Z), standardised(Z)


@pytest.mark.parametrize("centre", ["query", "none"])
def test_ridge_is_that_of_scikit_learn_on_prepared_features(centre: str) -> None:
    X, y, qid = data(8)
    target = centred(y, qid) if centre == "query" else y
    Z, factor = prepared(X, qid, centre)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    for given in (None, weights):
        ranker = ridge_ranker(alpha=7.0, centre=centre).fit(X, y, qid=qid, query_weights=given)
        if given is None:
            expected = Ridge(alpha=7.0).fit(Z, target).coef_
            np.testing.assert_allclose(ranker.coef_[:4] / factor[:4], expected[:4], rtol=1e-8)
        else:
            rows = given[qid]  # deviations are weighted too
            level = np.average(X, axis=0, weights=rows) if centre == "none" else X - centred(X, qid)
            spread = np.sqrt(np.average((X - level) ** 2, axis=0, weights=rows))
            Z = ((X if centre == "none" else X - level) / np.where(spread > 0, spread, np.inf))[:, :4]
            expected = Ridge(alpha=7.0).fit(Z, target, sample_weight=rows)
            assert expected.intercept_ == pytest.approx(0.0, abs=1e-9) or centre == "none"
            np.testing.assert_allclose(ranker.coef_[:4] * spread[:4], expected.coef_, rtol=1e-8)


@pytest.mark.parametrize("centre", ["query", "none"])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_logistic_is_that_of_scikit_learn_on_rows_counted_twice(gain: str, centre: str) -> None:
    X, y, qid = data(1)
    ranker = logistic_ranker(C=0.5, gain=gain, centre=centre, tol=1e-9).fit(X, y, qid=qid)
    p = y / 4 if gain == "linear" else (2**y - 1) / 15
    Z, factor = prepared(X, qid, centre)
    model = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    model.fit(np.vstack([Z, Z]), np.repeat([1, 0], len(y)), sample_weight=np.append(p, 1 - p))
    np.testing.assert_allclose(ranker.coef_[:4] / factor[:4], model.coef_[0, :4], atol=1e-6)
    assert ranker.converged_


@pytest.mark.parametrize("centre", ["query", "none"])
@pytest.mark.parametrize("loss", ["l2", "l1"])
def test_svr_minimises_the_epsilon_insensitive_losses(loss: str, centre: str) -> None:
    X, y, qid = data(2)
    ranker = svr_ranker(C=0.1, epsilon=0.3, loss=loss, centre=centre, tol=1e-7).fit(X, y, qid=qid)
    (Z, factor), target = prepared(X, qid, centre), centred(y, qid) if centre == "query" else y

    def objective(w: Any) -> float:
        def at(b: Any) -> float:
            off = np.maximum(np.abs(Z @ w + b - target) - 0.3, 0)
            return float((off**2 if loss == "l2" else off).sum())

        b = minimize(at, 0.0, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}).x
        return float(0.5 * w @ w + 0.1 * at(b))

    kind = "squared_epsilon_insensitive" if loss == "l2" else "epsilon_insensitive"
    # liblinear penalises the intercept: a large intercept_scaling makes that vanish
    theirs = LinearSVR(C=0.1, epsilon=0.3, loss=kind, dual=True, intercept_scaling=1e2, max_iter=10**6)
    theirs.set_params(tol=1e-8 if loss == "l2" else 1e-3).fit(Z, target)
    ours = np.append(ranker.coef_[:4] / factor[:4], 0.0)
    rounding = 0.5 * 0.01 * target.std() * 0.1 * len(y) if loss == "l1" else 0.0
    assert objective(ours) <= objective(theirs.coef_) + rounding + 1e-6
    assert ranker.objective_ == pytest.approx(objective(ours), abs=rounding + 1e-6)
    assert ranker.objective_ <= objective(ours) + 1e-9
    if loss == "l2":
        np.testing.assert_allclose(ours, theirs.coef_, atol=1e-4)


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("centre", ["query", "none"])
def test_two_grades_that_both_fit_within_epsilon_leave_nothing_to_minimise(loss: str, centre: str) -> None:
    """An intercept puts grades 0 and 1 on both edges of epsilon = 0.5, up to rounding, whatever their shares are."""
    X = np.random.default_rng(8).normal(100.0, size=(100, 2))
    for relevant in range(1, 100):
        ranker = svr_ranker(epsilon=0.5, loss=loss, centre=centre)
        ranker.fit(X, np.arange(100) < relevant, qid=np.zeros(100))
        assert ranker.converged_
        assert ranker.objective_ == 0.0
