"""Newton's method and coordinate descent as parts of a composition."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.ranker import Ranker
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet
from ranktune.solvers.losses.pointwise import SquaredInsensitiveLoss
from ranktune.solvers.optimizers.base import Parts
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN
from ranktune.solvers.optimizers.domination_descent import DominationProblem
from ranktune.solvers.optimizers.second_order import CoordinateDescent, Newton
from tests.support.optimizer_runs import optimizer_run


@pytest.fixture(scope="module")
def queries() -> Queries:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(360, 5)) * np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    y = np.clip(np.round(X @ [1.0, -0.5, 1.0, 0.5, 0.0] + generator.normal(size=360) + 1), 0, 3)
    whole = Queries.from_arrays(X, y, qid=np.repeat(np.arange(30), 12))
    return whole.weighted_by(np.where(np.arange(30) % 3 == 0, 2.0, 1.0))


@pytest.mark.parametrize("multiplier", [None, np.array([1.0, 0.5, 2.0, 1.0, 0.0])], ids=["raw", "scaled"])
@pytest.mark.parametrize("average", ["queries", "none"])
def test_newton_minimises_what_lbfgs_minimises(average: str, multiplier: Any, queries: Queries) -> None:
    loss = PairwiseSquaredHinge(average=average)
    penalty = L2(0.05 if average == "queries" else 50.0)
    *_, (weights, step) = optimizer_run(Newton(tol=1e-9), loss, penalty, queries, multiplier)
    *_, (others, other) = optimizer_run(LBFGS(tol=1e-10), loss, penalty, queries, multiplier)
    np.testing.assert_allclose(weights, others, rtol=1e-6, atol=1e-9)
    assert step.objective == pytest.approx(other.objective, rel=1e-9)


def test_newton_on_the_hinge_is_within_its_duality_gap(queries: Queries) -> None:
    loss, penalty = PairwiseHinge(), L2(0.05)
    *_, (weights, step) = optimizer_run(Newton(tol=1e-4), loss, penalty, queries)
    assert step.violation <= 1e-4
    value, _ = loss.value_and_gradient(queries.features @ weights, queries)
    assert step.objective == pytest.approx(value + penalty.value(weights), rel=1e-9)
    generator = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(20):
            near = weights + size * generator.normal(size=5)
            there, _ = loss.value_and_gradient(queries.features @ near, queries)
            assert there + penalty.value(near) >= step.objective * (1.0 - 1e-4)


@pytest.mark.parametrize("centre", ["query", "none"])
def test_newton_solves_squared_errors_in_one_step(centre: str, queries: Queries) -> None:
    loss, penalty = SquaredInsensitiveLoss(0.0, centre), L2(0.3)
    ((weights, step),) = optimizer_run(Newton(), loss, penalty, queries)
    *_, (others, other) = optimizer_run(LBFGS(tol=1e-11), loss, penalty, queries)
    np.testing.assert_allclose(weights, others, rtol=1e-7)
    assert step.objective == pytest.approx(other.objective, rel=1e-10)


@pytest.mark.parametrize("penalty", [L1(0.02), L2(0.05), ElasticNet(0.01, 0.05)], ids=repr)
def test_coordinate_descent_minimises_what_owlqn_minimises(penalty: Any, queries: Queries) -> None:
    *_, (weights, step) = optimizer_run(CoordinateDescent(tol=1e-9), DominationLoss(), penalty, queries)
    *_, (others, other) = optimizer_run(OWLQN(tol=1e-9), DominationLoss(), penalty, queries)
    np.testing.assert_allclose(weights, others, atol=1e-6)
    assert step.objective == pytest.approx(other.objective, rel=1e-9)


def test_coordinate_descent_returns_its_start_where_no_step_lowers_the_objective(
    queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DominationProblem, "_move", lambda *_: False)
    ranker = Ranker(DominationLoss(), None, L2(0.1), CoordinateDescent())
    with pytest.warns(RankTuneWarning, match="stopped before it converged: after 0 iterations"):
        ranker.fit(queries)
    assert not ranker.converged_ and not ranker.coef_.any()


def test_a_path_of_strengths_is_as_good_as_each_alone(queries: Queries) -> None:
    for optimizer, loss in (
        (Newton(tol=1e-9), PairwiseSquaredHinge()),
        (CoordinateDescent(tol=1e-9), DominationLoss()),
    ):
        penalties = [L2(strength) for strength in (1.0, 0.1, 0.01)]
        path = [Parts(loss, penalty, optimizer) for penalty in penalties]
        for penalty, steps in zip(penalties, optimizer.follow(path, queries), strict=True):
            *_, last = steps
            *_, (alone, _) = optimizer_run(optimizer, loss, penalty, queries)
            np.testing.assert_allclose(last.weights, alone, atol=1e-6)
