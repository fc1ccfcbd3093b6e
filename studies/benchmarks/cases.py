"""Synthetic ranking problems of realistic sizes, the same on every machine, for the benchmarks.

a    2,000 queries of about 120 documents, 136 correlated dense features in [0, 1] by query, grades 0 to 4 (like MSLR)
as   the same with 200 queries
c    one query, 500,000 documents, 50 dense features, no two grades equal: 1.25e11 pairs
d    one query, 200,000 documents, 100,000 sparse features (25 a document, few of them common), 1,000 grades

Each is a linear score with noise. Features are float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.queries import Queries


def many_queries(n_queries: int, seed: int, n_features: int = 136, mean_length: int = 120) -> Queries:
    """Return queries whose features share 25 latent factors, two in five of them skewed."""
    shared = np.random.default_rng(7)  # the same weights and factors whatever the seed
    causes = shared.standard_normal((25, n_features)) / 5
    weights = shared.standard_normal(n_features) * (shared.random(n_features) < 0.5)
    skewed = shared.random(n_features) < 0.4
    generator = np.random.default_rng(seed)
    lengths = np.clip(generator.poisson(mean_length, n_queries) + generator.integers(-60, 61, n_queries), 5, None)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = np.empty((starts[-1], n_features), np.float32)
    for first in range(0, n_queries, 200):  # blocks: float64 on the way to float32
        last = min(n_queries, first + 200)
        a, b = starts[first], starts[last]
        block = generator.standard_normal((b - a, 25)) @ causes + 0.6 * generator.standard_normal((b - a, n_features))
        by_query = 0.5 * generator.standard_normal((last - first, n_features))
        block += np.repeat(by_query, lengths[first:last], axis=0)
        block[:, skewed] = np.exp(block[:, skewed])
        low = np.minimum.reduceat(block, starts[first:last] - a)
        span = np.maximum(np.maximum.reduceat(block, starts[first:last] - a) - low, 1e-12)
        block -= np.repeat(low, lengths[first:last], axis=0)
        X[a:b] = np.round(block / np.repeat(span, lengths[first:last], axis=0), 6)
    score = X.astype(np.float64) @ weights
    score += generator.standard_normal(len(score)) * score.std() * 0.8
    score += np.repeat(generator.standard_normal(n_queries), lengths) * score.std() * 0.5
    cuts = np.quantile(score, np.cumsum([0.52, 0.32, 0.13, 0.02]))
    return Queries.from_arrays(X, np.searchsorted(cuts, score), group=lengths)


def one_query(n_documents: int, n_features: int = 50, seed: int = 21) -> Queries:
    """Return one query whose documents all have different grades."""
    generator = np.random.default_rng(seed)
    causes = generator.standard_normal((10, n_features)) / 3
    weights = generator.standard_normal(n_features)
    X = generator.standard_normal((n_documents, 10)) @ causes + generator.standard_normal((n_documents, n_features))
    X = np.round(X / 4, 6).astype(np.float32)
    score = X.astype(np.float64) @ weights
    return Queries.from_arrays(X, np.round(score + generator.standard_normal(n_documents) * score.std() * 0.5, 9))


def sparse_query(
    n_documents: int = 200_000, n_features: int = 100_000, a_row: int = 25, n_grades: int = 1000, seed: int = 31
) -> Queries:
    """Return one query of sparse rows of length 1, whose columns are as unevenly filled as words are."""
    generator = np.random.default_rng(seed)
    share = 1.0 / (np.arange(n_features) + 20.0)
    columns = generator.choice(n_features, size=(n_documents, a_row), p=share / share.sum())
    values = np.abs(generator.standard_normal((n_documents, a_row))) + 0.1
    rows = np.repeat(np.arange(n_documents), a_row)
    X = sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(n_documents, n_features))
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    weights = generator.standard_normal(n_features)
    score = X @ weights + 0.5 * generator.standard_normal(n_documents)
    grades: Floats = np.searchsorted(np.quantile(score, np.arange(1, n_grades) / n_grades), score).astype(np.float64)
    mixed: Features = X[:, np.random.default_rng(1).permutation(n_features)].astype(np.float32)
    return Queries.from_arrays(mixed, grades, group=[n_documents])


CASES: Mapping[str, Callable[[], Queries]] = {
    "a": partial(many_queries, 2000, 11),
    "as": partial(many_queries, 200, 12),
    "c": partial(one_query, 500_000),
    "d": sparse_query,
}


def case(name: str) -> Queries:
    """Return the case of that name. Takes seconds to make, and up to 0.5 GB."""
    if name not in CASES:
        raise ParameterError(f"there is no case '{name}'. {nearest(name, CASES)}")
    return CASES[name]()


def seeds_of(text: str) -> range:
    """Return the seeds of a text, first:last without the last, or so many from 0. Raises ParameterError for others."""
    first, _, last = text.rpartition(":")
    if not ((first or "0").isdecimal() and last.isdecimal()):
        raise ParameterError(f"'{text}' are no seeds: give the first and the last, such as 0:72.")
    return range(int(first or 0), int(last))
