"""Training queries with further columns, computed from the features within each query, once for all fits."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.origins import Kept, origin_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.within.columns import KINDS, columns_within, signs_within

NONE, RANKS, ALL = CHOICES = ("none", "ranks", "all")
N_KINDS = {NONE: 1, RANKS: 2, ALL: len(KINDS)}
"""The kinds of columns, of KINDS the first ones, the features among them."""
MAX_FEATURES = 2_000
"""Features of which further columns are made: of more, they would take too long and too much memory."""
MAX_KEPT = 2
"""Data sets whose columns are kept in a process."""
MAX_KEPT_BYTES = 2**30
"""Of the columns of a data set that are kept; more are computed for each fit."""
MIN_SHARE = 0.05
"""Of the documents of a data set: of a smaller part of it the columns are computed for themselves."""

WIDENED: Kept[Queries] = Kept(MAX_KEPT)
"""The last data sets with further columns."""


def widened(queries: Queries, within: str) -> Queries:
    """Return queries with the further columns; for "none" the queries themselves.

    For queries that were selected from others, the columns are selected from those of the others.
    """
    if within == NONE:
        return queries
    origin, numbers = origin_of(queries)
    n_bytes = origin.n_documents * origin.n_features * N_KINDS[within] * origin.features.dtype.itemsize
    if n_bytes > MAX_KEPT_BYTES or queries.n_documents < MIN_SHARE * origin.n_documents:
        return _computed(queries, within)
    whole = WIDENED.of(origin, within, lambda: _computed(origin, within))
    return whole if origin is queries else whole.select(numbers)


def possible(queries: Queries, within: str) -> str:
    """Return which further columns training queries get: none, with a RankTuneWarning, where they can have none."""
    if within == NONE or not (reason := _refused(queries)):
        return within
    warnings.warn(f"within_query={within!r} is left out: {reason}", RankTuneWarning, stacklevel=2)
    return NONE


def kinds_of(queries: Queries, within: str) -> int:
    """Return how many kinds of columns training queries get, the features among them."""
    return 1 if _refused(queries) else N_KINDS[within]


def _refused(queries: Queries) -> str:
    """Return why features have no further columns, or an empty string."""
    if queries.is_sparse:
        return "the features are sparse, and what they are within their queries would not be."
    if queries.n_features > MAX_FEATURES:
        return f"there are {queries.n_features} features, and at most {MAX_FEATURES} are compared within queries."
    return ""


def _computed(queries: Queries, within: str) -> Queries:
    n_kinds = N_KINDS[within]
    columns = np.arange(queries.n_features * n_kinds)
    features = columns_within(queries.features, queries.starts, columns)
    signs = None if queries.monotone is None else signs_within(queries.monotone, n_kinds)
    queries = queries.replaced(monotone=None)
    return replace(queries, features=features, feature_names=None, features_checked=True).replaced(monotone=signs)
