"""How precisely a log tells examination and relevance: from Fisher's information, whatever is shared held apart.

A click has the probability p = offset(position) + slope(position) * relevance(pair). The information on slopes and
offsets is what remains when the relevance of every pair is fitted with them; the variance of a relevance has its own
part and that of the positions where the pair was seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.core.arrays import Floats, Ints, Mask

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
    own, share   information of the pair's own clicks, and its share of all, which includes the prior's
    """

    covariance: Floats
    slope: Floats
    mean: Floats
    variance: Floats
    own: Floats
    share: Floats


def precision(
    counts: ClickCounts,
    row: Ints,
    slope: Floats,
    offset: Floats,
    relevance: Floats,
    free: Mask,
    known: Mask,
    telling: Mask,
    prior: Floats,
    added: Floats,
    spread: Floats | None,
    trust: bool,
) -> Precision:
    """Return the precision of a model at its fit.

    row      the number of the position of each row of counts
    free     positions whose slope was fitted      known   those that are known: the others tell nothing
    telling  pairs that slopes were fitted to
    prior    information of the prior on relevance, (n_pairs,)
    added    information that smoothing adds on the logarithms of slopes, (n_positions, n_positions)
    spread   covariance of the logarithms of slopes where it is known; else it is that of the fit with the prior
    trust    whether offsets were fitted
    """
    mean = _own_estimate(counts, row, slope, offset, relevance)
    slope = np.maximum(slope, 0.5 / np.maximum(sums(row, counts.shown * mean[counts.pair], len(slope)), 1.0))
    seen = known[row]
    row, pair, n_pairs = row[seen], counts.pair[seen], len(mean)
    p = np.clip(offset[row] + slope[row] * mean[pair], LEAST, 1.0 - LEAST)
    weight = counts.shown[seen] / (p * (1.0 - p))
    own = sums(pair, weight * slope[row] ** 2, n_pairs)
    own = np.maximum(own, LEAST)
    number, n_free = np.cumsum(free) - 1, int(free.sum())  # of a free position among the unknowns
    rows = np.flatnonzero(free[row])
    column = number[row[rows]]
    design = sparse.csr_array((mean[pair[rows]], (rows, column)), shape=(len(row), n_free * (1 + trust)))
    if trust:
        design = design + sparse.csr_array((np.ones(len(rows)), (rows, n_free + column)), shape=design.shape)
    weighted = sparse.csr_array(sparse.diags_array(weight) @ design)
    shared = sparse.csr_array((slope[row], (pair, np.arange(len(row)))), shape=(n_pairs, len(row))) @ weighted
    scaled = sparse.csr_array(sparse.diags_array(1.0 / own) @ shared)
    if spread is None:
        total = own if trust else own + prior
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
    return Precision(covariance, slope, mean, 1.0 / own + spread, own, own / (own + prior))


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
