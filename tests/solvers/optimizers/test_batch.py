"""Batch optimizers against scipy and the conditions of an optimum, on losses of different kinds."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
from ranktune.solvers.losses.pair_weights import DeltaNDCG
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet
from ranktune.solvers.losses.pointwise import LogisticLoss, SquaredInsensitiveLoss
from ranktune.solvers.optimizers.batch import (
    LBFGS,
    OWLQN,
    Curvature,
    GradientSteps,
    ScaledObjective,
    SearchPoint,
    shortest,
    wolfe,
)
from tests.support.optimizer_runs import optimizer_run

SMOOTH: list[Loss] = [
    SoftmaxCrossEntropy(),
    PairwiseLogistic(),
    PairwiseSquaredHinge(),
    LogisticLoss(centre="query"),
    SquaredInsensitiveLoss(0.2),
]


@pytest.fixture(scope="module")
def queries() -> Queries:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 7)) * np.array([1.0, 2, 0.5, 1, 1, 1, 1])
    X[:, 4] = X[:, 3] + 0.3 * generator.normal(size=400)
    y = np.clip(np.round(X[:, :5] @ [1.0, -1, 1, 0.5, 0] + generator.normal(size=400) + 1), 0, 4)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(20), 20))


def last(steps: Iterator[tuple[Floats, Step]]) -> tuple[Floats, Step]:
    *_, end = steps
    return end


def total(loss: Loss, l2: float, queries: Queries) -> Any:
    def value_and_gradient(weights: Floats) -> tuple[float, Floats]:
        value, by_score = loss.value_and_gradient(queries.features @ weights, queries)
        return float(value + 0.5 * l2 * weights @ weights), queries.features.T @ by_score + l2 * weights

    return value_and_gradient


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_lbfgs_finds_what_scipy_finds(loss: Loss, queries: Queries) -> None:
    expected = minimize(total(loss, 0.05, queries), np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    weights, step = last(optimizer_run(LBFGS(tol=1e-9), loss, L2(0.05), queries))
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert step.objective == pytest.approx(total(loss, 0.05, queries)(expected)[0], rel=1e-10)
    assert step.violation <= 1e-9
    assert step.iteration < 60


@pytest.mark.parametrize("penalty", [L1(0.02), ElasticNet(0.02, 0.05), L1(0.2)], ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_owlqn_meets_the_subgradient_conditions(loss: Loss, penalty: Any, queries: Queries) -> None:
    weights, step = last(optimizer_run(OWLQN(tol=1e-7), loss, penalty, queries))
    l1, l2 = penalty.strengths
    value, gradient = total(loss, l2, queries)(weights)
    kept = weights != 0.0
    np.testing.assert_allclose(gradient[kept], -l1 * np.sign(weights[kept]), atol=1e-6)
    assert (np.abs(gradient[~kept]) <= l1 + 1e-9).all()
    assert (~kept).any() or l1 < 0.1
    assert step.objective == pytest.approx(value + l1 * np.abs(weights).sum(), rel=1e-12)
    assert step.violation <= 1e-7


def test_gradient_steps_reach_the_optimum_of_a_fixed_function(queries: Queries) -> None:
    penalty, loss = ElasticNet(0.02, 0.05), SoftmaxCrossEntropy()
    weights, _ = last(optimizer_run(GradientSteps(1e-9, 3000, 0.2), loss, penalty, queries))
    expected, _ = last(optimizer_run(OWLQN(tol=1e-8), loss, penalty, queries))
    np.testing.assert_allclose(weights, expected, atol=1e-3)
    assert ((weights == 0.0) == (expected == 0.0)).all()


@pytest.mark.parametrize("loss", [PairwiseHinge(), PairwiseLogistic(DeltaNDCG(5))], ids=repr)
def test_gradient_steps_take_losses_that_no_line_search_takes(loss: Loss, queries: Queries) -> None:
    steps = list(optimizer_run(GradientSteps(1e-9, 60), loss, L2(0.0), queries))
    assert len(steps) == 61
    assert steps[-1][1].objective < 0.7 * steps[0][1].objective


def test_the_objective_falls_at_every_step(queries: Queries) -> None:
    for optimizer, penalty in ((LBFGS(tol=1e-8), L2(1e-3)), (OWLQN(tol=1e-6), L1(0.01))):
        values = [step.objective for _, step in optimizer_run(optimizer, PairwiseLogistic(), penalty, queries)]
        assert (np.diff(values) <= 1e-11).all()
        assert [step.iteration for _, step in optimizer_run(optimizer, PairwiseLogistic(), penalty, queries)] == list(
            range(len(values))
        )


def test_strong_penalties_and_few_iterations_end_at_once(queries: Queries) -> None:
    weights, step = last(optimizer_run(OWLQN(), SoftmaxCrossEntropy(), L1(1e3), queries))
    assert not weights.any()
    assert (step.iteration, step.violation) == (0, 0.0)
    _, step = last(optimizer_run(LBFGS(max_iterations=2), SoftmaxCrossEntropy(), L2(0.0), queries))
    assert step.iteration == 2
    assert step.violation > 1e-4


def test_features_of_huge_size_do_not_overflow(queries: Queries) -> None:
    huge = queries.with_features(1e150 * queries.features)
    for optimizer, penalty in ((LBFGS(), L2(1.0)), (OWLQN(), L1(1.0))):
        weights, step = last(optimizer_run(optimizer, PairwiseSquaredHinge(), penalty, huge))
        assert np.isfinite(weights).all()
        assert np.isfinite(step.objective)


def test_the_two_loops_are_the_bfgs_matrix() -> None:
    generator = np.random.default_rng(1)
    A = generator.normal(size=(4, 4))
    H = A @ A.T + np.eye(4)
    curvature, inverse = Curvature(10), np.eye(4)
    pairs = [(s, H @ s) for s in generator.normal(size=(3, 4))]
    inverse *= (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ pairs[-1][1])
    for s, y in pairs:
        curvature.add(s, y)
        left = np.eye(4) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    g = generator.normal(size=4)
    np.testing.assert_allclose(curvature.solve(g), inverse @ g, rtol=1e-10)
    curvature.add(pairs[0][0], -pairs[0][1])  # no curvature: nothing is learnt from it
    np.testing.assert_allclose(curvature.solve(g), inverse @ g, rtol=1e-10)


def test_the_line_search_meets_the_wolfe_conditions(queries: Queries) -> None:
    objective = ScaledObjective(PairwiseLogistic(), 0.01, queries, None)
    zero = SearchPoint(np.zeros(7), *objective.value_and_gradient(np.zeros(7)))
    for length in (1e-6, 1.0, 1e6):
        direction = -length * zero.gradient
        moved = wolfe(objective, zero, direction)
        assert moved is not None
        step, slope = moved.weights - zero.weights, zero.gradient @ direction
        assert moved.value <= zero.value + 1e-4 * zero.gradient @ step
        assert moved.gradient @ direction >= 0.9 * slope
    assert wolfe(objective, zero, zero.gradient) is None


def test_the_shortest_subgradient() -> None:
    result = shortest(np.array([0.0, 0.0, 0.0, 2.0, -2.0]), np.array([0.5, 3.0, -3.0, 1.0, 1.0]), 1.0)
    np.testing.assert_array_equal(result, [0.0, 2.0, -2.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("optimizer", "names"),
    [
        (LBFGS, ("tol", "max_iterations", "memory")),
        (OWLQN, ("tol", "max_iterations", "memory")),
        (GradientSteps, ("tol", "max_iterations", "eta0")),
    ],
)
def test_parameters_of_zero_are_refused(optimizer: Any, names: tuple[str, ...]) -> None:
    for name in names:
        with pytest.raises(ParameterError, match=f"{name}=0"):
            optimizer(**{name: 0})
