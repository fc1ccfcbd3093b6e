"""Embedded rows of two numbers and one category of three, and a posterior over some of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior

OWNER = np.array([0, 1, 2, 2, 2])
"""The axis of each embedded column."""


def embedded(n: int, seed: int) -> Floats:
    generator = np.random.default_rng(seed)
    corner = np.eye(3)[generator.integers(0, 3, n)] * np.sqrt(0.5)
    return np.hstack([generator.random((n, 2)), corner])


def posterior(scale: float = 1.2, noise: float = 0.02) -> tuple[Posterior, Floats, Floats]:
    E = embedded(14, 0)
    y = np.sin(5 * E[:, 0]) + E[:, 2]
    hyperparameters = Hyperparameters(np.array([3.0, 0.5, 1.0]), scale, noise)
    return Posterior.of(E, y, np.linspace(0.5, 2, 14), hyperparameters, OWNER), E, y


@dataclass(frozen=True, eq=False)
class Bowl:
    """A surface with its maximum, 0, at one embedded row."""

    top: Floats

    def values(self, E: Floats) -> Floats:
        result: Floats = -((E - self.top) ** 2).sum(axis=1)
        return result

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        return self.values(E), -2 * (E - self.top)


def check_gradient(values: Callable[[Floats], Floats], gradients: Floats, rows: Floats, h: float, **close: Any) -> None:
    """Compare the gradient at each row with central differences of the values."""
    for k, step in enumerate(h * np.eye(rows.shape[1])):
        np.testing.assert_allclose(gradients[:, k], (values(rows + step) - values(rows - step)) / (2 * h), **close)
