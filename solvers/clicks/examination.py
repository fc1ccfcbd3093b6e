"""Examination: how likely a position is looked at, relative to the first one, and which positions that is known of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.core.arrays import Floats, Ints, Mask, as_ints
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.errors import ParameterError

LEVEL_WIDTH = 1.959963984540054
"""Standard errors from the middle of a normal distribution to the ends of its middle 95 %."""

KNOWN, NOT_TOLD, UNKNOWN = "known", "not told apart", "unknown"
WIDEST = 2.0
"""The largest ratio of the ends of an interval whose value is told apart: it is off by up to 1.4 times."""

CLIP = 10.0
"""The largest weight of a click."""
DEGREE = 3
"""Of the polynomial that examination is drawn to."""
LIMITS = (1e-6, 10.0)
"""Of the variance of deviations from it."""


@dataclass(frozen=True, eq=False)
class Examination:
    """Examination by position, (n_positions,) each, in rising order of positions.

    value           relative to the first position, or as it was given
    standard_error  of value; 0 at the first position and where it was given
    known           whether the log compares it with the first (`known_positions`); elsewhere value serves the
                    prediction of clicks only

    Examples
    --------
    >>> Examination.given({1: 1.0, 2: 0.5}).at(np.array([2, 1, 7]))
    array([0.5, 1. , 0.5])
    """

    position: Ints
    value: Floats
    standard_error: Floats
    known: Mask

    @classmethod
    def given(cls, values: Mapping[int, float]) -> Self:
        """Return examination that is known from elsewhere, such as from an experiment.

        Raises ParameterError unless values are positive.
        """
        for position, value in values.items():
            check_positive(f"propensities[{position}]", value)
        if not values:
            raise ParameterError("propensities={}: give the examination of one position at least, such as {1: 1.0}.")
        places, fixed = np.array(sorted(values)), np.ones(len(values), dtype=bool)
        return cls(as_ints(places), np.array([float(values[place]) for place in places]), np.zeros(len(places)), fixed)

    def at(self, position: Ints) -> Floats:
        """Return the values at positions; between positions of the log along the logarithm, beyond them the last."""
        return np.interp(np.log(np.maximum(position, 0.5)), np.log(np.maximum(self.position, 0.5)), self.value)

    @property
    def low(self) -> Floats:
        """The lower ends of 95 % intervals, symmetric on a logarithmic scale if value is positive; NaN if unknown."""
        return self._end(-LEVEL_WIDTH)

    @property
    def high(self) -> Floats:
        """The upper ends of the intervals."""
        return self._end(LEVEL_WIDTH)

    @property
    def estimable(self) -> Mask:
        """Whether a position is known and its interval is narrow: high is at most twice low.

        Others are not told apart: a value between the two would fit about as well. That is so where few clicks tell it,
        and with trust bias where the documents of a position are so alike that its slope passes for its offset.
        """
        return np.asarray(self.known & (self.value > 0.0) & (self.high <= WIDEST * np.nan_to_num(self.low)))

    @property
    def status(self) -> list[str]:
        """What is known of each position: "known", "not told apart" or "unknown"."""
        pairs = zip(self.estimable, self.known, strict=True)
        return [KNOWN if clear else NOT_TOLD if is_known else UNKNOWN for clear, is_known in pairs]

    def _end(self, width: float) -> Floats:
        step, positive = width * self.standard_error, self.value > 0.0
        relative = np.divide(step, self.value, out=np.zeros_like(self.value), where=positive)
        return np.where(self.known, np.where(positive, self.value * np.exp(relative), self.value + step), np.nan)


def known_positions(counts: ClickCounts, seeds: Mask, links: int = 1) -> Mask:
    """Return which positions, in the order of np.unique(counts.position), the log compares with the seeds.

    Examination and attraction are known up to a factor in each component of the graph whose nodes are positions and
    whose edges are the pairs of query and document that were seen at both ends and clicked: the attraction of such a
    pair cancels from the ratio of its clicks. A pair without clicks joins nothing, since no attraction explains its
    clicks at any examination. A model of `links` unknowns a position needs as many pairs to join one.
    """
    position = as_ints(np.unique(counts.position, return_inverse=True)[1])
    clicked = counts.by_pair(counts.clicks)[counts.pair] > 0.0
    known = seeds.copy()
    while True:
        joined = (counts.by_pair((known[position] & clicked).astype(float)) > 0.0)[counts.pair]
        grown = seeds | (sums(position, (joined & clicked).astype(float), len(known)) >= links)
        if (grown == known).all():
            return known
        known |= grown


def smoothed(position: Floats, values: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the smooth values, (n,), and the information that the curve adds to that on their logarithms, (n, n).

    The logarithm of examination is a polynomial of that of the position, 0 at the first one, and a deviation, whose
    variance the log tells: where positions deviate by more than their errors, as at the end of a page, they are hardly
    drawn to the curve. Source: Searle, Casella & McCulloch 1992, "Variance Components", restricted maximum likelihood
    and best linear unbiased prediction.

    position    (n,) relative to the first, which is not among them
    values      (n,) examination, above 0
    covariance  (n, n) of its logarithms
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize_scalar  # takes a tenth of a second to import

    n, degree = len(values), min(DEGREE, len(values) - 2)
    if degree < 1:
        return values, np.zeros((n, n))
    X = np.log(position)[:, None] ** np.arange(1, degree + 1)
    X = np.linalg.qr(X)[0]
    y, V = np.log(values), covariance

    def loss(log_variance: float) -> float:
        spread = cho_factor(V + np.exp(log_variance) * np.eye(n), lower=True)
        inner = X.T @ cho_solve(spread, X)
        rest = y - X @ np.linalg.solve(inner, X.T @ cho_solve(spread, y))
        determinants = 2.0 * np.log(np.diag(spread[0])).sum() + np.linalg.slogdet(inner)[1]
        return float(determinants + rest @ cho_solve(spread, rest))

    variance = np.exp(minimize_scalar(loss, bounds=np.log(LIMITS), method="bounded").x)
    added = (np.eye(n) - X @ X.T) / variance
    # (V^-1 + added)^-1 V^-1 y without the inverse of V
    return np.exp(np.linalg.solve(np.eye(n) + V @ added, y)), added
