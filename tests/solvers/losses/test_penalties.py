"""Penalties: their values, gradient and truncation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty

PENALTIES: list[Penalty] = [L1(0.7), L2(1.3), ElasticNet(0.4, 2.0), L1(0.0), L2(0.0)]


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
class TestPenaltyContract:
    """What every penalty keeps."""

    def test_value_is_what_the_strengths_say(self, penalty: Penalty) -> None:
        l1, l2 = penalty.strengths
        w = np.array([1.0, -2.0, 0.0, 0.5])
        assert penalty.value(w) == pytest.approx(l1 * 3.5 + l2 / 2 * (1 + 4 + 0.25), rel=1e-14)
        assert penalty.value(np.zeros(3)) == 0.0


def test_l2_has_the_gradient_of_its_value() -> None:
    w, h = np.array([0.3, -1.0]), 1e-6
    slopes = [(L2(1.7).value(w + m) - L2(1.7).value(w - m)) / (2 * h) for m in np.eye(2) * h]
    np.testing.assert_allclose(L2(1.7).gradient(w), slopes, rtol=1e-8)


def test_truncation_shrinks_small_weights_only() -> None:
    w = np.array([0.05, 0.5, -0.5, 2.0])
    np.testing.assert_allclose(L1(0.1).truncate(w, 1.0, 0.5), [0.0, 0.4, -0.4, 2.0])


@pytest.mark.parametrize("strength", [-1.0, float("nan"), "1"])
def test_strengths_that_cannot_be(strength: Any) -> None:
    makers: list[tuple[Callable[[Any], Penalty], str]] = [
        (L1, "strength"),
        (L2, "strength"),
        (lambda s: ElasticNet(s, 0.0), "l1"),
        (lambda s: ElasticNet(0.0, s), "l2"),
    ]
    for make, name in makers:
        with pytest.raises(ParameterError, match=rf"{name}=.*at least 0"):
            make(strength)
