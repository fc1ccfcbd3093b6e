"""The accelerated proximal gradient method against other methods, and the conditions of an optimum."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
from ranktune.solvers.losses.pairwise import PairwiseLogistic, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet
from ranktune.solvers.losses.pointwise import LogisticLoss, SquaredInsensitiveLoss
from ranktune.solvers.optimizers.batch import OWLQN, ScaledObjective, shortest
from ranktune.solvers.optimizers.proximal import FISTA
from tests.support.optimizer_runs import optimizer_run

LOSSES: list[Loss] = [
    SoftmaxCrossEntropy(),
    PairwiseLogistic(),
    PairwiseSquaredHinge(),
    DominationLoss(),
    LogisticLoss(centre="query"),
    SquaredInsensitiveLoss(0.0, "query"),
]


@pytest.fixture(scope="module")
def queries() -> Queries:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 6)) * np.array([1.0, 20.0, 0.5, 1, 1, 1])
    X[:, 4] = X[:, 3] + 0.3 * generator.normal(size=300)
    y = np.clip(np.round(X[:, :4] @ [1.0, -0.05, 1, 0.5] + generator.normal(size=300) + 1), 0, 3)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(20), 15))


@pytest.mark.parametrize("penalty", [L1(0.02), L2(0.01), ElasticNet(0.01, 0.01)], ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_it_meets_the_conditions_of_an_optimum_and_agrees_with_owlqn(
    loss: Loss, penalty: Any, queries: Queries
) -> None:
    *_, (weights, step) = optimizer_run(FISTA(tol=1e-8, max_iterations=20_000), loss, penalty, queries)
    assert step.violation <= 1e-8
    l1, l2 = penalty.strengths
    _, gradient = ScaledObjective(loss, l2, queries, None).value_and_gradient(weights)
    _, first = ScaledObjective(loss, l2, queries, None).value_and_gradient(np.zeros(6))
    assert np.abs(shortest(weights, gradient, l1)).max() <= 1e-7 * np.linalg.norm(first)
    *_, (others, _) = optimizer_run(OWLQN(tol=1e-9, max_iterations=5000), loss, penalty, queries)
    np.testing.assert_allclose(weights, others, atol=1e-5 * np.abs(others).max())


def test_the_objective_never_rises(queries: Queries) -> None:
    values = [step.objective for _, step in optimizer_run(FISTA(tol=1e-8), SoftmaxCrossEntropy(), L1(1e-3), queries)]
    assert len(values) > 5
    assert (np.diff(values) <= 1e-11 * abs(values[0])).all()


def test_momentum_pays_on_a_narrow_valley(queries: Queries) -> None:
    """Without momentum, proximal steps of the same line search take many more."""
    loss, penalty, multiplier = SquaredInsensitiveLoss(0.0, "query"), L2(1e-4), np.array([1.0, 0.3, 1, 1, 1, 1])
    *_, (_, step) = optimizer_run(FISTA(tol=1e-6), loss, penalty, queries, multiplier)
    objective = ScaledObjective(loss, 1e-4, queries, multiplier)
    weights = np.zeros(6)
    _, first = objective.value_and_gradient(weights)
    curvature, plain = 1e-3, 0
    while plain < 20_000:
        value, gradient = objective.value_and_gradient(weights)
        if np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(first):
            break
        while objective.value_and_gradient(weights - gradient / curvature)[0] > (
            value - 0.5 / curvature * gradient @ gradient
        ):
            curvature *= 2.0
        weights = weights - gradient / curvature
        plain += 1
    assert step.iteration < plain


def test_two_runs_leave_the_same_bits_and_strong_penalties_end_at_once(queries: Queries) -> None:
    runs = [[weights for weights, _ in optimizer_run(FISTA(), PairwiseLogistic(), L1(0.01), queries)] for _ in range(2)]
    assert np.array(runs[0]).tobytes() == np.array(runs[1]).tobytes()
    *_, (weights, step) = optimizer_run(FISTA(), PairwiseLogistic(), L1(1e3), queries)
    assert not weights.any() and step.iteration == 0
