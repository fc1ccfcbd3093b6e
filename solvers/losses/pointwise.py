"""Losses of single documents: logistic and epsilon-insensitive, of the score and a target.

    loss = min over b of the mean over documents of  l(s_i + b, t_i),   each document counting as often as its query

b is the intercept: it changes no ranking, so it is not penalised but set to the best number for any scores; the
gradient of that minimum by score is the partial one. centre="query" first subtracts from the scores the mean of their
query, as if from its features: then differences between queries have no effect.

z = s + b a document's prediction     t  its target     a  its weight, the weights of all summing to 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, as_floats
from ranktune.solvers.core.checks import check_choice, check_not_negative
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.centring import without_level, without_share
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Evaluate

CENTRES = ("query", "none")
GAINS = ("linear", "exponential")

LOGISTIC, INSENSITIVE, SQUARED_INSENSITIVE = 0, 1, 2


class PointwiseLoss:
    """A loss of single documents; subclasses differ in l and in their targets."""

    kind: ClassVar[int]
    centre: str

    def targets(self, queries: Queries) -> Floats:
        """Return the target of each document, (n_documents,)."""
        raise NotImplementedError

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,). Cost: a few evaluations of l a document."""
        return self.prepared(queries)(scores)

    def prepared(self, queries: Queries) -> Evaluate:
        """Return value_and_gradient on queries, with the targets computed once."""
        target, weights = as_floats(self.targets(queries)), queries.weight_of_document
        weights = weights / weights.sum()
        shape = float(getattr(self, "epsilon", 0.0)), float(getattr(self, "rounding", 0.0))
        level = np.full(1, np.nan)  # where the search for the intercept starts: where it ended last

        def evaluate(scores: Floats) -> tuple[float, Floats]:
            slope = np.empty(len(target))
            centred = without_level(scores, queries) if self.centre == "query" else np.array(scores, dtype=np.float64)
            value = _best_intercept(self.kind, *shape, centred, target, weights, level, slope)
            return value, without_share(slope, queries) if self.centre == "query" else slope

        return evaluate


@dataclass(frozen=True)
class LogisticLoss(PointwiseLoss):
    """l = log(1 + exp(z)) - t z: cross entropy with relevance t, 0 for the lowest grade of the data, 1 for the highest.

    gain "linear" spaces the grades between evenly by their numbers, "exponential" by 2^grade.
    """

    kind: ClassVar[int] = LOGISTIC
    gain: str = "linear"
    centre: str = "none"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_choice("gain", self.gain, GAINS)
        check_choice("centre", self.centre, CENTRES)

    def targets(self, queries: Queries) -> Floats:
        """Return the relevance of each document, (n_documents,), in [0, 1]."""
        grades = queries.grades
        low, high = float(grades.min()), float(grades.max())
        if low == high:
            return np.full(len(grades), 0.5)
        if self.gain == "linear":
            return (grades - low) / (high - low)
        # 2^y - 2^low over 2^high - 2^low, written so that no power overflows
        relevance: Floats = (np.exp2(grades - high) - np.exp2(low - high)) / (1.0 - np.exp2(low - high))
        return relevance


class _Insensitive(PointwiseLoss):
    """The targets of both epsilon-insensitive losses."""

    def targets(self, queries: Queries) -> Floats:
        """Return the grades, (n_documents,), less the mean of their query under centre="query"."""
        return without_level(queries.grades, queries) if self.centre == "query" else queries.grades

    def centred_targets(self, queries: Queries) -> Floats:
        """Return the targets less their weighted mean, which is 0 under centre="query"."""
        targets = self.targets(queries)
        weights = queries.weight_of_document
        return targets if self.centre == "query" else targets - float(np.average(targets, weights=weights))


@dataclass(frozen=True)
class SquaredInsensitiveLoss(_Insensitive):
    """l = max(0, |z - t| - epsilon)^2."""

    kind: ClassVar[int] = SQUARED_INSENSITIVE
    epsilon: float = 0.1
    centre: str = "none"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_not_negative("epsilon", self.epsilon)
        check_choice("centre", self.centre, CENTRES)


@dataclass(frozen=True)
class InsensitiveLoss(_Insensitive):
    """l = max(0, |z - t| - epsilon), its kink rounded over a width: e^2 / (2 rounding) for an excess e up to rounding.

    From there on e - rounding / 2, so the rounded loss is less than the sharp one by rounding / 2 at most. Smooth
    losses suit L-BFGS, and its memory: the dual of the sharp one would take rows that are centred, a copy of X.
    """

    kind: ClassVar[int] = INSENSITIVE
    epsilon: float = 0.1
    rounding: float = 0.01
    centre: str = "none"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_not_negative("epsilon", self.epsilon)
        check_not_negative("rounding", self.rounding)
        check_choice("centre", self.centre, CENTRES)


@compiled
def _terms(kind: int, epsilon: float, rounding: float, z: float, t: float) -> tuple[float, float, float]:
    """Return l and its first and second derivative by z."""
    if kind == LOGISTIC:
        small = np.exp(-abs(z))  # never overflows
        share = 1.0 / (1.0 + small) if z > 0.0 else small / (1.0 + small)
        return max(z, 0.0) - t * z + np.log1p(small), share - t, share * (1.0 - share)
    off = z - t
    excess, sign = abs(off) - epsilon, 1.0 if off > 0.0 else -1.0
    if not excess > 0.0:
        return 0.0, 0.0, 0.0
    if kind == SQUARED_INSENSITIVE:
        return excess * excess, 2.0 * sign * excess, 2.0
    if excess < rounding:
        return 0.5 * excess * excess / rounding, sign * excess / rounding, 1.0 / rounding
    return excess - 0.5 * rounding, sign, 0.0


@compiled
def _evaluate(
    kind: int, epsilon: float, rounding: float, s: Floats, b: float, t: Floats, a: Floats, slope: Floats
) -> tuple[float, float, float]:
    """Return the mean loss at intercept b and its derivatives by b; overwrite slope with the derivative by score."""
    value, first, second = 0.0, 0.0, 0.0
    for i in range(len(s)):
        v, d, dd = _terms(kind, epsilon, rounding, s[i] + b, t[i])
        value += a[i] * v
        slope[i] = a[i] * d
        first += slope[i]
        second += a[i] * dd
    return value, first, second


@compiled
def _best_intercept(
    kind: int, epsilon: float, rounding: float, s: Floats, t: Floats, a: Floats, level: Floats, slope: Floats
) -> float:
    """Return the mean loss at the best intercept, and overwrite slope with the derivative by score there.

    Newton's method, kept inside the bracket that the signs of the derivative give. level is the mean prediction to
    start from, or NaN, and is overwritten with that at the end.
    """
    mean_s, mean_t = 0.0, 0.0
    for i in range(len(s)):
        mean_s += a[i] * s[i]
        mean_t += a[i] * t[i]
    if np.isnan(level[0]):
        level[0] = np.log(mean_t / (1.0 - mean_t)) if kind == LOGISTIC else mean_t
    b = level[0] - mean_s
    low, high, reach = -np.inf, np.inf, 1.0
    value = 0.0
    for _ in range(100):
        value, first, second = _evaluate(kind, epsilon, rounding, s, b, t, a, slope)
        if not abs(first) > 1e-12:
            break
        if first < 0.0:
            low = b
        else:
            high = b
        moved = b - first / second if second > 0.0 else np.nan
        if not (low < moved < high):
            moved = 0.5 * (low + high)
            if not np.isfinite(moved):
                moved = b + reach if first < 0.0 else b - reach
                reach *= 2.0
        if abs(moved - b) <= 1e-12 * (1.0 + abs(b)):
            break
        b = moved
    level[0] = b + mean_s
    return value
