"""What large weights cost: L1, L2 and their sum.

strengths is (l1, l2) of l1 sum |w| + l2 / 2 sum w^2; prox(w, step) is the v that minimises
|v - w|^2 / (2 step) + value(v). L2 alone has a gradient everywhere, L1 alone can be truncated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_not_negative


class Penalty(Protocol):
    """What every penalty has."""

    @property
    def strengths(self) -> tuple[float, float]:
        """(l1, l2) of l1 sum |w| + l2 / 2 sum w^2."""

    def value(self, weights: Floats) -> float:
        """Return what weights cost."""

    def prox(self, weights: Floats, step: float) -> Floats:
        """Return argmin over v of |v - weights|^2 / (2 step) + value(v)."""


def _soft(weights: Floats, amount: float) -> Floats:
    result: Floats = np.sign(weights) * np.maximum(np.abs(weights) - amount, 0.0)
    return result


@dataclass(frozen=True)
class L1:
    """strength * sum |w_k|: makes weights exactly zero."""

    strength: float

    def __post_init__(self) -> None:
        """Check the strength."""
        check_not_negative("l1", self.strength)

    @property
    def strengths(self) -> tuple[float, float]:
        """(strength, 0)."""
        return float(self.strength), 0.0

    def value(self, weights: Floats) -> float:
        """Return strength * sum |w_k|."""
        return self.strength * float(np.abs(weights).sum())

    def prox(self, weights: Floats, step: float) -> Floats:
        """Shrink every weight towards zero by step * strength."""
        return _soft(weights, step * self.strength)

    def truncate(self, weights: Floats, step: float, threshold: float) -> Floats:
        """Shrink as prox does, but only the weights of size threshold or less.

        Source: Langford, Li & Zhang 2009, "Sparse Online Learning via Truncated Gradient", JMLR 10, eq. 4.
        """
        return np.where(np.abs(weights) <= threshold, self.prox(weights, step), weights)


@dataclass(frozen=True)
class L2:
    """strength / 2 * sum w_k^2: keeps weights small, none zero."""

    strength: float

    def __post_init__(self) -> None:
        """Check the strength."""
        check_not_negative("l2", self.strength)

    @property
    def strengths(self) -> tuple[float, float]:
        """(0, strength)."""
        return 0.0, float(self.strength)

    def value(self, weights: Floats) -> float:
        """Return strength / 2 * sum w_k^2."""
        return 0.5 * self.strength * float(weights @ weights)

    def gradient(self, weights: Floats) -> Floats:
        """Return strength * w."""
        return self.strength * weights

    def prox(self, weights: Floats, step: float) -> Floats:
        """Divide every weight by 1 + step * strength."""
        return weights / (1.0 + step * self.strength)


@dataclass(frozen=True)
class ElasticNet:
    """l1 * sum |w_k| + l2 / 2 * sum w_k^2: few weights, and those of features that agree stay alike."""

    l1: float
    l2: float

    def __post_init__(self) -> None:
        """Check the strengths."""
        check_not_negative("l1", self.l1)
        check_not_negative("l2", self.l2)

    @property
    def strengths(self) -> tuple[float, float]:
        """(l1, l2)."""
        return float(self.l1), float(self.l2)

    def value(self, weights: Floats) -> float:
        """Return l1 * sum |w_k| + l2 / 2 * sum w_k^2."""
        return self.l1 * float(np.abs(weights).sum()) + 0.5 * self.l2 * float(weights @ weights)

    def prox(self, weights: Floats, step: float) -> Floats:
        """Shrink every weight by step * l1, then divide it by 1 + step * l2."""
        return _soft(weights, step * self.l1) / (1.0 + step * self.l2)
