"""RankSVM as a whole: its optimum, its invariances, its parameters."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.rank_svm import coarse_to_fine, sampling
from ranktune.solvers.optimizers.rank_svm.curvature import DiagonalHessian, SampledHessian
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective
from tests.support.plain_solvers import rank_svm
from tests.support.rank_objectives import at_zero, noisy, pairs_of, solve


def brute_optimum(differences: Any, C: float) -> Any:
    def value_and_gradient(w: Any) -> Any:
        slack = np.maximum(1 - differences @ w, 0)
        return 0.5 * w @ w + C * slack @ slack, w - 2 * C * differences.T @ slack

    start = np.zeros(differences.shape[1])
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    return minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize(("n_grades", "C"), [(2, 1.0), (4, 1e-3), (4, 1.0), (4, 100.0), (60, 0.01)])
def test_two_optimizers_agree_on_the_optimum(n_grades: int, C: float) -> None:
    X, y, qid = noisy(n_grades=n_grades)
    expected = brute_optimum(pairs_of(X, y, qid), C)
    ranker = rank_svm(C=C, tol=1e-10).fit(X, y, qid=qid)
    assert ranker.objective_ == pytest.approx(expected.fun, rel=1e-9)
    np.testing.assert_allclose(ranker.coef_, expected.x, rtol=1e-6, atol=1e-6 * np.abs(expected.x).max())


@pytest.mark.parametrize("n_queries", [1, 4, 400])
def test_starting_from_a_sample_finds_the_same_optimum(n_queries: int) -> None:
    X, y, qid = noisy(1, n_queries, 3200 // n_queries)
    queries = Queries.from_arrays(X, y, qid=qid)
    objective = RankObjective(queries, 0.1)
    part = objective.sample()
    assert part is not None
    assert part.queries.n_documents < len(X) / 2
    assert part.query_weights @ part.pairs == pytest.approx(objective.pairs.sum(), rel=1e-9)  # it stands for all pairs
    ranker = rank_svm(C=0.1, tol=1e-10).fit(queries)
    expected = brute_optimum(pairs_of(X, y, qid), 0.1) if n_queries > 4 else None
    at_optimum = objective.value_and_gradient(ranker.coef_)
    assert np.linalg.norm(at_optimum[1]) <= 1e-10 * np.linalg.norm(at_zero(objective)[1])
    if expected is not None:
        np.testing.assert_allclose(ranker.coef_, expected.x, rtol=1e-6)


@pytest.mark.parametrize(("correlated", "loss", "tol"), [(True, "l2", 1e-6), (True, "l1", 1e-4), (False, "l2", 1e-6)])
def test_many_correlated_features_are_solved_by_a_shrunk_sample(
    correlated: bool, loss: str, tol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, qid = noisy(3, 60, 50, 40)
    X += 20.0 * correlated * np.random.default_rng(4).normal(size=(len(X), 1))
    queries = Queries.from_arrays(X, y, qid=qid)
    expected = rank_svm(C=0.1, loss=loss, tol=tol).fit(queries)
    monkeypatch.setattr(coarse_to_fine, "DENSE_FEATURES", 39)
    monkeypatch.setattr(sampling, "DENSE_FEATURES", 39)
    smoothing = None if loss == "l2" else 0.5
    preconditioner = coarse_to_fine.Descent(RankObjective(queries, 0.1, smoothing=smoothing)).preconditioner
    assert isinstance(preconditioner, SampledHessian if correlated and loss == "l2" else DiagonalHessian)
    ranker = rank_svm(C=0.1, loss=loss, tol=tol).fit(queries)
    assert ranker.objective_ == pytest.approx(expected.objective_, rel=2 * tol)


def test_a_start_near_the_optimum_is_used() -> None:
    X, y, qid = noisy(2)
    queries = Queries.from_arrays(X, y, qid=qid)
    objective = RankObjective(queries, 1.0)
    cold = list(solve(objective, tolerance=1e-8, max_iterations=50))
    warm = list(solve(objective, tolerance=1e-8, max_iterations=50, weights=cold[-1][0].weights))
    assert len(warm) == 1 < len(cold)


def test_many_features_are_solved_by_the_diagonal() -> None:
    generator = np.random.default_rng(3)
    X = sparse.random_array((200, 1500), density=0.02, format="csr", rng=generator)
    y, qid = generator.integers(0, 3, 200), np.arange(200) // 20
    ranker = rank_svm(C=1.0, tol=1e-8).fit(X, y, qid=qid)
    objective = RankObjective(Queries.from_arrays(X, y, qid=qid), 1.0)
    gradient = objective.value_and_gradient(ranker.coef_)[1]
    assert np.linalg.norm(gradient) <= 1e-8 * np.linalg.norm(at_zero(objective)[1])


def test_averages_are_sums_with_another_weight() -> None:
    X, y, qid = noisy(9)
    kept = np.random.default_rng(2).random(len(X)) < 0.4  # queries of different lengths
    X, y, qid = X[kept], y[kept], qid[kept]
    pairs = np.array([len(pairs_of(X[qid == q], y[qid == q], qid[qid == q])) for q in range(30)])
    mean = rank_svm(C=3.0, average="pairs", tol=1e-10).fit(X, y, qid=qid)
    np.testing.assert_allclose(
        mean.coef_, rank_svm(C=3.0 * 30 / pairs.sum(), tol=1e-10).fit(X, y, qid=qid).coef_, rtol=1e-7
    )
    objective = RankObjective(Queries.from_arrays(X, y, qid=qid), 3.0, query_weights=1.0 / pairs)
    even = rank_svm(C=3.0, average="queries", tol=1e-10).fit(X, y, qid=qid)
    gradient = objective.value_and_gradient(even.coef_)[1]
    assert np.linalg.norm(gradient) <= 1e-10 * np.linalg.norm(at_zero(objective)[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_queries", [30, 300])
def test_collinear_features_and_a_strong_loss_are_no_obstacle(dtype: Any, n_queries: int) -> None:
    X, y, qid = noisy(13, n_queries)
    doubled = np.hstack([X, X, X[:, :1] + X[:, 1:2]]).astype(dtype)
    ranker = rank_svm(C=1e4, tol=1e-5).fit(doubled, y, qid=qid)
    assert ranker.converged_
    np.testing.assert_allclose(ranker.coef_[2:6], ranker.coef_[8:12], rtol=1e-2, atol=1e-2)  # equal columns share


@pytest.mark.parametrize(("n_rows", "n_queries"), [(700, 300), (2800, 1400), (3000, 2)])
def test_samples_of_short_and_of_few_queries_find_the_optimum(n_rows: int, n_queries: int) -> None:
    generator = np.random.default_rng(n_rows)
    X, qid = generator.random((n_rows, 1)), generator.integers(0, n_queries, n_rows)
    y = generator.integers(0, 3, n_rows) + (X[:, 0] > 0.7)
    ranker = rank_svm(C=0.01, tol=1e-9).fit(X, y, qid=qid)
    objective = RankObjective(Queries.from_arrays(X, y, qid=qid), 0.01)
    assert np.linalg.norm(objective.value_and_gradient(ranker.coef_)[1]) <= 1e-9 * np.linalg.norm(at_zero(objective)[1])


@pytest.mark.parametrize("n_queries", [30, 300])
def test_raw_features_of_wildly_different_units_converge(n_queries: int) -> None:
    X, y, qid = noisy(14, n_queries)
    raw = X * 10.0 ** np.arange(-3, 9, 2) + 1e4
    ranker = rank_svm().fit(raw, y, qid=qid)
    assert ranker.converged_
    assert ranker.n_iter_ < 30


def adjacent_pairs_of(X: Any, y: Any, qid: Any) -> Any:
    """Differences better - worse of the pairs with no grade of their query in between."""
    differences = []
    for q in np.unique(qid):
        grades = np.unique(y[qid == q])
        for worse, better in itertools.pairwise(grades):
            high, low = X[(qid == q) & (y == better)], X[(qid == q) & (y == worse)]
            differences.append((high[:, None] - low[None]).reshape(-1, X.shape[1]))
    return np.concatenate(differences)


@pytest.mark.parametrize("n_grades", [2, 4, 60])
def test_pairs_of_adjacent_grades_are_those_without_a_grade_in_between(n_grades: int) -> None:
    X, y, qid = noisy(16, n_grades=n_grades)
    y = y**2  # adjacent among those that occur, whatever their distance
    expected = brute_optimum(adjacent_pairs_of(X, y, qid), 0.3)
    ranker = rank_svm(C=0.3, pairs="adjacent", tol=1e-10).fit(X, y, qid=qid)
    assert ranker.objective_ == pytest.approx(expected.fun, rel=1e-9)
    np.testing.assert_allclose(ranker.coef_, expected.x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["l2", "l1"])
@pytest.mark.parametrize("form", ["dense", "csr", "one query"])
def test_threads_change_nothing(form: str, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.solvers.optimizers.rank_svm.pairwise_objective.BLOCK_BYTES", 10_000)
    X, y, qid = noisy(18, 200)
    qid = np.zeros_like(qid) if form == "one query" else qid
    given = sparse.csr_array(X) if form == "csr" else X
    single = rank_svm(C=0.01, loss=loss, tol=1e-8).fit(given, y, qid=qid)
    three = rank_svm(C=0.01, loss=loss, tol=1e-8, threads=3).fit(given, y, qid=qid)
    if form == "csr":
        np.testing.assert_allclose(three.coef_, single.coef_, rtol=1e-6)
    else:
        np.testing.assert_array_equal(three.coef_, single.coef_)
