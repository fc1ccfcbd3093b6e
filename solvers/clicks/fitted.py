"""A fitted click model: probabilities of clicks, examination with errors, judgments, and the loss on later clicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.information import Precision
from ranktune.solvers.clicks.judgments import KNOWN, ONE_POSITION, UNKNOWN, Judgments
from ranktune.solvers.clicks.prior import Prior
from ranktune.solvers.core.arrays import Floats, Mask
from ranktune.solvers.core.errors import DataError

SURE = 1e-9
"""The loss takes probabilities to be that far from 0 and 1, so that one click cannot make it infinite."""
ENDS = (0.025, 0.975)
"""Shares of the posterior distribution below the ends of intervals."""


class FittedClicks(Protocol):
    """What every click model is once it was fitted."""

    @property
    def examination(self) -> Examination:
        """Examination by position."""

    def click_probability(self, counts: ClickCounts) -> Floats:
        """Return the probability of a click for each row of counts, also of another log."""

    def judgments(self) -> Judgments:
        """Return the judgments of the pairs of the log that it was fitted to."""


class ClickModel(Protocol):
    """What every click model is before."""

    def fit(self, counts: ClickCounts) -> FittedClicks:
        """Return the fitted model."""


def check_shares(counts: ClickCounts) -> None:
    """Raise DataError unless clicks are shares of impressions."""
    excess = np.flatnonzero((counts.clicks > counts.shown) | (counts.clicks < 0.0))
    if excess.size:
        worst = excess[0]
        raise DataError(
            f"document '{counts.documents[counts.document[worst]]}' of query '{counts.queries[counts.query[worst]]}' "
            f"was shown {counts.shown[worst]:.0f} times at position {counts.position[worst]} and its clicks weigh "
            f"{counts.clicks[worst]:g}: an impression weighs from 0 to 1. Divide the weights of events by the largest."
        )


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A position-based model or one with trust bias: P(click) = offset(position) + examination(position) * relevance.

    counts                that it was fitted to
    examination           slopes; offset: (n_positions,), 0 without trust bias
    relevance             (n_pairs,) the probability of a click at the first position
    prior, shift, scale   shift + scale * what the prior expects is the relevance of a new pair
    precision             of all that
    values                the logarithm of the posterior density on the way, of the last fit
    """

    counts: ClickCounts
    examination: Examination
    offset: Floats
    relevance: Floats
    prior: Prior
    shift: float
    scale: float
    precision: Precision
    values: list[float]

    def click_probability(self, counts: ClickCounts) -> Floats:
        """Return the probability of a click for each row of counts; a new pair has what the prior expects."""
        query, document, pair = self.counts.places_of(counts)
        new = self.shift + self.scale * self.prior.expected(query, document, counts)
        relevance = np.where(pair >= 0, self.relevance[pair], new)
        offset = np.interp(counts.position, self.examination.position, self.offset)
        return np.clip(offset + self.examination.at(counts.position) * relevance, 0.0, 1.0)

    def judgments(self) -> Judgments:
        """Return the judgments of all pairs; a pair is unknown where no position that it was seen at is known."""
        from scipy.stats import beta  # takes a third of a second to import

        counts = self.counts
        known = self.examination.known[np.searchsorted(self.examination.position, counts.position)]
        mean = self.precision.mean
        concentration = np.maximum(mean * (1.0 - mean) / self.precision.variance - 1.0, SURE)  # of a beta distribution
        low, high = (beta.ppf(end, mean * concentration, (1.0 - mean) * concentration) for end in ENDS)
        low, high = np.minimum(low, self.relevance), np.maximum(high, self.relevance)
        effective = mean * (1.0 - mean) * self.precision.own
        return judged(counts, known, self.relevance, low, high, effective, self.precision.share)


def judged(
    counts: ClickCounts, known: Mask, relevance: Floats, low: Floats, high: Floats, effective: Floats, weight: Floats
) -> Judgments:
    """Return judgments by pair; known says of each row of counts whether the examination of its position is."""
    positions = counts.by_pair(known.astype(float))
    graded = positions > 0.0
    status = np.where(graded, np.where(positions > 1.0, KNOWN, ONE_POSITION), UNKNOWN)
    return Judgments(
        query=[counts.queries[number] for number in counts.query[counts.firsts]],
        document=[counts.documents[number] for number in counts.document[counts.firsts]],
        relevance=np.where(graded, relevance, np.nan),
        low=np.where(graded, low, np.nan),
        high=np.where(graded, high, np.nan),
        impressions=counts.by_pair(counts.shown),
        effective=np.where(graded, effective, 0.0),
        weight=np.where(graded, weight, 0.0),
        status=status.tolist(),
    )
