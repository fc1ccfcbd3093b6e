"""The trust region around the incumbent, whose side and share of decisions follow the success of recent trials.

Both are recomputed from all trials each time, so there is no state. The side doubles after an improvement, halves after
several trials without one, and restarts at the initial side when it gets too small. The share is that of the rate of
improvements by trials near the incumbent of their time, beside the rate of those far from it: in a long valley nearly
all improvements are near, among many local optima hardly any.
Source: Eriksson et al. 2019, "Scalable Global Optimization via Local Bayesian Optimization" (TuRBO); Wan et al. 2021,
"Think Global and Act Local" (Casmopolitan), for categories: a bounded number of them may differ from the centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.encoding import SpaceEncoding

INITIAL_SIDE, MIN_SIDE = 0.8, 0.05
"""Initial side, as a share of a number's range, and the side below which the region restarts."""
MIN_IMPROVEMENT = 1e-3
"""Smallest improvement that counts as a success, in standard deviations of the gains before."""

FIRST_COUNTED = 10
"""Trials before those that count for the share: of the first, many improve by chance."""
NEAR = 0.25
"""Squared distance from the incumbent up to which a trial is near it, as a share of that of two random ones."""
FORGETTING = 0.95
"""Weight of a trial, relative to that of the next one."""
PRIOR_IMPROVEMENTS, PRIOR_TRIALS = 0.5, 4.0
"""Improvements and trials, near and far each, that are assumed before any are counted."""
MIN_SHARE, MAX_SHARE = 0.1, 0.9
"""Smallest and largest share of decisions restricted to the trust region."""


def share_after(encoding: SpaceEncoding, rows: Floats, gains: Floats) -> float:
    """Return the share of decisions for the region after trials at rows, (n, d), in the order in which they were made.

    It is 0.5 until the trials give a rate.
    """
    n = len(gains)
    if n <= FIRST_COUNTED:
        return 0.5
    E = encoding.embed(rows)
    highest = np.maximum.accumulate(gains)
    is_record = np.r_[True, gains[1:] > highest[:-1]]
    incumbents = np.maximum.accumulate(np.where(is_record, np.arange(n), 0))[:-1]  # before each trial but the first
    squares = ((E[1:] - E[incumbents]) ** 2).sum(axis=1)
    axes = [encoding.axes[j] for j in encoding.varying]
    # The expected squared distance of two embedded random rows, if all parameters are active.
    expected = sum(1.0 - 1.0 / axis.choices if axis.choices else 1.0 / 6.0 for axis in axes)
    near = squares <= NEAR * expected
    improves = gains[1:] > highest[:-1] + MIN_IMPROVEMENT * _spreads_before(gains)[1:]
    weights = FORGETTING ** np.arange(n - 2, -1, -1.0)
    weights[: FIRST_COUNTED - 1] = 0.0
    rates = [
        (PRIOR_IMPROVEMENTS + weights[some & improves].sum()) / (PRIOR_TRIALS + weights[some].sum())
        for some in (near, ~near)
    ]
    return float(np.clip(rates[0] / (rates[0] + rates[1]), MIN_SHARE, MAX_SHARE))


def side_after(gains: Floats, patience: int) -> float:
    """Return the side of the region after trials with gains, (n,), finite, in the order in which they were made."""
    side, best, failures = INITIAL_SIDE, -np.inf, 0
    for gain, least in zip(gains.tolist(), (MIN_IMPROVEMENT * _spreads_before(gains)).tolist(), strict=True):
        if gain > best + least:
            side, failures = min(2.0 * side, INITIAL_SIDE), 0
        else:
            failures += 1
        best = max(best, gain)
        if failures == patience:
            side, failures = (0.5 * side if 0.5 * side >= MIN_SIDE else INITIAL_SIDE), 0
    return side


def _spreads_before(gains: Floats) -> Floats:
    """Return the standard deviation of the gains before each gain, (n,); 0 before the third."""
    unit = max(float(np.abs(gains).max(initial=0.0)), 1e-300)
    scaled = gains / unit
    centred = scaled - scaled.mean() if len(gains) else scaled
    count = np.maximum(np.arange(len(gains)), 1)
    first, second = (np.cumsum(np.r_[0.0, centred[:-1] ** power])[: len(gains)] / count for power in (1, 2))
    spreads: Floats = unit * np.sqrt(np.maximum(second - first * first, 0.0))
    return spreads


@dataclass(frozen=True, eq=False)
class TrustRegion:
    """Rows with numbers in [low, high], (d,) each, and at most some changes of categories from the centre.

    centre  (d,) full row      fixed  (d,) categories that may not change      counted  (d,) categories that may
    """

    centre: Floats
    low: Floats
    high: Floats
    fixed: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    changes: int

    @classmethod
    def around(
        cls, encoding: SpaceEncoding, centre: Floats, side: float = np.inf, weights: Floats | float = 1.0
    ) -> Self:
        """Return the region around a full row, given the inverse squared lengthscales of the varying axes.

        Parameters that are inactive in the centre are free, and its branch is fixed: it is all that an infinite side
        leaves fixed.
        """
        active = encoding.activity(centre[None])[0]
        category = np.array([axis.choices > 0 for axis in encoding.axes])
        fixed = active & encoding.branching
        lengths = np.ones(len(category))
        lengths[list(encoding.varying)] = 1.0 / np.sqrt(weights)
        numbers = active & ~category
        lengths /= np.exp(np.log(lengths[numbers]).mean()) if numbers.any() else 1.0
        half = np.where(numbers, np.maximum(0.5 * side * lengths, 0.5 * MIN_SIDE), np.inf)
        counted = active & category & ~fixed
        changes = max(1, round(min(side, 1.0) * float(counted.sum())))
        low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
        low, high = np.where(category, -np.inf, low), np.where(category, np.inf, high)
        return cls(centre, low, high, fixed, counted, changes)

    def holds(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which full rows are in the region, (m,)."""
        inside = ((rows >= self.low - 1e-9) & (rows <= self.high + 1e-9)).all(axis=1)
        stays = (rows[:, self.fixed] == self.centre[self.fixed]).all(axis=1)
        differ = ((rows != self.centre) & self.counted).sum(axis=1)
        return np.asarray(inside & stays & (differ <= self.changes))

    def within(self, rows: Floats, generator: np.random.Generator) -> Floats:
        """Return full rows moved into the region."""
        rows = np.clip(rows, self.low, self.high)
        rows[:, self.fixed] = self.centre[self.fixed]
        differs = (rows != self.centre) & self.counted
        ranks = np.where(differs, generator.random(rows.shape), np.inf).argsort(axis=1).argsort(axis=1)
        return np.where(differs & (ranks >= self.changes), self.centre, rows)

    def spread(self, rows: Floats, generator: np.random.Generator) -> Floats:
        """Return full rows that fill the cube as rows that fill the region."""
        numbers = np.isfinite(self.low)
        low, high = np.where(numbers, self.low, 0.0), np.where(numbers, self.high, 1.0)
        return self.within(np.where(numbers, low + rows * (high - low), rows), generator)
