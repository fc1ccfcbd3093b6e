"""A fitted click model: probabilities of clicks, examination with errors, judgments, and the loss on later clicks.

Errors are from Fisher's information. A click has the probability p = offset(position) + slope(position) *
relevance(pair). The information on slopes and offsets is what remains when the relevance of every pair is fitted with
them; the variance of a relevance is the sum of its own and that of the positions where the pair was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.judgments import KNOWN, ONE_POSITION, UNKNOWN, Judgments
from ranktune.solvers.clicks.prior import Prior
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.core.errors import DataError

CHUNK = 20_000
"""Pairs whose covariances with all positions are held at once."""
LEAST = 1e-12
"""Probabilities are taken to be that far from 0 and 1, where information is infinite."""
MOST = 1.0 - 1e-6
SCORING_STEPS = 8


@dataclass(frozen=True, eq=False)
class Precision:
    """Of a model at its fit.

    covariance   of slopes, (n_positions, n_positions), 0 where they were not fitted
    slope        that this holds for, with half a click at least: none does not mean no error
    mean         relevances by the pairs' own clicks alone, (n_pairs,), likewise
    variance     of these, which does not rest on the prior
    of_pair, share   information of the pair's own clicks, and its share of all, which includes the prior's
    """

    covariance: Floats
    slope: Floats
    mean: Floats
    variance: Floats
    of_pair: Floats
    share: Floats


def precision(
    counts: ClickCounts,
    row: Ints,
    slope: Floats,
    offset: Floats,
    relevance: Floats,
    free: Mask,
    identified: Mask,
    telling: Mask,
    prior: Floats,
    added: Floats,
    spread: Floats | None,
    trust: bool,
) -> Precision:
    """Return the precision of a model at its fit.

    row      the number of the position of each row of counts
    free     positions whose slope was fitted      identified  those that the log identifies: others tell nothing
    telling  pairs that slopes were fitted to
    prior    information of the prior on relevance, (n_pairs,)
    added    information that smoothing adds on the logarithms of slopes, (n_positions, n_positions)
    spread   covariance of the logarithms of slopes where it is known; else it is that of the fit with the prior
    trust    whether offsets were fitted
    """
    mean = _own_estimate(counts, row, slope, offset, relevance)
    slope = np.maximum(slope, 0.5 / np.maximum(sums(row, counts.shown * mean[counts.pair], len(slope)), 1.0))
    seen = identified[row]
    row, pair, n_pairs = row[seen], counts.pair[seen], len(mean)
    p = np.clip(offset[row] + slope[row] * mean[pair], LEAST, 1.0 - LEAST)
    weight = counts.shown[seen] / (p * (1.0 - p))
    of_pair = sums(pair, weight * slope[row] ** 2, n_pairs)
    of_pair = np.maximum(of_pair, LEAST)
    number, n_free = np.cumsum(free) - 1, int(free.sum())  # of a free position among the unknowns
    rows = np.flatnonzero(free[row])
    column = number[row[rows]]
    design = sparse.csr_array((mean[pair[rows]], (rows, column)), shape=(len(row), n_free * (1 + trust)))
    if trust:
        design = design + sparse.csr_array((np.ones(len(rows)), (rows, n_free + column)), shape=design.shape)
    weighted = sparse.csr_array(sparse.diags_array(weight) @ design)
    shared = sparse.csr_array((slope[row], (pair, np.arange(len(row)))), shape=(n_pairs, len(row))) @ weighted
    scaled = sparse.csr_array(sparse.diags_array(1.0 / of_pair) @ shared)
    if spread is None:
        total = of_pair if trust else of_pair + prior
        common = sparse.diags_array(np.where(telling, 1.0 / total, 0.0)) @ shared
        information = (
            design.T @ (sparse.diags_array(telling[pair].astype(float)) @ weighted) - shared.T @ common
        ).toarray()
        information[:n_free, :n_free] += (added / np.outer(slope, slope))[np.ix_(free, free)]
        inverse = np.linalg.pinv(information, hermitian=True)
    else:
        inverse = (spread * np.outer(slope, slope))[np.ix_(free, free)]
    parts = (scaled[start : start + CHUNK].toarray() for start in range(0, n_pairs, CHUNK))
    spread = np.concatenate([((part @ inverse) * part).sum(axis=1) for part in parts])
    covariance = np.zeros((len(slope), len(slope)))
    covariance[np.ix_(free, free)] = inverse[:n_free, :n_free]
    return Precision(covariance, slope, mean, 1.0 / of_pair + spread, of_pair, of_pair / (of_pair + prior))


def _own_estimate(counts: ClickCounts, row: Ints, slope: Floats, offset: Floats, relevance: Floats) -> Floats:
    """Return the relevance under which a pair's clicks are most likely, between half a click and certainty.

    Half a click is above the relevance at which clicks are impossible at some position.
    """
    none = float(np.max(-offset[slope > 0.0] / slope[slope > 0.0], initial=0.0))
    half = none + np.minimum(0.5 / np.maximum(counts.by_pair(counts.shown * slope[row]), 1.0), 0.5) * (1.0 - none)
    mean = np.clip(relevance, half, MOST)
    for _ in range(SCORING_STEPS):
        p = np.clip(offset[row] + slope[row] * mean[counts.pair], LEAST, MOST)
        score = counts.by_pair((counts.clicks - counts.shown * p) * slope[row] / (p * (1.0 - p)))
        information = counts.by_pair(counts.shown * slope[row] ** 2 / (p * (1.0 - p)))
        mean = np.clip(mean + score / np.maximum(information, LEAST), half, MOST)
    return np.asarray(mean)


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
        is_clear = self.examination.known[np.searchsorted(self.examination.position, counts.position)]
        mean = self.precision.mean
        concentration = np.maximum(mean * (1.0 - mean) / self.precision.variance - 1.0, SURE)  # of a beta distribution
        low, high = (beta.ppf(end, mean * concentration, (1.0 - mean) * concentration) for end in ENDS)
        low, high = np.minimum(low, self.relevance), np.maximum(high, self.relevance)
        effective = mean * (1.0 - mean) * self.precision.of_pair
        return judged(counts, is_clear, self.relevance, low, high, effective, self.precision.share)


def judged(
    counts: ClickCounts, is_clear: Mask, relevance: Floats, low: Floats, high: Floats, effective: Floats, weight: Floats
) -> Judgments:
    """Return judgments by pair; known says of each row of counts whether the examination of its position is."""
    positions = counts.by_pair(is_clear.astype(float))
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
