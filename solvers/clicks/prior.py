"""What is expected of a pair of query and document before its own clicks, and how strongly.

The expectation is a product: mean * factor of the query * factor of its mean position, since what ranks low is worse
on average, and in a joint prior * factor of the document. Factors of groups are shrunken to 1, and are those of other
pairs, so that no pair is its own evidence. Source of a regression within the fit of examination: Wang et al. 2018,
"Position Bias Estimation for Unbiased Learning to Rank in Personal Search".

clicks    (n,) of groups      expected  (n,) clicks that a group of average rate would have
factor    (n,) rate of a group relative to what is expected

Factors are drawn from a gamma distribution of mean 1 and shape `strength`, clicks from a Poisson distribution of mean
factor times expected. Then the mean of a factor, given its clicks, is (clicks + strength) / (expected + strength): the
prior counts for as many clicks, which were expected. Source: Clayton & Kaldor 1987, "Empirical Bayes estimates of
age-standardized relative risks".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from ranktune.solvers.clicks.counts import ClickCounts, sums
from ranktune.solvers.core.arrays import Floats, Ints, as_ints

HIGHEST = 0.999
"""The largest expected attraction: at 1 no pair could deviate."""
SWEEPS = 4
"""Times that each kind of factors is fitted, with the others as they are."""
STEPS = 5.0
"""Groups of mean positions in a factor of e."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The expected attraction of pairs, and the clicks that it counts for.

    pairs                of the pairs that it was fitted to, (n_pairs,)
    strength             the clicks that it counts for
    mean                 of all
    queries, documents   factors by number, and 1 at the end for a new one
    heights              those of mean positions, by `heights_of`, and 1 at the end
    """

    pairs: Floats
    strength: float
    mean: float
    queries: Floats
    documents: Floats
    heights: Floats

    def expected(self, query: Ints, document: Ints, counts: ClickCounts) -> Floats:
        """Return the expected attraction of the pair of each row of counts, by its query and document, -1 for new."""
        height = np.minimum(heights_of(counts), len(self.heights) - 1)[counts.pair]
        found = self.mean * self.queries[query] * self.documents[document] * self.heights[height]
        return np.minimum(found, HIGHEST)


def prior_of(counts: ClickCounts, exposure: Floats, by_height: bool, by_document: bool) -> Prior:
    """Return the prior by queries, and by mean positions and documents if they are wanted.

    exposure has the examined impressions of pairs. The factors of one kind are fitted after the other, each to the
    clicks that the others leave to explain.
    """
    clicks = counts.by_pair(counts.clicks)
    query, document = counts.query[counts.firsts], counts.document[counts.firsts]
    mean = clicks.sum() / max(exposure.sum(), np.finfo(float).tiny)
    height = heights_of(counts) * by_height
    of_query, of_document, of_height = (np.ones(len(clicks)) for _ in range(3))
    documents = np.ones(len(counts.documents) + 1)
    rest = exposure * mean
    for _ in range(SWEEPS):
        queries, of_query = _factors(query, clicks, rest * of_document * of_height, len(counts.queries))
        heights, of_height = _factors(height, clicks, rest * of_document * of_query, int(height.max()) + 1)
        if by_document:
            documents, of_document = _factors(document, clicks, rest * of_query * of_height, len(documents) - 1)
    pairs = np.minimum(mean * of_query * of_document * of_height, HIGHEST)
    return Prior(pairs, strength_of(clicks, exposure * pairs), mean, queries, documents, heights)


def heights_of(counts: ClickCounts) -> Ints:
    """Return a number for the mean position of each pair, (n_pairs,), which rises with its logarithm."""
    total = counts.by_pair(counts.shown * np.log(np.maximum(counts.position, 1)))
    return as_ints(np.rint(STEPS * total / counts.by_pair(counts.shown)))


def _factors(group: Ints, clicks: Floats, expected: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the factors of groups, and 1 at the end; and that of each pair's group, by the other pairs of it."""
    clicked, awaited = sums(group, clicks, n), sums(group, expected, n)
    strength = strength_of(clicked, awaited)
    others = shrunken(clicked[group] - clicks, awaited[group] - expected, strength)
    return np.append(shrunken(clicked, awaited, strength), 1.0), others


WEAKEST, STRONGEST = 1e-2, 1e4


def strength_of(clicks: Floats, expected: Floats) -> float:
    """Return the shape of the distribution of factors under which clicks are most likely, in WEAKEST to STRONGEST."""
    from scipy.optimize import minimize_scalar  # takes a tenth of a second to import

    def loss(log_shape: float) -> float:
        shape = np.exp(log_shape)
        terms = gammaln(clicks + shape) - gammaln(shape) - shape * np.log1p(expected / shape)
        return -float(np.sum(terms - clicks * np.log(expected + shape)))

    found = minimize_scalar(
        loss, bounds=(np.log(WEAKEST), np.log(STRONGEST)), method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(found.x))


def shrunken(clicks: Floats, expected: Floats, strength: float | None = None) -> Floats:
    """Return the factors of groups; without a strength it is estimated. Where 0 is expected and it is 0, 0."""
    strength = strength_of(clicks, expected) if strength is None else strength
    total = expected + strength
    return np.divide(clicks + strength, total, out=np.zeros_like(total), where=total > 0.0)
