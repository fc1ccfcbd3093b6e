"""Rates of clicks: by document or by position, and clicks over expected clicks (COEC).

They are what the position-based model is compared with. A group of impressions has the rate expected * factor, where
the expectation is that of all impressions, or of COEC that of the positions where the group was shown. Source of COEC:
Zhang & Jones 2007, "Comparing Click Logs and Editorial Labels for Training Query Rewriting".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import gamma

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.fitted import ENDS, judged
from ranktune.solvers.clicks.judgments import Judgments
from ranktune.solvers.clicks.prior import shrunken, strength_of
from ranktune.solvers.core.arrays import Floats, Ints


@dataclass(frozen=True)
class ClickRate:
    """The rate of clicks (CTR) of a query and a document, shrunken to that of all as strongly as the log says."""

    def fit(self, counts: ClickCounts) -> FittedRates:
        """Return the rates of a log."""
        position = np.unique(counts.position)
        mean = counts.clicks.sum() / counts.shown.sum()
        return FittedRates(counts, position, np.full(len(position), mean), mean)


@dataclass(frozen=True)
class COEC:
    """Clicks over expected clicks of a query and a document: expected are those of its positions' rates.

    Ratios are shrunken to 1, and rates of positions to that of all, as strongly as the log says.
    """

    def fit(self, counts: ClickCounts) -> FittedRates:
        """Return the ratios of a log."""
        position, row = np.unique(counts.position, return_inverse=True)
        mean = counts.clicks.sum() / counts.shown.sum()
        clicks, expected = (sums(row, each, len(position)) for each in (counts.clicks, counts.shown * mean))
        return FittedRates(counts, position, mean * shrunken(clicks, expected), 1.0)


@dataclass(frozen=True, eq=False)
class FittedRates:
    """Rates of pairs: those of positions, (n_positions,), times the factor of the pair.

    unit is what a factor of 1 is among judgments.
    """

    counts: ClickCounts
    position: Ints
    rate: Floats
    unit: float

    @cached_property
    def totals(self) -> tuple[Floats, Floats, float]:
        """Clicks and expected clicks of pairs, and the strength of their shrinkage."""
        counts = self.counts
        clicks, expected = counts.by_pair(counts.clicks), counts.by_pair(counts.shown * self._rates(counts))
        return clicks, expected, strength_of(clicks, expected)

    @property
    def factor(self) -> Floats:
        """The factor of each pair, (n_pairs,)."""
        return shrunken(*self.totals)

    @property
    def examination(self) -> Examination:
        """The rates of positions relative to the first, whatever is shown there; 1 where the model has none."""
        clicks = sums(np.searchsorted(self.position, self.counts.position), self.counts.clicks, len(self.position))
        rate, exact = self.rate / self.rate[0], np.zeros(len(self.position))
        if np.ptp(rate) > 0.0:
            exact = rate * np.sqrt(1.0 / np.maximum(clicks, 0.5) + 1.0 / max(clicks[0], 0.5))
            exact[0] = 0.0
        return Examination(self.position, rate, exact, np.ones(len(rate), dtype=bool))

    def click_probability(self, counts: ClickCounts) -> Floats:
        """Return the probability of a click for each row of counts; a new pair has the factor 1."""
        pair = self.counts.places_of(counts)[2]
        return np.clip(self._rates(counts) * np.where(pair >= 0, self.factor[pair], 1.0), 0.0, 1.0)

    def judgments(self) -> Judgments:
        """Return the judgments of all pairs."""
        clicks, expected, strength = self.totals
        relevance, exposure = self.unit * self.factor, expected + strength
        low, high = (
            self.unit * gamma.ppf(end, np.maximum(clicks + strength, 0.5)) / np.maximum(exposure, 1e-12) for end in ENDS
        )
        is_clear = np.ones(len(self.counts.query), dtype=bool)
        return judged(
            self.counts, is_clear, relevance, low, high, expected / self.rate[0], expected / np.maximum(exposure, 1e-12)
        )

    def _rates(self, counts: ClickCounts) -> Floats:
        """Return the rate of the position of each row, without its factor; between known positions interpolated."""
        return np.interp(counts.position, self.position, self.rate)
