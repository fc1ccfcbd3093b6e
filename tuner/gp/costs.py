"""The expected cost of a trial, and improvement per cost.

n    trials with a known cost        E    (n, D) embedded configurations (ranktune.tuner.gp.encoding)

The logarithm of the seconds is a ridge regression on the embedded row: one intercept a solver and a slope for each
parameter, whose axes are already logarithmic where that fits. It needs few trials and extrapolates safely. The seconds
of a trial that was stopped early are those it used, so a region where trials are stopped early counts as cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.acquisition import Acquisition

MIN_TRIALS = 5
"""Trials with a known cost that the model needs."""
RIDGE = 0.3
"""Penalty of the ridge regression."""
MIN_SECONDS = 1e-3
"""Seconds below which trials count as equally cheap: a suggestion takes longer."""


@dataclass(frozen=True, eq=False)
class LogCost:
    """The logarithm of the expected seconds: linear in E, clipped to the observed range."""

    level: float
    weights: Floats  # (D,)
    low: float
    high: float

    @classmethod
    def of(cls, E: Floats, seconds: Floats) -> Self | None:
        """Return the model of seconds, (n,), NaN where unknown, at E; None for too few trials."""
        known = np.isfinite(seconds) & (seconds > 0.0)
        if np.count_nonzero(known) < MIN_TRIALS:
            return None
        logs, rows = np.log(np.maximum(seconds[known], MIN_SECONDS)), E[known]
        Z, level = rows - rows.mean(axis=0), float(logs.mean())
        weights = np.linalg.solve(Z.T @ Z + RIDGE * np.eye(Z.shape[1]), Z.T @ (logs - level))
        return cls(level - float(rows.mean(axis=0) @ weights), weights, float(logs.min()), float(logs.max()))

    def values(self, E: Floats) -> Floats:
        """Return the logarithm of the expected seconds at rows E, (m,)."""
        expected: Floats = np.clip(self.level + E @ self.weights, self.low, self.high)
        return expected

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the same, and its gradients, (m, D)."""
        expected = self.level + E @ self.weights
        inside = (expected > self.low) & (expected < self.high)
        return np.clip(expected, self.low, self.high), np.where(inside[:, None], self.weights, 0.0)


@dataclass(frozen=True, eq=False)
class ImprovementPerCost:
    """The logarithm of an improvement divided by a power of its cost.

    Power 1 is improvement per second (Snoek et al. 2012, section 3.2), which neglects expensive good configurations;
    power 0 ignores the cost.
    """

    acquisition_function: Acquisition
    cost: LogCost
    power: float

    def values(self, E: Floats) -> Floats:
        """Return the logarithm at rows E, (m,)."""
        return self.acquisition_function.values(E) - self.power * self.cost.values(E)

    def values_and_gradients(self, E: Floats) -> tuple[Floats, Floats]:
        """Return the logarithm at rows E, (m,), and its gradients, (m, D)."""
        values, gradients = self.acquisition_function.values_and_gradients(E)
        costs, slopes = self.cost.values_and_gradients(E)
        return values - self.power * costs, gradients - self.power * slopes
