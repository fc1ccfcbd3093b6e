"""Rates of clicks: by document or by position, and clicks over expected clicks (COEC).

They are what the position-based model is compared with. A group of impressions has the rate expected * factor, where
the expectation is that of all impressions, or of COEC that of the positions where the group was shown. Source of COEC:
Zhang & Jones 2007, "Comparing Click Logs and Editorial Labels for Training Query Rewriting".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.stats import gamma

from ranktune.solvers.clicks.counts import Counts, sums
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.fitted import ENDS, judged
from ranktune.solvers.clicks.judgments import Judgments
from ranktune.solvers.clicks.shrinkage import shrunken, strength_of
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError

Group = Literal["position", "pair"]


@dataclass(frozen=True)
class ClickRate:
    """The rate of clicks (CTR) of a group of impressions.

    Parameters
    ----------
    by : {"pair", "position"}, default="pair"
        What a group is: a query and a document, whatever the position; or a position. Only pairs have judgments.
    shrink : bool, default=True
        Whether rates of groups are shrunken to that of all, as strongly as the log says.
    """

    by: Group = "pair"
    shrink: bool = True

    def fit(self, counts: Counts) -> FittedRates:
        """Return the rates of a log."""
        position = np.unique(counts.position)
        mean = counts.clicks.sum() / counts.shown.sum()
        return FittedRates(counts, self.by, position, np.full(len(position), mean), mean, self.shrink)


@dataclass(frozen=True)
class COEC:
    """Clicks over expected clicks of a query and a document: expected are those of its positions' rates.

    Parameters
    ----------
    shrink : bool, default=True
        Whether ratios are shrunken to 1, and rates of positions to that of all, as strongly as the log says; without it
        they are clicks over expected clicks, and 0 where none are expected.
    """

    shrink: bool = True

    def fit(self, counts: Counts) -> FittedRates:
        """Return the ratios of a log."""
        rates = ClickRate("position", self.shrink).fit(counts)
        value = rates.unit * rates.factor
        return FittedRates(counts, "pair", rates.position, value, 1.0, self.shrink)


@dataclass(frozen=True, eq=False)
class FittedRates:
    """Rates of groups: those of positions, (n_positions,), times the factor of the group.

    unit is what a factor of 1 is among judgments.
    """

    counts: Counts
    by: Group
    position: Ints
    rate: Floats
    unit: float
    shrink: bool

    @cached_property
    def totals(self) -> tuple[Floats, Floats, float]:
        """Clicks and expected clicks of groups, and the strength of their shrinkage."""
        group = self._group(self.counts, self.counts.pair)
        expected = self.counts.shown * self._rates(self.counts)
        clicks, expected = (sums(group, each, int(group.max()) + 1) for each in (self.counts.clicks, expected))
        return clicks, expected, strength_of(clicks, expected) if self.shrink else 0.0

    @property
    def factor(self) -> Floats:
        """The factor of each group, (n_groups,)."""
        return shrunken(*self.totals)

    @property
    def examination(self) -> Examination:
        """The rates of positions relative to the first, whatever is shown there; 1 where the model has none."""
        clicks = sums(self._place(self.counts), self.counts.clicks, len(self.position))
        rate, exact = self.rate / self.rate[0], np.zeros(len(self.position))
        if self.by == "position":
            rate = self.factor / self.factor[0]
        if np.ptp(rate) > 0.0:
            exact = rate * np.sqrt(1.0 / np.maximum(clicks, 0.5) + 1.0 / max(clicks[0], 0.5))
            exact[0] = 0.0
        return Examination(self.position, rate, exact, np.ones(len(rate), dtype=bool))

    def click_probability(self, counts: Counts) -> Floats:
        """Return the probability of a click for each row of counts; a new group has the factor 1."""
        pair = self.counts.places_of(counts)[2]
        group = self._group(counts, pair)
        return np.clip(self._rates(counts) * np.where(group >= 0, self.factor[group], 1.0), 0.0, 1.0)

    def judgments(self) -> Judgments:
        """Return the judgments of all pairs. Raises ParameterError where groups are no pairs."""
        if self.by != "pair":
            raise ParameterError(f"ClickRate(by='{self.by}') tells no documents apart. Use by='pair' for judgments.")
        clicks, expected, strength = self.totals
        relevance, exposure = self.unit * self.factor, expected + strength
        low, high = (
            self.unit * gamma.ppf(end, np.maximum(clicks + strength, 0.5)) / np.maximum(exposure, 1e-12) for end in ENDS
        )
        known = np.ones(len(self.counts.query), dtype=bool)
        return judged(
            self.counts, known, relevance, low, high, expected / self.rate[0], expected / np.maximum(exposure, 1e-12)
        )

    def _place(self, counts: Counts) -> Ints:
        """Return the number of the position of each row, -1 for a new one."""
        found = np.minimum(np.searchsorted(self.position, counts.position), len(self.position) - 1)
        return np.where(self.position[found] == counts.position, found, -1)

    def _group(self, counts: Counts, pair: Ints) -> Ints:
        """Return the number of the group of each row, -1 for a new one."""
        return pair if self.by == "pair" else self._place(counts)

    def _rates(self, counts: Counts) -> Floats:
        """Return the rate of the position of each row, without its factor; between known positions interpolated."""
        return np.interp(counts.position, self.position, self.rate)
