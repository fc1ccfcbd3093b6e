"""What is expected of a pair of query and document before its own clicks, and how strongly.

The expectation is a product: mean * factor of the query * factor of its mean position, since what ranks low is worse
on average, and in a joint prior * factor of the document * factor by features. Factors of groups are shrunken to 1, and
those by features are predicted by a regression; both are those of other pairs, so that no pair is its own evidence.
Source of the regression within the fit of examination: Wang et al. 2018, "Position Bias Estimation for Unbiased
Learning to Rank in Personal Search"; here it fits rates, whose clicks are Poisson, and pairs deviate from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.clicks.counts import Counts, places, sums
from ranktune.solvers.clicks.shrinkage import shrunken, strength_of
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_ints
from ranktune.solvers.core.errors import DataError

HIGHEST = 0.999
"""The largest expected attraction: at 1 no pair could deviate."""
SWEEPS = 4
"""Times that each kind of factors is fitted, with the others as they are."""
STEPS = 5.0
"""Groups of mean positions in a factor of e."""
FOLDS = 3
"""Parts of the pairs that a regression predicts, each from the others."""


class Regressor(Protocol):
    """An estimator of scikit-learn whose `fit` takes weights of rows and whose predictions are positive."""

    def fit(self, X: Array, y: Array, sample_weight: Array) -> object:
        """Fit to rates, y, that stand for so many expected clicks."""

    def predict(self, X: Array) -> Array:
        """Return the predicted rates."""


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of pairs of query and document, by their names; values has a row for each, (n, n_features).

    Raises DataError where lengths differ. Pairs without features have the factor 1.
    """

    query: Sequence[str]
    document: Sequence[str]
    values: ArrayLike

    def __post_init__(self) -> None:
        if not len(self.query) == len(self.document) == len(np.asarray(self.values)):
            raise DataError(
                f"features of {len(self.query)} queries, {len(self.document)} documents and "
                f"{len(np.asarray(self.values))} rows: give one query, one document and one row a pair."
            )

    def places_in(self, counts: Counts) -> tuple[Ints, Ints]:
        """Return the numbers of the query and the document of each row in counts, -1 where it has none."""
        return places(counts.queries, self.query), places(counts.documents, self.document)


@dataclass(frozen=True, eq=False)
class Prior:
    """The expected attraction of pairs, and the clicks that it counts for.

    pairs                of the pairs that it was fitted to, (n_pairs,)
    strength             the clicks that it counts for
    mean                 of all
    queries, documents   factors by number, and 1 at the end for a new one
    heights              those of mean positions, by `heights_of`, and 1 at the end
    features, factors    those by features, (n,)
    """

    pairs: Floats
    strength: float
    mean: float
    queries: Floats
    documents: Floats
    heights: Floats
    features: PairFeatures | None = None
    factors: Floats | None = None

    def expected(self, query: Ints, document: Ints, counts: Counts) -> Floats:
        """Return the expected attraction of the pair of each row of counts, by its query and document, -1 for new."""
        height = np.minimum(heights_of(counts), len(self.heights) - 1)[counts.pair]
        found = self.mean * self.queries[query] * self.documents[document] * self.heights[height]
        if self.features is not None and self.factors is not None:
            found = found * _at_pairs(self.features, self.factors, counts)[counts.pair]
        return np.minimum(found, HIGHEST)


def query_prior(counts: Counts, exposure: Floats, by_height: bool) -> Prior:
    """Return the prior by queries, and by mean positions if by_height; exposure: examined impressions of pairs."""
    return _product(counts, exposure, by_height, joint=False, features=None, regressor=None)


def joint_prior(
    counts: Counts, exposure: Floats, by_height: bool, features: PairFeatures | None, regressor: Regressor | None
) -> Prior:
    """Return the prior by documents and features too."""
    return _product(counts, exposure, by_height, joint=True, features=features, regressor=regressor)


def _product(
    counts: Counts,
    exposure: Floats,
    by_height: bool,
    *,
    joint: bool,
    features: PairFeatures | None,
    regressor: Regressor | None,
) -> Prior:
    """Fit the factors of one kind after the other, each to the clicks that the others leave to explain."""
    clicks = counts.by_pair(counts.clicks)
    query, document = counts.query[counts.firsts], counts.document[counts.firsts]
    mean = clicks.sum() / max(exposure.sum(), np.finfo(float).tiny)
    height = heights_of(counts) * by_height
    of_query, of_document, of_height, own, factors = (np.ones(len(clicks)) for _ in range(5))
    documents = np.ones(len(counts.documents) + 1)
    for sweep in range(SWEEPS):
        rest = exposure * mean * own
        queries, of_query = _factors(query, clicks, rest * of_document * of_height, len(counts.queries))
        heights, of_height = _factors(height, clicks, rest * of_document * of_query, int(height.max()) + 1)
        if joint:
            documents, of_document = _factors(document, clicks, rest * of_query * of_height, len(documents) - 1)
        if features is not None and sweep == 0:
            rest = exposure * mean * of_query * of_document * of_height
            own, factors = _predicted(counts, clicks, rest, features, regressor)
    pairs = np.minimum(mean * of_query * of_document * of_height * own, HIGHEST)
    return Prior(pairs, strength_of(clicks, exposure * pairs), mean, queries, documents, heights, features, factors)


def heights_of(counts: Counts) -> Ints:
    """Return a number for the mean position of each pair, (n_pairs,), which rises with its logarithm."""
    total = counts.by_pair(counts.shown * np.log(np.maximum(counts.position, 1)))
    return as_ints(np.rint(STEPS * total / counts.by_pair(counts.shown)))


def _factors(group: Ints, clicks: Floats, expected: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the factors of groups, and 1 at the end; and that of each pair's group, by the other pairs of it."""
    clicked, awaited = sums(group, clicks, n), sums(group, expected, n)
    strength = strength_of(clicked, awaited)
    others = shrunken(clicked[group] - clicks, awaited[group] - expected, strength)
    return np.append(shrunken(clicked, awaited, strength), 1.0), others


def _predicted(
    counts: Counts, clicks: Floats, expected: Floats, features: PairFeatures, regressor: Regressor | None
) -> tuple[Floats, Floats]:
    """Return the factors of the pairs of counts, by models that did not see them, and of all rows of features."""
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import cross_val_predict

    place = counts.pairs_at(*features.places_in(counts))
    used = np.flatnonzero(place >= 0)
    used = used[np.argsort(place[used], kind="stable")]  # so that parts are different queries
    used = used[expected[place[used]] > 0.0]
    X, weight = np.asarray(features.values), expected[place[used]]
    model = (
        HistGradientBoostingRegressor(loss="poisson", max_iter=60, random_state=0) if regressor is None else regressor
    )
    y = clicks[place[used]] / weight
    out = cross_val_predict(clone(model), X[used], y, cv=FOLDS, params={"sample_weight": weight})
    whole = clone(model)
    whole.fit(X[used], y, sample_weight=weight)
    own = np.ones(len(clicks))
    own[place[used]] = out
    return own, np.asarray(whole.predict(X))


def _at_pairs(features: PairFeatures, factors: Floats, counts: Counts) -> Floats:
    place = counts.pairs_at(*features.places_in(counts))
    found = np.ones(len(counts.firsts))
    found[place[place >= 0]] = factors[place >= 0]
    return found
