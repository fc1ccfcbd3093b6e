"""Losses of single documents: logistic and epsilon-insensitive, of the score and a target.

    loss = min over b of the mean over documents of  l(s_i + b, t_i),   each document counting as often as its query

b is the intercept: it changes no ranking, so it is not penalised but set to the best number for any scores; the
gradient of that minimum by score is the partial one. centre="query" first subtracts from the scores the mean of their
query, as if from its features: then differences between queries have no effect.

z = s + b a document's prediction     t  its target     a  its weight, the weights of all summing to 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, as_floats
from ranktune.solvers.core.checks import check_choice, check_not_negative
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level, without_share
from ranktune.solvers.losses.base import NO_GRADES, Composable, Evaluate
from ranktune.solvers.metrics.judgements import deciding

CENTRES = ("query", "none")
GAINS = ("linear", "exponential")

LOGISTIC, INSENSITIVE, SQUARED_INSENSITIVE = 0, 1, 2

EDGE = 1e-15
"""Largest excess of an epsilon-insensitive loss that counts as none, relative to what it is the difference of."""


ROUNDING = 1e-12
"""A derivative, and a change of the intercept relative to it, that count as 0."""

MAX_STEPS = 100


class PointwiseLoss(Composable):
    """A loss of single documents; subclasses differ in l and in their targets."""

    kind: ClassVar[int]
    centre: str

    def targets(self, queries: Queries, others: Floats = NO_GRADES) -> Floats:
        """Return the target of each document, (n_documents,), where further ones have the grades others."""
        raise NotImplementedError

    def start(self, score: float, target: float) -> float:
        """Return the intercept with which the mean prediction is the mean target."""
        return target - score

    def weight_of(self, queries: Queries) -> float:
        """Return the weight of the documents."""
        return float(queries.weight_of_document.sum())

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,). Cost: a few evaluations of l a document."""
        return self.prepared(queries)(scores)

    def prepared(self, queries: Queries, others: Floats = NO_GRADES) -> Evaluate:
        """Return value_and_gradient on queries, with the targets computed once."""
        terms, level = self.at_intercept(queries, others), np.nan  # of predictions, at the end of the last search

        def evaluate(scores: Floats) -> tuple[float, Floats]:
            nonlocal level
            score, target = terms.means(scores)
            start = self.start(score, target) if np.isnan(level) else level - score
            intercept = best_intercept(lambda b: terms.by_intercept(scores, b), start)
            level = intercept + score
            return terms.value_and_gradient(scores, intercept)

        return evaluate

    def at_intercept(self, queries: Queries, others: Floats = NO_GRADES) -> PointwiseTerms:
        """Return the loss on queries as a function of scores and of the intercept."""
        return PointwiseTerms(self, queries, as_floats(self.targets(queries, others)))


class PointwiseTerms:
    """The mean of l over the documents of queries, at any intercept; the last evaluation is kept."""

    def __init__(self, loss: PointwiseLoss, queries: Queries, targets: Floats) -> None:
        self._queries, self._targets, self._by_query = queries, targets, loss.centre == "query"
        weights = queries.weight_of_document
        self._weights = weights / weights.sum()
        self._kind = loss.kind, float(getattr(loss, "epsilon", 0.0)), float(getattr(loss, "rounding", 0.0))
        self._given: Floats | None = None
        self._centred = self._slope = np.empty(0)
        self._last: tuple[float, float, float, float] | None = None

    def means(self, scores: Floats) -> tuple[float, float]:
        """Return the mean score, centred where the loss is, and the mean target."""
        self._given = None  # the array may be the last one, with other scores
        self._take(scores)
        return float(self._weights @ self._centred), float(self._weights @ self._targets)

    def by_intercept(self, scores: Floats, intercept: float) -> tuple[float, float]:
        """Return the first and second derivative by the intercept."""
        _, first, second = self._evaluated(scores, intercept)
        return first, second

    def value_and_gradient(self, scores: Floats, intercept: float) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,)."""
        value, _, _ = self._evaluated(scores, intercept)
        return value, without_share(self._slope, self._queries) if self._by_query else self._slope.copy()

    def _evaluated(self, scores: Floats, intercept: float) -> tuple[float, float, float]:
        """Return the loss and its derivatives by the intercept, and set the derivatives by centred score."""
        self._take(scores)
        if self._last is None or self._last[0] != intercept:
            result = _evaluate(*self._kind, self._centred, intercept, self._targets, self._weights, self._slope)
            self._last = intercept, *result
        return self._last[1:]

    def _take(self, scores: Floats) -> None:
        if scores is not self._given:
            self._given, self._last, self._slope = scores, None, np.empty(len(scores))
            self._centred = without_level(scores, self._queries) if self._by_query else as_floats(scores)


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

    def start(self, score: float, target: float) -> float:
        """Return the intercept with which a mean score has the odds of the mean relevance."""
        return float(np.log(target / (1.0 - target))) - score

    def targets(self, queries: Queries, others: Floats = NO_GRADES) -> Floats:
        """Return the relevance of each document, (n_documents,), in [0, 1]."""
        grades = queries.grades
        extremes = deciding(np.append(grades, others))
        low, high = float(extremes.min()), float(extremes.max())
        if low == high:
            return np.full(len(grades), 0.5)
        if self.gain == "linear":
            return (grades - low) / (high - low)
        # 2^y - 2^low over 2^high - 2^low, written so that no power overflows
        relevance: Floats = (np.exp2(grades - high) - np.exp2(low - high)) / (1.0 - np.exp2(low - high))
        return relevance


class _Insensitive(PointwiseLoss):
    """The targets of both epsilon-insensitive losses."""

    unit: float

    def targets(self, queries: Queries, others: Floats = NO_GRADES) -> Floats:
        """Return the grades in units, (n_documents,), less the mean of their query under centre="query"."""
        grades = queries.grades / self.unit
        return without_level(grades, queries) if self.centre == "query" else grades


@dataclass(frozen=True)
class SquaredInsensitiveLoss(_Insensitive):
    """l = max(0, |z - t| - epsilon)^2, t in units of grades."""

    kind: ClassVar[int] = SQUARED_INSENSITIVE
    optimizers: ClassVar[tuple[str, ...]] = ("newton",)
    epsilon: float = 0.1
    centre: str = "none"
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_not_negative("epsilon", self.epsilon)
        check_choice("centre", self.centre, CENTRES)


@dataclass(frozen=True)
class InsensitiveLoss(_Insensitive):
    """l = max(0, |z - t| - epsilon), rounded at its kink: e^2 / (2 rounding) for an excess e up to rounding.

    From there on e - rounding / 2, so the rounded loss is less than the exact one by rounding / 2 at most. Smooth
    losses suit L-BFGS and need less memory: the dual of the exact one takes centred rows, a copy of X.
    """

    kind: ClassVar[int] = INSENSITIVE
    epsilon: float = 0.1
    rounding: float = 0.01
    centre: str = "none"
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_not_negative("epsilon", self.epsilon)
        check_not_negative("rounding", self.rounding)
        check_choice("centre", self.centre, CENTRES)


def best_intercept(derivatives: Callable[[float], tuple[float, float]], start: float) -> float:
    """Return the last number given to derivatives, which returns the first and second one there: the least loss.

    Newton's method, kept inside the bracket that the signs of the first derivative give.
    """
    at, low, high, reach = start, -np.inf, np.inf, 1.0
    for _ in range(MAX_STEPS):
        first, second = derivatives(at)
        if not abs(first) > ROUNDING:
            break
        if first < 0.0:
            low = at
        else:
            high = at
        moved = at - first / second if second > 0.0 else np.nan
        if not (low < moved < high):
            moved = 0.5 * (low + high)
            if not np.isfinite(moved):
                moved = at + reach if first < 0.0 else at - reach
                reach *= 2.0
        if abs(moved - at) <= ROUNDING * (1.0 + abs(at)):
            break
        at = moved
    return at


@inlined
def _terms(kind: int, epsilon: float, rounding: float, z: float, t: float) -> tuple[float, float, float]:
    """Return l and its first and second derivative by z."""
    if kind == LOGISTIC:
        small = np.exp(-abs(z))  # never overflows
        share = 1.0 / (1.0 + small) if z > 0.0 else small / (1.0 + small)
        return max(z, 0.0) - t * z + np.log1p(small), share - t, share * (1.0 - share)
    off = z - t
    excess, sign = abs(off) - epsilon, 1.0 if off > 0.0 else -1.0
    # Two grades that are 2 epsilon apart can both lie on the edge, where an excess is nothing but rounding.
    if not excess > EDGE * (abs(z) + abs(t) + epsilon):
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
