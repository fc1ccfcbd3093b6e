"""Examination from the pairs of query and document that were seen at several positions, whatever attraction they have.

    value = sum of clicks * log up(position) - sum over pairs of clicks(pair) * log exposure(pair)

exposure(pair) is the sum of impressions times up. That is the likelihood of the positions of each pair's clicks, given
how many there are: attraction cancels from it, so that it is right for pairs of few impressions too, where the
likelihood of up and attraction together is not. Clicks are taken for rare; where they are not, errors are a little
smaller than is said. Source: Cameron & Trivedi 2013, "Regression Analysis of Count Data", section 9.4.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.clicks.mixture import SMALLEST, climb
from ranktune.solvers.core.arrays import Floats, Ints, Mask

TOLERANCE = 1e-9


def conditional(counts: ClickCounts, row: Ints, start: Floats, fixed: Mask) -> Floats:
    """Return the likeliest up, (n_positions,), from a start; where nothing was clicked, that of half a click.

    row    (n,) the number of the position of each row; fixed   positions whose up stays
    """
    clicks, of_pair = sums(row, counts.clicks, len(start)), counts.by_pair(counts.clicks)

    def exposure(up: Floats) -> Floats:
        return np.maximum(counts.by_pair(counts.shown * up[row]), SMALLEST)

    def expected(up: Floats) -> Floats:
        rates = (of_pair / exposure(up))[counts.pair]
        return np.maximum(sums(row, counts.shown * rates, len(up)), SMALLEST)

    def step(up: Floats) -> Floats:
        moved = np.where(fixed, up, clicks / expected(up))
        return np.asarray(np.maximum(moved if fixed.any() else moved / moved.max(), SMALLEST))

    def value(up: Floats) -> float:
        return float(clicks @ np.log(up) - of_pair @ np.log(exposure(up)))

    up, _ = climb(step, value, np.maximum(start, SMALLEST), TOLERANCE)
    return np.where(fixed, up, np.maximum(up, 0.5 / expected(up)))


def information(counts: ClickCounts, row: Ints, up: Floats) -> Floats:
    """Return the information on the logarithms of up, (n_positions, n_positions)."""
    share = counts.shown * up[row]
    share = share / np.maximum(counts.by_pair(share), SMALLEST)[counts.pair]
    clicks = counts.by_pair(counts.clicks)
    shares = sparse.csr_array((share, (counts.pair, row)), shape=(len(clicks), len(up)))
    weighted = sparse.csr_array(sparse.diags_array(clicks) @ shares)
    return np.asarray(np.diag(weighted.sum(axis=0)) - (shares.T @ weighted).toarray())
