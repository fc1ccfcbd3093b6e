from __future__ import annotations

import numpy as np
import pytest
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.search import ascend

TOP = np.array([0.3, 1.4, 0.8, 0.5])  # the second beyond the box
CURVATURE = np.array([[2.0, 0.5, 0.0, 0.3], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 40.0, 0.0], [0.3, 0.0, 0.0, 0.5]])


def bowl(rows: Floats) -> tuple[Floats, Floats]:
    away = rows - TOP
    return -0.5 * np.einsum("ij,jk,ik->i", away, CURVATURE, away), -away @ CURVATURE


def hills(rows: Floats) -> tuple[Floats, Floats]:
    return np.sin(9 * rows).sum(axis=1) + rows[:, 0], 9 * np.cos(9 * rows) + np.eye(rows.shape[1])[0]


STARTS = np.random.default_rng(0).random((5, 4))
ALL = np.ones((5, 4), dtype=bool)


def test_reaches_the_top_of_a_bowl_within_the_box() -> None:
    reached = ascend(bowl, STARTS, ALL, calls=60, tolerance=1e-12)
    negated = scipy.optimize.minimize(
        lambda x: -bowl(x[None])[0][0], STARTS[0], jac=lambda x: -bowl(x[None])[1][0], bounds=[(0, 1)] * 4
    )
    np.testing.assert_allclose(reached, np.tile(negated.x, (5, 1)), atol=1e-4)


def test_reaches_the_top_within_other_bounds() -> None:
    low, high = np.array([0.35, 0.0, 0.1, 0.2]), np.array([0.9, 0.4, 0.6, 0.3])
    reached = ascend(bowl, low + STARTS * (high - low), ALL, calls=60, tolerance=1e-12, low=low, high=high)
    bounds = list(zip(low, high, strict=True))
    negated = scipy.optimize.minimize(
        lambda x: -bowl(x[None])[0][0], low, jac=lambda x: -bowl(x[None])[1][0], bounds=bounds
    )
    np.testing.assert_allclose(reached, np.tile(negated.x, (5, 1)), atol=1e-4)


def test_columns_that_are_not_free_stay() -> None:
    free = np.random.default_rng(1).random((5, 4)) < 0.5
    free[0] = False
    reached = ascend(bowl, STARTS, free, calls=60, tolerance=1e-12)
    np.testing.assert_array_equal(reached[~free], STARTS[~free])
    assert (bowl(reached)[0] >= bowl(STARTS)[0]).all()
    gradient = bowl(reached)[1]
    inside = free & (reached > 0) & (reached < 1)
    assert inside.any() and np.abs(gradient[inside]).max() < 1e-3


@pytest.mark.parametrize("calls", [1, 2, 5, 40])
def test_nobody_ends_lower_than_where_it_began(calls: int) -> None:
    reached = ascend(hills, STARTS, ALL, calls=calls, tolerance=1e-9)
    assert (hills(reached)[0] >= hills(STARTS)[0]).all() and reached.min() >= 0 and reached.max() <= 1


def test_climbers_do_not_disturb_each_other() -> None:
    together = ascend(hills, STARTS, ALL, calls=40, tolerance=1e-9)
    alone = [ascend(hills, STARTS[i : i + 1], ALL[:1], calls=40, tolerance=1e-9)[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, atol=1e-9)
    gradient = hills(together)[1]
    assert np.abs(gradient[(together > 0) & (together < 1)]).max() < 1e-2


def test_a_flat_function_is_left_alone() -> None:
    reached = ascend(lambda rows: (np.zeros(len(rows)), np.zeros(rows.shape)), STARTS, ALL, calls=10, tolerance=0.0)
    np.testing.assert_array_equal(reached, STARTS)
