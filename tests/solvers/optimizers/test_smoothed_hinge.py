"""RankSVM's hinge against linear and quadratic programs on explicit pairs, and its bounds."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective
from ranktune.solvers.optimizers.rank_svm.regularization_path import bounds_at, descend
from tests.support.plain_solvers import rank_svm
from tests.support.rank_objectives import at_zero, hessian_product, noisy, pairs_of


def primal(differences: Any, C: float, w: Any) -> float:
    return float(0.5 * w @ w + C * np.maximum(1.0 - differences @ w, 0.0).sum())


def by_the_dual(differences: Any, C: float) -> float:
    """The optimum of the dual box QP over pairs, by another method."""

    def negative(alpha: Any) -> Any:
        vector = differences.T @ alpha
        return 0.5 * vector @ vector - alpha.sum(), differences @ vector - 1.0

    n = len(differences)
    options = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    result = minimize(negative, np.full(n, C / 2), jac=True, method="L-BFGS-B", bounds=[(0, C)] * n, options=options)
    return -float(result.fun)


@pytest.mark.parametrize(("n_grades", "C"), [(2, 0.01), (3, 0.1), (3, 3.0), (60, 0.03)])
def test_equal_to_the_quadratic_program_on_explicit_pairs(n_grades: int, C: float) -> None:
    X, y, qid = noisy(1, 6, 10, 4, n_grades)
    differences = pairs_of(X, y, qid)
    ranker = rank_svm(C=C, loss="l1", tol=1e-6).fit(X, y, qid=qid)
    assert ranker.objective_ == pytest.approx(primal(differences, C, ranker.coef_), rel=1e-9)
    expected = by_the_dual(differences, C)
    assert expected * (1 - 1e-7) <= ranker.objective_ <= expected * (1 + 3e-6)


def test_a_strong_loss_approaches_the_linear_program() -> None:
    X, y, qid = noisy(2, 3, 10, 4)
    differences = pairs_of(X, y, qid)
    n, d = differences.shape
    costs = np.concatenate([np.zeros(d), np.ones(n)])
    A = np.hstack([-differences, -np.eye(n)])
    result = linprog(costs, A_ub=A, b_ub=-np.ones(n), bounds=[(None, None)] * d + [(0, None)] * n, method="highs")
    C = 1e4
    ranker = rank_svm(C=C, loss="l1", tol=1e-6, max_iterations=300).fit(X, y, qid=qid)
    least_norm = 0.5 * result.x[:d] @ result.x[:d]
    assert result.fun * C <= ranker.objective_ * (1 + 1e-9)
    assert ranker.objective_ <= (result.fun * C + least_norm) * (1 + 1e-5)


@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize("smoothing", [0.01, 0.5, 0.9])
def test_the_bounds_hold_at_any_weights(smoothing: float, adjacent: bool) -> None:
    X, y, qid = noisy(3, 6, 10, 4, 3)
    if adjacent:
        i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] == y + 1))
        differences = X[i] - X[j]
    else:
        differences = pairs_of(X, y, qid)
    optimum = by_the_dual(differences, 0.2)
    objective = RankObjective(Queries.from_arrays(X, y, qid=qid), 0.2, smoothing=smoothing, adjacent=adjacent)
    descent = Descent(objective)
    generator = np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 10.0):
        point = descent.resume(scale * generator.normal(size=4))
        above, below = bounds_at(objective, point)
        assert above == pytest.approx(primal(differences, 0.2, point.weights), rel=1e-9)
        assert below <= optimum * (1 + 1e-7) + 1e-9
        assert above >= optimum * (1 - 1e-7)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_smoothed_objective_and_derivatives_equal_all_pairs(form: str) -> None:
    X, y, qid = noisy(4, 6, 10, 4)
    differences, u, C = pairs_of(X, y, qid), 0.4, 0.3
    given = sparse.csr_array(X) if form == "csr" else X
    objective = RankObjective(Queries.from_arrays(given, y, qid=qid), C, smoothing=u)
    w, direction = np.array([0.5, -0.4, 0.1, 0.3]), np.array([1.0, 2.0, -1.0, 0.5])
    d = differences @ w
    band, straight = (d < 1) & (d > 1 - u), d <= 1 - u
    value = 0.5 * w @ w + C * (((1 - d) ** 2 / (2 * u))[band].sum() + (1 - d - u / 2)[straight].sum())
    slope = np.where(band, -(1 - d) / u, np.where(straight, -1.0, 0.0))
    f, g = objective.value_and_gradient(w)
    assert f == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(g, w + C * differences.T @ slope, rtol=1e-9)
    expected = direction + C / u * differences[band].T @ (differences[band] @ direction)
    np.testing.assert_allclose(hessian_product(objective, direction), expected, rtol=1e-9)
    start = at_zero(objective)
    reference = objective.value_and_gradient(np.zeros(4))
    assert start[0] == pytest.approx(reference[0], rel=1e-12)
    np.testing.assert_allclose(start[1], reference[1], rtol=1e-10)


def test_the_gap_shrinks_to_what_is_asked() -> None:
    X, y, qid = noisy(5, 60, 40)
    objective = RankObjective(Queries.from_arrays(X, y, qid=qid), 0.01, smoothing=0.5)
    descent = Descent(objective)
    seen = list(descend(descent, descent.start(), tolerance=1e-5, max_iterations=100))
    gaps = [bounds.gap for bounds, _ in seen]
    assert gaps[-1] <= 1e-5 < gaps[0]
    assert (np.diff(gaps) <= 0.0).all()


def test_too_few_iterations_warn_of_the_gap() -> None:
    X, y, qid = noisy(7, 6, 10, 4)
    with pytest.warns(RankTuneWarning, match="relative duality gap"):
        ranker = rank_svm(loss="l1", tol=1e-9, max_iterations=1).fit(X, y, qid=qid)
    assert not ranker.converged_
