"""SOLAR against plain numpy, and what its covariance must be."""

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from tests.support.pass_samples import differences
from tests.support.plain_solvers import solar1, solar2


def first_order(queries: Queries, C: float) -> tuple[Floats, float]:
    w, total = np.zeros(queries.n_features), 0.0
    for z in differences(queries):
        loss = max(0.0, 1.0 - float(z @ w))
        total += loss**2
        w = w + loss / (z @ z + 0.5 / C) * z
    return w, total


def second_order(queries: Queries, gamma: float, diagonal: bool) -> tuple[Floats, Floats, float]:
    w, sigma, total = np.zeros(queries.n_features), np.eye(queries.n_features), 0.0
    for z in differences(queries):
        loss = max(0.0, 1.0 - float(z @ w))
        total += loss**2
        if loss > 0.0:
            beta, v = z @ sigma @ z + gamma, sigma @ z
            w = w + loss / beta * v
            sigma = sigma - np.outer(v, v) / beta
            sigma = np.diag(np.diag(sigma)) if diagonal else sigma
    return w, sigma, total


@pytest.mark.parametrize("C", [1e-5, 0.01, 100.0])
def test_first_order_is_the_papers_update(C: float, hard_queries: Queries) -> None:
    model = solar1(C, pair_order="rows").fit(hard_queries)
    weights, loss = first_order(hard_queries, C)
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-13)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-12)
    assert model.n_pairs_seen_ == len(differences(hard_queries))


@pytest.mark.parametrize("gamma", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_second_order_is_the_papers_update(gamma: float, covariance: str, hard_queries: Queries) -> None:
    model = solar2(gamma, covariance=covariance, pair_order="rows").fit(hard_queries)
    weights, sigma, loss = second_order(hard_queries, gamma, covariance == "diagonal")
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-12)
    expected = sigma if covariance == "full" else np.diag(sigma)
    np.testing.assert_allclose(model.covariance_, expected, rtol=1e-12, atol=1e-12)
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-12)


def test_sparse_second_order_is_the_papers_update() -> None:
    generator = np.random.default_rng(0)
    X = sparse.random_array((120, 30), density=0.15, rng=generator, format="csr")
    queries = Queries.from_arrays(X, generator.integers(0, 3, 120), qid=np.repeat(np.arange(12), 10))
    for covariance in ("full", "diagonal"):
        model = solar2(2.0, covariance=covariance, pair_order="rows").fit(queries)
        weights, _, _ = second_order(queries, 2.0, covariance == "diagonal")
        np.testing.assert_allclose(model.coef_, weights, rtol=1e-12, atol=1e-12)


def test_covariance_stays_symmetric_and_positive_definite(hard_queries: Queries) -> None:
    for gamma in (1e-6, 1.0, 1e4):
        sigma = solar2(gamma, passes=20).fit(hard_queries).covariance_
        assert np.array_equal(sigma, sigma.T)
        eigenvalues = np.linalg.eigvalsh(sigma)
        assert eigenvalues[0] > 0.0
        assert eigenvalues[-1] <= 1.0
        assert (solar2(gamma, covariance="diagonal", passes=20).fit(hard_queries).covariance_ > 0.0).all()


def test_a_full_covariance_of_many_features_is_refused() -> None:
    X = sparse.csr_array((np.array([1.0, 2.0, 3.0]), (np.array([0, 1, 2]), np.array([5, 70_000, 99_999]))))
    with pytest.raises(ParameterError, match="covariance='diagonal'"):
        solar2().fit(X, [0.0, 1.0, 2.0])
    assert np.count_nonzero(solar2(covariance="diagonal").fit(X, [0.0, 1.0, 2.0]).coef_) == 3


def test_auto_is_full_where_that_is_small(hard_queries: Queries) -> None:
    ours, full = (solar2(covariance=covariance).fit(hard_queries) for covariance in ("auto", "full"))
    assert np.array_equal(ours.coef_, full.coef_) and ours.covariance_.shape == (6, 6)
    wide = hard_queries.with_features(np.tile(hard_queries.features, (1, 400)))
    ours, thin = (solar2(covariance=covariance).fit(wide) for covariance in ("auto", "diagonal"))
    assert np.array_equal(ours.coef_, thin.coef_) and ours.covariance_.shape == (2400,)
