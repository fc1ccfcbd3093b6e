"""Pointwise losses: gradients, the intercept that is the best for any scores, laws, targets."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize_scalar

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.pointwise import InsensitiveLoss, LogisticLoss, PointwiseLoss, SquaredInsensitiveLoss

LOSSES: list[PointwiseLoss] = [
    LogisticLoss(),
    LogisticLoss("exponential", "query"),
    SquaredInsensitiveLoss(0.3),
    SquaredInsensitiveLoss(0.0, "query"),
    InsensitiveLoss(0.3, 0.2),
    InsensitiveLoss(0.1, 0.5, "query"),
    InsensitiveLoss(5.0, 0.1),
]


def term(loss: PointwiseLoss, z: Floats, t: Floats) -> Floats:
    if isinstance(loss, LogisticLoss):
        return np.logaddexp(0.0, z) - t * z
    excess = np.maximum(np.abs(z - t) - loss.epsilon, 0.0)  # type: ignore[attr-defined]
    if isinstance(loss, SquaredInsensitiveLoss):
        return np.asarray(excess**2)
    width = loss.rounding  # type: ignore[attr-defined]
    return np.asarray(np.where(excess < width, 0.5 * excess**2 / width, excess - 0.5 * width))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestPointwiseLoss:
    """What every one of them keeps."""

    def test_value_is_the_mean_at_the_best_intercept(self, loss: PointwiseLoss, hard_queries: Queries) -> None:
        for size in (0.1, 3.0, 1e3):
            s = size * np.random.default_rng(0).normal(size=hard_queries.n_documents)
            value, _ = loss.value_and_gradient(s, hard_queries)
            if loss.centre == "query":
                q, n = hard_queries.query_of_document, hard_queries.lengths
                s = s - (np.bincount(q, s) / n)[q]
            t = loss.targets(hard_queries)

            def at(b: Any, s: Floats = s, t: Floats = t) -> float:
                return float(term(loss, s + b, t).mean())

            best = minimize_scalar(at, bracket=(-1.0, 1.0), tol=1e-12)
            assert value == pytest.approx(best.fun, rel=1e-7, abs=1e-9)
            assert value <= best.fun + 1e-12 * max(best.fun, 1.0)

    def test_gradient(self, loss: PointwiseLoss, hard_queries: Queries) -> None:
        scores = np.random.default_rng(1).normal(size=hard_queries.n_documents)
        part = [lambda s, k=k: loss.value_and_gradient(s, hard_queries)[k] for k in (0, 1)]
        assert check_grad(*part, scores) < 2e-6

    def test_a_shift_of_all_scores_changes_nothing(self, loss: PointwiseLoss, hard_queries: Queries) -> None:
        scores = np.random.default_rng(2).normal(size=hard_queries.n_documents)
        shift = np.arange(8.0)[hard_queries.query_of_document] if loss.centre == "query" else 7.5
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        moved, same = loss.value_and_gradient(scores + shift, hard_queries)
        assert moved == pytest.approx(value, rel=1e-9, abs=1e-15)
        np.testing.assert_allclose(same, gradient, atol=1e-9)
        assert gradient.sum() == pytest.approx(0.0, abs=1e-10)


def test_relevance_runs_from_zero_to_one_and_never_overflows() -> None:
    grades = np.array([-1.0, 0.0, 1.0, 3.0])
    queries = Queries.from_arrays(np.zeros((4, 1)), grades)
    np.testing.assert_allclose(LogisticLoss().targets(queries), [0, 0.25, 0.5, 1])
    np.testing.assert_allclose(LogisticLoss("exponential").targets(queries), (2**grades - 0.5) / 7.5)
    huge = Queries.from_arrays(np.zeros((3, 1)), [0.0, 1e5, 2e5])
    np.testing.assert_array_equal(LogisticLoss("exponential").targets(huge), [0, 0, 1])


def test_parameters_that_cannot_be() -> None:
    for make in (SquaredInsensitiveLoss, InsensitiveLoss):
        with pytest.raises(ParameterError, match=r"epsilon=-0\.1"):
            make(-0.1)
    with pytest.raises(ParameterError, match="gain='exp2'"):
        LogisticLoss("exp2")
    with pytest.raises(ParameterError, match="centre='all'"):
        LogisticLoss(centre="all")
    with pytest.raises(ParameterError, match="rounding=-1"):
        InsensitiveLoss(rounding=-1)
