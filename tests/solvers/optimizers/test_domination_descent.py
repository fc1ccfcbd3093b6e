"""DominationRank's descent: its gradient, curvatures and bounds, its steps, and what would stall or break them."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import domination_kernels as kernels
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.penalties import L2
from ranktune.solvers.optimizers import domination_columns as by_column
from ranktune.solvers.optimizers import domination_descent
from ranktune.solvers.optimizers.domination_columns import DominationTarget
from ranktune.solvers.optimizers.domination_descent import CURVATURES, DominationProblem
from tests.support.domination_samples import PENALTIES, VARIANTS, as_csr, noisy
from tests.support.plain_solvers import domination_rank


def test_wide_working_sets_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = noisy(n_features=40)
    whole = domination_rank("l2", l2=1.0, tol=1e-8).fit(queries)
    monkeypatch.setattr(domination_descent, "BLOCK", 7)
    parts = domination_rank("l2", l2=1.0, tol=1e-8).fit(queries)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)


def test_wide_dense_features_take_few_iterations() -> None:
    """All second derivatives at once: in blocks such features, of a few common factors, take dozens of iterations."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 20)) @ generator.normal(size=(20, 400)) + generator.normal(size=(2000, 400))
    y = np.digitize(X @ generator.normal(size=400) + 60.0 * generator.normal(size=2000), [0.0, 60.0]).astype(float)
    queries = Queries.from_arrays(X, y, qid=np.repeat(np.arange(50), 40))
    ranker = domination_rank(l1=1e-4, average="documents", scaling="standard").fit(queries)
    assert ranker.n_iter_ <= 8 and np.count_nonzero(ranker.coef_) > 256


def test_gradient_by_weight_matches_central_differences() -> None:
    """The sign of the margin: as derived, exp(s - u), not as the paper prints."""
    queries, h = noisy(), 1e-5
    for variant in VARIANTS:
        loss = DominationLoss(**variant)
        problem = DominationProblem(queries, loss, None, "exact")
        problem.weights = np.random.default_rng(0).normal(size=8)
        problem.refresh()
        slope = problem._gradient()
        values = [
            [
                loss.value_and_gradient(queries.features @ (problem.weights + sign * move), queries)[0]
                for sign in (1, -1)
            ]
            for move in np.eye(8) * h
        ]
        np.testing.assert_allclose(slope, -np.diff(values)[:, 0] / (2 * h), atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_sparse_model_is_that_of_the_dense_second_derivatives(factor: float) -> None:
    queries = noisy().replaced(query_weights=np.linspace(0.5, 2.0, 25))
    multiplier = np.full(8, factor)
    problem = DominationProblem(as_csr(queries), DominationLoss(average="none"), multiplier, "exact")
    problem.weights = np.random.default_rng(0).normal(size=8)
    problem.refresh()
    assert problem._columns is not None
    H = factor**2 * kernels.hessian(queries.features, np.arange(8), problem.lists, problem._state)
    slope, v = problem._gradient(), np.empty(queries.n_documents)
    parts = (
        problem.lists,
        problem._state,
        problem._query_of,
        DominationTarget(0.0, 0.1, 1e-10 * np.abs(slope).max()),
        5000,
    )
    expected = -np.linalg.solve(H + 0.1 * np.eye(8), slope + 0.1 * problem.weights)
    for delay in (0.0, 1.0, 3.0):
        d = by_column.newton_direction(problem._columns, np.arange(8), problem.weights, slope, *parts, delay, v)
        np.testing.assert_allclose(d, expected, rtol=1e-7)
        np.testing.assert_allclose(v, factor * queries.features @ d, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_everywhere_and_tight_is_at_most_the_papers(seed: int) -> None:
    queries = noisy(seed)
    shifted = queries.with_features(queries.features + 1.0)
    problems = [DominationProblem(shifted, DominationLoss(), None, kind) for kind in ("tight", "paper")]
    tight, paper = (problem._bounds for problem in problems)
    sparse_tight = DominationProblem(as_csr(queries), DominationLoss(), None, "tight")._bounds
    dense_tight = DominationProblem(queries, DominationLoss(), None, "tight")._bounds
    assert tight is not None and paper is not None and sparse_tight is not None and dense_tight is not None
    np.testing.assert_allclose(sparse_tight, dense_tight, rtol=1e-12)
    assert (tight < paper).all()
    generator = np.random.default_rng(seed)
    for size in (0.0, 0.3, 3.0, 30.0):
        kernels.evaluate(problems[0].lists, shifted.features @ (size * generator.normal(size=8)), problems[0]._state)
        actual = np.diag(kernels.hessian(shifted.features, np.arange(8), problems[0].lists, problems[0]._state))
        assert (actual <= tight * (1 + 1e-12)).all()


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["penalty"])
def test_objective_never_rises(penalty: dict[str, Any], curvature: str) -> None:
    ranker = domination_rank(**penalty, curvature=curvature, average="none", tol=1e-6, max_iterations=5000)
    values = [step.objective for step in ranker.fit_steps(noisy())]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert values[-1] < values[0] or len(values) == 1
    assert ranker.objective_ == values[-1]


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_scores_far_apart_stay_finite(curvature: str, is_sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wild start: documents thousands apart, where exp of a score or of a difference would overflow."""
    monkeypatch.setattr(domination_descent, "DENSE_BYTES", 0.0)
    queries = as_csr(noisy()) if is_sparse else noisy()
    problem = DominationProblem(queries, DominationLoss(average="none"), None, curvature)
    problem.weights = np.linspace(-3e3, 3e3, 8)
    problem.refresh()
    problem.gradient = problem._gradient()
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        values = [step.objective for step in problem.steps(L2(1.0), 1e-6, 100 if curvature == "exact" else 10)]
    assert np.isfinite(problem.scores).all() and np.isfinite(problem.weights).all()
    assert (np.diff(values) <= 0.0).all() and values[-1] < values[0]
    if curvature == "exact":
        at_zero = domination_rank("l2", l2=1.0, tol=1e-6).fit(queries)
        assert values[-1] == pytest.approx(at_zero.objective_, rel=1e-8)


@pytest.mark.parametrize("penalty", [{"penalty": "l2", "l2": 0.1}, {"penalty": "l1", "l1": 1e-4}])
def test_twin_features_do_not_stall_sparse_data(penalty: dict[str, Any]) -> None:
    """Columns that nearly agree take thousands of sweeps, which only second derivatives make cheap."""
    queries = noisy()
    noise = 1e-3 * np.random.default_rng(1).normal(size=queries.features.shape)
    twins = queries.with_features(np.hstack([queries.features, queries.features + noise]))
    dense, csr = (domination_rank(**penalty, average="documents").fit(data) for data in (twins, as_csr(twins)))
    assert dense.n_iter_ <= 10 and csr.n_iter_ <= 10
    np.testing.assert_allclose(csr.predict(twins), dense.predict(twins), atol=1e-6)


def many_grades(n_documents: int = 20_000, n_features: int = 4000, per_feature: int = 10) -> Queries:
    """One sparse query of thousands of grades: far more levels than a column has nonzeros."""
    generator = np.random.default_rng(0)
    n = n_features * per_feature
    rows, columns = generator.integers(0, n_documents, n), generator.integers(0, n_features, n)
    X = sparse.csr_array((generator.normal(size=n), (rows, columns)), shape=(n_documents, n_features))
    score = X @ generator.normal(size=n_features) + 0.5 * generator.normal(size=n_documents)
    return Queries.from_arrays(X, np.round(score, 2), group=[n_documents])


def test_many_grades_and_many_sparse_features() -> None:
    """Thousands of documents far behind their rivals, thousands of levels that few nonzeros look at, one query."""
    queries, l1 = many_grades(), 1e-4
    ranker = domination_rank(l1=l1, average="documents", max_iterations=25, tol=1e-6).fit(queries)
    w = ranker.coef_
    assert ranker.converged_ and np.count_nonzero(w) > 3000
    _, by_score = DominationLoss(average="documents").value_and_gradient(queries.features @ w, queries)
    slope = queries.features.T @ by_score
    allowed = 1.01e-6 * DominationProblem(queries, DominationLoss(average="documents"), None, "exact").reference
    np.testing.assert_allclose(slope[w != 0], -l1 * np.sign(w[w != 0]), atol=allowed)
    assert np.abs(slope).max() <= l1 + allowed


@pytest.mark.parametrize("behind", [0.5, 1.5, 6.0, 40.0, 1e4])
def test_stiffened_parabolas_lie_above_the_loss(behind: float) -> None:
    """One pair, whose loss is log(1 + exp(behind)): its curvature, and a bound once it is moved all the way."""
    queries = Queries.from_arrays(np.zeros((2, 1)), [1.0, 0.0])
    lists = DominationLoss(average="none").lists(queries)
    state, scores = kernels.new_state(lists), np.array([0.0, behind])
    value = kernels.evaluate(lists, scores, state)
    exact, slope = state.curvature[0], state.gradient[0]
    assert exact == pytest.approx(np.exp(-behind) / (1 + np.exp(-behind)) ** 2, rel=1e-12)
    kernels.stiffen(lists, scores, state, 0.5)
    between = state.curvature[0]
    kernels.stiffen(lists, scores, state, 1.0)
    assert exact <= between <= state.curvature[0]
    if behind > 1.0:
        assert between == pytest.approx((exact + state.curvature[0]) / 2, rel=1e-12)
        for move in np.linspace(-3 * behind, 3 * behind, 61):
            moved = np.logaddexp(0.0, behind - move)
            assert moved <= value + slope * move + 0.5 * state.curvature[0] * move**2 + 1e-9 * value


def test_a_failed_step_is_retried_with_more_damping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that points uphill once must not end the descent."""
    monkeypatch.setattr(domination_descent, "DENSE_BYTES", 0.0)
    real, calls = by_column.newton_direction, []

    def wrong_once(*arguments: Any) -> Any:
        calls.append(arguments[-2])
        direction = real(*arguments)
        if len(calls) == 2:
            arguments[-1][:] *= -1.0
            return -direction
        return direction

    monkeypatch.setattr(by_column, "newton_direction", wrong_once)
    ranker = domination_rank(l1=1.0).fit(as_csr(noisy()))
    assert ranker.converged_ and len(calls) > 2
    assert calls[:3] == [1.0, 1.0, 0.0]
    assert ranker.objective_ == pytest.approx(domination_rank(l1=1.0).fit(noisy()).objective_, rel=1e-8)
