"""Pairwise comparisons of several models: a randomisation test of all pairs with the same signs, Holm-corrected.

Splits are arrays (models, n_s), the same models in the same order; NaN marks a query that the metric skips. As in
ranktune.tuner.statistics.comparisons a difference is the mean of the splits' means, the test pools the queries, and
weights, (n_s,) a split or None, weigh the means and the tested differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import linearised
from ranktune.tuner.statistics.comparisons import holm
from ranktune.tuner.statistics.intervals import weighted

ALPHA = 0.05
"""Largest Holm-corrected p-value of a significant difference."""
MAX_SIGNS = 4_000_000
"""Largest number of random signs in all, with at least MIN_PATTERNS patterns."""
MAX_PATTERNS, MIN_PATTERNS = 10_000, 2_000


@dataclass(frozen=True)
class Pair:
    """Model a against model b: mean difference a - b, p and Holm-corrected p (None without common queries)."""

    a: int
    b: int
    difference: float
    p: float | None
    p_holm: float | None
    wins: int
    ties: int
    losses: int


def pairwise(
    splits: Sequence[Floats], generator: np.random.Generator, weights: Sequence[Floats | None] | None = None
) -> list[Pair]:
    """Return every pair of models, a before b; the same random signs test all of them."""
    found = list(combinations(range(len(splits[0])), 2))
    if not found:
        return []
    by_split = [np.stack([values[a] - values[b] for a, b in found]) for values in splits]  # (pairs, n_s)
    weights = [None] * len(by_split) if weights is None else weights
    counts = [(~np.isnan(own)).sum(axis=1) for own in by_split]
    linear = [linearised(own, heavy) for own, heavy in zip(by_split, weights, strict=True)]
    means = [
        np.nansum(own, axis=1) / np.where(count > 0, count, np.nan) for own, count in zip(linear, counts, strict=True)
    ]
    difference = np.mean(means, axis=0)
    pooled = np.concatenate(by_split, axis=1)
    tested = np.concatenate([weighted(own, heavy) for own, heavy in zip(by_split, weights, strict=True)], axis=1)
    p = _p_values(np.nan_to_num(tested, nan=0.0), generator)
    known: list[float | None] = [None if np.isnan(d) else float(own) for d, own in zip(difference, p, strict=True)]
    adjusted = holm(known)
    return [
        Pair(
            a, b, float(difference[k]), known[k], adjusted[k],
            int((pooled[k] > 0).sum()), int((pooled[k] == 0).sum()), int((pooled[k] < 0).sum()),
        )
        for k, (a, b) in enumerate(found)
    ]  # fmt: skip


def _p_values(differences: Floats, generator: np.random.Generator) -> Floats:
    """Return the two-sided p of each row of differences, (pairs, n): its sum, under random signs.

    The observed pattern counts, so that p is never 0. Source: Smucker, Allan & Carterette 2007.
    """
    n = differences.shape[1]
    rounds = int(np.clip(MAX_SIGNS // max(n, 1), MIN_PATTERNS, MAX_PATTERNS))
    observed = np.abs(differences.sum(axis=1)) * (1 - 1e-12)
    reached = np.ones(len(differences))
    block = max(1, 1_000_000 // max(n, 1))
    for begin in range(0, rounds, block):
        size = min(block, rounds - begin)
        signs = 1.0 - 2.0 * generator.integers(2, size=(size, n), dtype=np.int8)
        reached += (np.abs(signs @ differences.T) >= observed).sum(axis=0)
    return reached / (1 + rounds)
