"""A sample of the documents on which an objective over pairs is about the same: of some queries some documents."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.rank_svm.curvature import DENSE_FEATURES

SAMPLE_SHARE = 20
SAMPLE_PER_FEATURE = 20
MIN_SAMPLE = 500
SAMPLE_QUERIES = 50
MAX_SAMPLE_OF_QUERY = 5000
"""A sample is one document in 20, at least 20 for each feature and 500, of 50 queries or all, and at most 5,000 of
one query. With fewer documents a feature, the sample's H is far from that of all; and forming H takes a row of
n_features for each grade of the longest query.
"""

MAX_SAMPLE_BYTES = 1 << 26
"""Features of a sample: it is held in memory whatever the size of the data."""

MANY_FEATURES_SAMPLE = 2
"""With more than DENSE_FEATURES features a sample has so many documents a feature: H is shrunk then."""
MAX_SAMPLE_FEATURES = 2000
MAX_SAMPLE_WORK = 50
"""Forming and factoring H takes about n_features ** 3 / 100 times as long as a pass over a byte of X."""


def sample_size(rows: int, n_features: int, bytes_per_row: float) -> int:
    """Return how many of so many documents make a sample; bytes_per_row are those of the features of one.

    0 says that a sample's H would take longer to form than it spares.
    """
    if n_features > DENSE_FEATURES:
        pays = n_features <= MAX_SAMPLE_FEATURES and n_features**3 <= MAX_SAMPLE_WORK * rows * bytes_per_row
        return MANY_FEATURES_SAMPLE * n_features if pays else 0
    size = max(rows // SAMPLE_SHARE, SAMPLE_PER_FEATURE * n_features, MIN_SAMPLE)
    return min(size, max(int(MAX_SAMPLE_BYTES / max(bytes_per_row, 1.0)), MIN_SAMPLE))


def draw(queries: Queries, pairs: Floats, size: int) -> tuple[Queries, Ints] | None:
    """Return about size documents of queries, and the numbers of their queries; None where that saves little.

    pairs, (n_queries,), are those of each query. Of the queries every m-th is taken, and where those would be few, more
    of them, and of their documents every m-th in the order of their grades.
    """
    useful = np.flatnonzero(pairs > 0.0)
    rows = int(queries.lengths[useful].sum())
    long = bool(queries.lengths.max() > MAX_SAMPLE_OF_QUERY)
    if len(useful) == 0 or (2 * size > rows and not long):
        return None
    stride = max(min(rows // size, len(useful) // SAMPLE_QUERIES), 1)
    chosen = useful[stride // 2 :: stride]
    within = max(rows // (size * stride), 1)
    part = _thinned(queries.select(chosen), np.maximum(within, -(-queries.lengths[chosen] // MAX_SAMPLE_OF_QUERY)))
    if part.n_documents > (1.0 if long else 0.75) * rows:  # short queries have nothing to spare
        return None
    return part, chosen


def _thinned(queries: Queries, every: Ints) -> Queries:
    """Return every[q]-th document of each query q, in the order of their grades."""
    every = np.minimum(every, np.maximum(queries.lengths // 2, 1))  # two documents at least, if there are two
    if (every == 1).all():
        return queries
    rows = []
    for q in range(queries.n_queries):
        a, b = queries.starts[q], queries.starts[q + 1]
        by_grade = np.argsort(queries.grades[a:b], kind="stable")
        rows.append(a + np.sort(by_grade[every[q] // 2 :: every[q]]))
    starts = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    at = np.concatenate(rows)
    return queries.part(slice(None), at, starts, queries.features[at])
