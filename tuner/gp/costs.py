"""What a trial will cost, learnt from those made, and improvement per cost.

n    trials whose cost is known        E    (n, D) embedded configurations (ranktune.tuner.gp.encoding)

The logarithm of the seconds is taken as linear in the embedded row: what a solver costs by itself, and how that grows
with the logarithm of a regularisation or a number of rounds, which are on such axes. That needs few trials, cannot
run away, and costs nothing beside a Gaussian process. Whatever the end of a trial was, its seconds are what was spent
there: a corner where trials are stopped early is cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.acquisition import Acquisition

MIN_TRIALS = 5
"""Trials with a known cost below which nothing is believed of it."""
RIDGE = 0.3
"""Of the ridge: so many trials' worth of belief that a parameter does not matter."""
MIN_SECONDS = 1e-3
"""Seconds below which trials count as equally cheap: asking for one takes longer."""


@dataclass(frozen=True, eq=False)
class LogCost:
    """The logarithm of the expected seconds, linear in E, between the cheapest and the dearest seen; made by of."""

    level: float
    weights: Floats  # (D,)
    low: float
    high: float

    @classmethod
    def of(cls, E: Floats, seconds: Floats) -> Self | None:
        """Return what seconds, (n,), NaN where not known, tell at E; None where that is too little."""
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

    Power 1 is improvement per second (Snoek et al. 2012, section 3.2), which starves what is dear and best; power 0
    forgets the cost.
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
