"""Embedded rows of two numbers and one category of three, and a posterior over some of them."""

from __future__ import annotations

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
