"""DominationRank as a whole: its optimum, its conditions, its invariances, its parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from ranktune.solvers import domination_columns as by_column
from ranktune.solvers import domination_descent, products
from ranktune.solvers import domination_kernels as kernels
from ranktune.solvers.domination import DominationRank
from ranktune.solvers.domination_columns import Target
from ranktune.solvers.domination_descent import CURVATURES, DominationProblem
from ranktune.solvers.domination_loss import DominationLoss
from ranktune.solvers.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.penalties import L1, L2, ElasticNet, Penalty
from ranktune.solvers.queries import Queries, concatenate
from ranktune.solvers.space import defaults

PENALTIES: list[dict[str, Any]] = [
    {"penalty": "l1", "l1": 3.0},
    {"penalty": "l2", "l2": 1.0},
    {"penalty": "elastic_net", "l1": 2.0, "l2": 0.5},
]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"grades": "two", "relevant_from": 2},
    {"margin": "grade", "margin_scale": 0.5},
    {"margin": (0.0, 0.1, 1.0, 1.5), "average": "none"},
]


def noisy(seed: int = 0, n_queries: int = 25, length: int = 16, n_features: int = 8, n_grades: int = 4) -> Queries:
    """Grades that follow a linear score of three features, and noise."""
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(n_queries * length, n_features)), 2)
    X[np.abs(X) < 0.5] = 0.0
    score = X[:, :3] @ [2.0, -1.0, 0.5] + generator.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, np.arange(1, n_grades) / n_grades)).astype(float)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(n_queries), length))


def as_csr(queries: Queries) -> Queries:
    return queries.with_features(sparse.csr_array(queries.features))


def loss_of(ranker: DominationRank) -> DominationLoss:
    return DominationLoss(ranker.grades, ranker.margin, ranker.margin_scale, ranker.relevant_from, ranker.average)


def penalty_of(ranker: DominationRank) -> Penalty:
    if ranker.penalty == "elastic_net":
        return ElasticNet(ranker.l1, ranker.l2)
    return L1(ranker.l1) if ranker.penalty == "l1" else L2(ranker.l2)


def scipy_optimum(ranker: DominationRank, queries: Queries) -> tuple[float, Any]:
    """The least objective by L-BFGS-B over w = p - n, p and n not negative, where L1 is smooth."""
    loss, (l1, l2), d = loss_of(ranker), penalty_of(ranker).strengths, queries.n_features

    def value_and_gradient(both: Any) -> Any:
        w = both[:d] - both[d:]
        value, by_score = loss.value_and_gradient(queries.features @ w, queries)
        slope = queries.features.T @ by_score + l2 * w
        return value + l1 * both.sum() + 0.5 * l2 * w @ w, np.concatenate([slope + l1, l1 - slope])

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    start = np.full(2 * d, 0.01)
    found = minimize(
        value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * d, options=options
    )
    return float(found.fun), found.x[:d] - found.x[d:]


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["penalty"])
@pytest.mark.parametrize("curvature", CURVATURES)
def test_two_optimizers_agree_on_the_optimum(penalty: dict[str, Any], variant: dict[str, Any], curvature: str) -> None:
    queries = noisy()
    ranker = DominationRank(**penalty, **variant, curvature=curvature, tol=1e-8, max_iterations=20_000).fit(queries)
    value, weights = scipy_optimum(ranker, queries)
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(ranker.coef_, weights, atol=1e-4 * np.abs(weights).max())


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["penalty"])
@pytest.mark.parametrize("curvature", ["exact", "tight"])
@pytest.mark.parametrize(("scaling", "spread"), [("none", 0.0), ("standard", 0.0), ("standard", 1e9)])
def test_dense_and_sparse_agree(
    penalty: dict[str, Any], curvature: str, scaling: str, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domination_descent, "DENSE_BYTES", spread)
    queries = noisy()
    fits = [
        DominationRank(**penalty, curvature=curvature, scaling=scaling, tol=1e-9, max_iterations=20_000).fit(data)
        for data in (queries, as_csr(queries))
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-7 * np.abs(fits[0].coef_).max())


def test_wide_working_sets_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = noisy(n_features=40)
    whole = DominationRank("l2", l2=1.0, tol=1e-8).fit(queries)
    monkeypatch.setattr(domination_descent, "BLOCK", 7)
    parts = DominationRank("l2", l2=1.0, tol=1e-8).fit(queries)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)


def test_wide_dense_features_take_few_iterations() -> None:
    """All second derivatives at once: in blocks such features, of a few common factors, take dozens of iterations."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 20)) @ generator.normal(size=(20, 400)) + generator.normal(size=(2000, 400))
    y = np.digitize(X @ generator.normal(size=400) + 60.0 * generator.normal(size=2000), [0.0, 60.0]).astype(float)
    queries = Queries.from_arrays(X, y, qid=np.repeat(np.arange(50), 40))
    ranker = DominationRank(l1=1e-4, average="documents", scaling="standard").fit(queries)
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
    queries = replace(noisy(), query_weights=np.linspace(0.5, 2.0, 25))
    multiplier = np.full(8, factor)
    problem = DominationProblem(as_csr(queries), DominationLoss(average="none"), multiplier, "exact")
    problem.weights = np.random.default_rng(0).normal(size=8)
    problem.refresh()
    assert problem._columns is not None
    H = factor**2 * kernels.hessian(queries.features, np.arange(8), problem.lists, problem._state)
    slope, v = problem._gradient(), np.empty(queries.n_documents)
    parts = (problem.lists, problem._state, problem._query_of, Target(0.0, 0.1, 1e-10 * np.abs(slope).max()), 5000)
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
    ranker = DominationRank(**penalty, curvature=curvature, average="none", tol=1e-6, max_iterations=5000)
    values = [step.objective for step in ranker.fit_steps(noisy())]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert values[-1] < values[0] or len(values) == 1
    assert ranker.objective_ == values[-1]


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
@pytest.mark.parametrize("penalty", [{"penalty": "l1", "l1": 3e-3}, {"penalty": "elastic_net", "l1": 3e-3, "l2": 1e-2}])
def test_conditions_of_the_optimum_on_real_data(
    name: str, penalty: dict[str, Any], letor_folds: dict[str, Path]
) -> None:
    """Zero is in the subdifferential: computed here from the loss alone, on features scaled by a copy."""
    from ranktune.studies.catalogue import read

    queries = read(letor_folds[name] / "Fold1" / "train.txt")
    means = np.add.reduceat(queries.features, queries.starts[:-1], dtype=np.float64) / queries.lengths[:, None]
    deviation = np.sqrt(((queries.features - means[queries.query_of_document]) ** 2).mean(axis=0))
    scaled = queries.with_features(queries.features * np.divide(1, deviation, where=deviation > 0, out=deviation * 0))
    ranker = DominationRank(**penalty, average="documents", tol=1e-8).fit(scaled)
    w, (l1, l2) = ranker.coef_, penalty_of(ranker).strengths
    _, by_score = loss_of(ranker).value_and_gradient(products.scores(scaled.features, w), scaled)
    slope = products.transposed(scaled.features, by_score) + l2 * w
    assert 3 <= np.count_nonzero(w) < len(w)
    np.testing.assert_allclose(slope[w != 0], -l1 * np.sign(w[w != 0]), atol=1e-7)
    assert np.abs(slope[w == 0]).max() <= l1 + 1e-7
    inner = DominationRank(**penalty, average="documents", tol=1e-8, scaling="standard").fit(queries)
    np.testing.assert_allclose(inner.predict(queries), products.scores(scaled.features, w), atol=1e-3)


def test_l1_above_the_largest_gradient_learns_nothing_and_just_below_one_feature() -> None:
    queries = noisy()
    largest = DominationProblem(queries, DominationLoss(average="none"), None, "exact").reference
    none, one = (DominationRank(l1=share * largest).fit(queries) for share in (1.001, 0.99))
    assert none.converged_ and not none.coef_.any()
    assert np.count_nonzero(one.coef_) == 1


@pytest.mark.parametrize("curvature", CURVATURES)
def test_features_of_an_irrelevant_size_and_offset_do_no_harm(curvature: str) -> None:
    """A constant added to a feature within a query changes nothing: here it is far larger than the feature's range."""
    queries = noisy()
    offsets = 1e6 * np.random.default_rng(0).normal(size=(queries.n_queries, 1))
    shifted = queries.with_features(queries.features + offsets[queries.query_of_document])
    parameters: dict[str, Any] = {"l1": 2.0, "tol": 1e-5, "curvature": curvature, "max_iterations": 30}
    if curvature == "paper":  # whose bound takes the offset for the feature's size: it hardly moves
        with pytest.warns(RankTuneWarning, match="stopped after 30 iterations"):
            ranker = DominationRank(**parameters).fit(shifted)
        assert np.isfinite(ranker.coef_).all()
        return
    parameters["max_iterations"] = 2000
    plain, moved = (DominationRank(**parameters).fit(data) for data in (queries, shifted))
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-3 * np.abs(plain.coef_).max())


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["penalty"])
@pytest.mark.parametrize("average", ["none", "documents", "queries"])
def test_a_query_of_weight_two_stands_twice_in_the_data(penalty: dict[str, Any], average: str) -> None:
    queries = noisy()
    if average != "none":
        penalty = {key: value / 100 if isinstance(value, float) else value for key, value in penalty.items()}
    ranker = DominationRank(**penalty, average=average, tol=1e-9)
    twice = concatenate([queries, queries.select(np.array([3, 7]))])
    weights = np.where(np.isin(np.arange(25), [3, 7]), 2.0, 1.0)
    repeated = ranker.fit(twice).coef_
    np.testing.assert_allclose(ranker.fit(queries, query_weights=weights).coef_, repeated, atol=1e-8)
    assert not np.allclose(ranker.fit(queries).coef_, repeated, atol=1e-4)


@pytest.mark.parametrize("average", ["documents", "queries"])
def test_averages_do_not_depend_on_the_amount_of_data(average: str) -> None:
    queries = noisy()
    ranker = DominationRank(l1=0.02, average=average, tol=1e-9)
    once = ranker.fit(queries).coef_
    np.testing.assert_allclose(ranker.fit(concatenate([queries] * 3)).coef_, once, atol=1e-8)


def test_noiseless_data_are_ranked_without_error() -> None:
    generator = np.random.default_rng(0)
    X, truth = generator.normal(size=(600, 5)), np.array([3.0, -2.0, 1.0, 0.0, 0.0])
    y, qid = np.digitize(X @ truth, [-2.0, 1.0, 4.0]).astype(float), np.repeat(np.arange(20), 30)
    ranker = DominationRank("l2", l2=1e-4, average="documents").fit(X, y, qid=qid)
    scores = ranker.predict(X)
    better = (qid[:, None] == qid) & (y[:, None] > y)
    assert (scores[:, None] > scores)[better].mean() > 0.995
    assert ranker.coef_ @ truth / np.linalg.norm(ranker.coef_) / np.linalg.norm(truth) > 0.999


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
        at_zero = DominationRank("l2", l2=1.0, tol=1e-6).fit(queries)
        assert values[-1] == pytest.approx(at_zero.objective_, rel=1e-8)


def test_path_is_what_single_fits_find_and_is_in_the_order_asked_for() -> None:
    queries, strengths = noisy(), (0.1, 3.0, 1.0)
    path = DominationRank("elastic_net", l1=3.0, l2=0.5, tol=1e-8).fit_path(queries, strengths=strengths)
    for ranker, strength in zip(path, strengths, strict=True):
        single = DominationRank("elastic_net", l1=3.0 * strength, l2=0.5 * strength, tol=1e-8).fit(queries)
        assert ranker.get_params() == single.get_params()
        assert ranker.objective_ == pytest.approx(single.objective_, rel=1e-10)
        np.testing.assert_allclose(ranker.coef_, single.coef_, atol=1e-6)
        assert ranker.predict(queries).shape == (queries.n_documents,)
    with pytest.raises(ParameterError, match="strengths=0"):
        DominationRank().fit_path(queries, strengths=(1.0, 0.0))


def test_stopping_early_leaves_a_usable_model_and_running_out_warns_once() -> None:
    queries = noisy()
    ranker = DominationRank(l1=1.0)
    for _ in ranker.fit_steps(queries):
        break
    assert ranker.coef_.any() and ranker.n_iter_ == 1
    with pytest.warns(RankTuneWarning, match="stopped after 2 iterations") as caught:
        ranker = DominationRank(l1=1.0, curvature="paper", max_iterations=2).fit(queries)
    assert len(caught) == 1 and not ranker.converged_


@pytest.mark.parametrize("penalty", [{"penalty": "l2", "l2": 0.1}, {"penalty": "l1", "l1": 1e-4}])
def test_twin_features_do_not_stall_sparse_data(penalty: dict[str, Any]) -> None:
    """Columns that nearly agree take thousands of sweeps, which only second derivatives make cheap."""
    queries = noisy()
    noise = 1e-3 * np.random.default_rng(1).normal(size=queries.features.shape)
    twins = queries.with_features(np.hstack([queries.features, queries.features + noise]))
    dense, csr = (DominationRank(**penalty, average="documents").fit(data) for data in (twins, as_csr(twins)))
    assert dense.n_iter_ <= 10 and csr.n_iter_ <= 10
    np.testing.assert_allclose(csr.predict(twins), dense.predict(twins), atol=1e-6)


def many_grades(n_documents: int = 20_000, n_features: int = 4000, per_feature: int = 10) -> Queries:
    """One sparse query of thousands of grades: far more levels than a column has nonzeros."""
    generator = np.random.default_rng(0)
    n = n_features * per_feature
    rows, columns = generator.integers(0, n_documents, n), generator.integers(0, n_features, n)
    X = sparse.csr_array((generator.normal(size=n), (rows, columns)), shape=(n_documents, n_features))
    score = X @ generator.normal(size=n_features) + 0.5 * generator.normal(size=n_documents)
    return Queries.from_arrays(X, np.round(score, 2))


def test_many_grades_and_many_sparse_features() -> None:
    """Thousands of documents far behind their rivals, thousands of levels that few nonzeros look at, one query."""
    queries, l1 = many_grades(), 1e-4
    ranker = DominationRank(l1=l1, average="documents", max_iterations=25, tol=1e-6).fit(queries)
    w = ranker.coef_
    assert ranker.converged_ and np.count_nonzero(w) > 3000
    _, by_score = DominationLoss(average="documents").value_and_gradient(queries.features @ w, queries)
    slope = queries.features.T @ by_score
    allowed = 1.01e-6 * DominationProblem(queries, DominationLoss(average="documents"), None, "exact").reference
    np.testing.assert_allclose(slope[w != 0], -l1 * np.sign(w[w != 0]), atol=allowed)
    assert np.abs(slope).max() <= l1 + allowed


@pytest.mark.parametrize("behind", [0.5, 1.5, 6.0, 40.0, 1e4])
def test_stiffened_parabolas_lie_above_the_loss(behind: float) -> None:
    """One pair, whose loss is log(1 + exp(behind)): own is its curvature, and a bound once it is moved all the way."""
    queries = Queries.from_arrays(np.zeros((2, 1)), [1.0, 0.0])
    lists = DominationLoss(average="none").lists(queries)
    state, scores = kernels.new_state(lists), np.array([0.0, behind])
    value = kernels.evaluate(lists, scores, state)
    exact, slope = state.own[0], state.gradient[0]
    assert exact == pytest.approx(np.exp(-behind) / (1 + np.exp(-behind)) ** 2, rel=1e-12)
    kernels.stiffen(lists, scores, state, 0.5)
    between = state.own[0]
    kernels.stiffen(lists, scores, state, 1.0)
    assert exact <= between <= state.own[0]
    if behind > 1.0:
        assert between == pytest.approx((exact + state.own[0]) / 2, rel=1e-12)
        for move in np.linspace(-3 * behind, 3 * behind, 61):
            moved = np.logaddexp(0.0, behind - move)
            assert moved <= value + slope * move + 0.5 * state.own[0] * move**2 + 1e-9 * value


def test_a_failed_step_is_tried_again_with_more_care(monkeypatch: pytest.MonkeyPatch) -> None:
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
    ranker = DominationRank(l1=1.0).fit(as_csr(noisy()))
    assert ranker.converged_ and len(calls) > 2
    assert calls[:3] == [1.0, 1.0, 0.0]
    assert ranker.objective_ == pytest.approx(DominationRank(l1=1.0).fit(noisy()).objective_, rel=1e-8)


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["penalty"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("curvature", CURVATURES)
def test_features_that_tell_nothing_within_queries_get_no_weight(
    penalty: dict[str, Any], is_sparse: bool, curvature: str
) -> None:
    queries = noisy()
    values = np.random.default_rng(0).normal(size=(queries.n_queries, 8))
    flat = queries.with_features(values[queries.query_of_document])
    parameters: dict[str, Any] = {"curvature": curvature, "average": "documents"} | penalty
    for scaling in ("none", "standard", "minmax"):
        ranker = DominationRank(**parameters, scaling=scaling).fit(as_csr(flat) if is_sparse else flat)
        assert np.abs(ranker.coef_).max() < 1e-12


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
def test_a_constant_added_within_a_query_changes_nothing(scaling: str) -> None:
    queries = noisy()
    shifts = np.random.default_rng(0).integers(-3, 4, (queries.n_queries, 8))
    shifted = queries.with_features(queries.features + shifts[queries.query_of_document])
    plain, moved = (DominationRank(l1=0.5, scaling=scaling, tol=1e-9).fit(data) for data in (queries, shifted))
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-7 * np.abs(plain.coef_).max())


def test_two_fits_are_bit_equal_and_float32_is_taken() -> None:
    queries = noisy()
    single = queries.with_features(queries.features.astype(np.float32))
    for data in (queries, single, as_csr(queries), as_csr(single)):
        first, second = (DominationRank(l1=1.0).fit(data) for _ in range(2))
        np.testing.assert_array_equal(first.coef_, second.coef_)
        np.testing.assert_allclose(first.coef_, DominationRank(l1=1.0).fit(queries).coef_, atol=1e-5)


def test_order_of_rows_and_queries_without_pairs_do_not_matter() -> None:
    queries = noisy()
    X, y, qid = queries.features, queries.grades, queries.query_of_document
    more = np.vstack([X, 5.0 + X[:6]]), np.append(y, [2.0] * 5 + [0.0]), np.append(qid, [90] * 5 + [91])
    order = np.random.default_rng(0).permutation(len(more[1]))
    ranker = DominationRank(l1=1.0, tol=1e-9)
    expected = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(
        ranker.fit(*(part[order] for part in more[:2]), qid=more[2][order]).coef_, expected, atol=1e-8
    )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"penalty": "l3"}, "penalty='l3'"),
        ({"l1": 0.0}, "l1=0.0"),
        ({"penalty": "l2", "l2": -1.0}, "l2=-1.0"),
        ({"penalty": "elastic_net", "l2": 0}, "l2=0"),
        ({"grades": "some"}, "grades='some'"),
        ({"margin": (1.0, 0.0)}, "must not fall"),
        ({"margin": (0.0, 1.0, 2.0)}, "margin has 3 values for the grades 0, 1, 2, 3.*one value a grade"),
        ({"margin": "grade", "margin_scale": 1e300}, "margin_scale=1e\\+300.*Lower margin_scale"),
        ({"margin": "grade", "margin_scale": -1.0}, "margin_scale=-1.0: it must be a number of at least 0"),
        ({"scaling": "log"}, "scaling='log'"),
        ({"average": "pairs"}, "average='pairs'"),
        ({"curvature": "loose"}, "curvature='loose'"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iterations": 0}, "max_iterations=0"),
    ],
)
def test_bad_parameters_are_refused_before_training(parameters: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        DominationRank(**parameters).fit(noisy())


def test_nothing_relevant_is_refused() -> None:
    with pytest.raises(DataError, match=r"no query has both relevant and other documents\. Lower relevant_from"):
        DominationRank(grades="two", relevant_from=9.0).fit(noisy())


def test_defaults_of_the_space_are_parameters() -> None:
    ranker = DominationRank(**defaults(DominationRank.space)).fit(noisy())  # type: ignore[arg-type]
    assert ranker.converged_ and 0 < np.count_nonzero(ranker.coef_)
