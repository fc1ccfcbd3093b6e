"""Queries in blocks of whole queries: views of their arrays, so that data larger than memory are used part by part.

Training, validation and test queries, as a user gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.core.checks import check_count
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.values import csr_of

SCORED_ROWS = 1 << 16
"""Documents that are scored at a time."""


def query_ranges(starts: Ints, max_rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first query, last query), the last one excluded, of consecutive queries, which cover all.

    A range has as many queries as max_rows documents hold, and at least one, however long it is. starts is as in
    `Queries`.
    """
    check_count("max_rows", max_rows)
    first, n_queries = 0, len(starts) - 1
    while first < n_queries:
        fitting = int(np.searchsorted(starts, starts[first] + max_rows, side="right")) - 1
        last = max(fitting, first + 1)
        yield first, last
        first = last


def block_of(queries: Queries, first: int, last: int) -> Queries:
    """Return the queries from number first to last, which is excluded, as views of the arrays, without `rows`.

    Features were checked with the whole, and are not looked at again. Of a CSR array only the row ends are copied.
    """
    a, b = int(queries.starts[first]), int(queries.starts[last])
    starts = queries.starts[first : last + 1] - a
    return queries.part(slice(first, last), slice(a, b), starts, rows_of(queries.features, a, b))


def scores_by_block(queries: Queries, score: Callable[[Queries], Floats]) -> Iterator[Floats]:
    """Yield the scores of the documents of queries, in their order, a block of whole queries at a time.

    score, which is given a block, returns a score for each of its documents; what it copies is a block then.
    """
    if queries.n_documents <= SCORED_ROWS:
        yield score(queries)
        return
    for first, last in query_ranges(queries.starts, SCORED_ROWS):
        yield score(block_of(queries, first, last))


def rows_of(features: Features, first: int, last: int) -> Features:
    """Return the rows from first to last, which is excluded: views, but for the row ends of a CSR array."""
    if isinstance(features, np.ndarray):
        return features[first:last]
    a, b = int(features.indptr[first]), int(features.indptr[last])
    ends = features.indptr[first : last + 1] - a
    matrix = csr_of(features.data[a:b], features.indices[a:b], ends, features.shape[1])
    matrix.has_canonical_format = features.has_canonical_format
    return matrix


@dataclass(frozen=True, eq=False)
class QuerySplit:
    """Training queries, and validation and test queries where the user gave them."""

    name: str
    train: Queries
    vali: Queries | None = None
    test: Queries | None = None

    def allowing_missing(self) -> QuerySplit:
        """Return the split whose parts may all have missing values if one has them, so that models can score them."""
        parts = {name: getattr(self, name) for name in ("train", "vali", "test")}
        present = {name: part for name, part in parts.items() if part is not None}
        if len({part.has_missing for part in present.values()}) == 1:
            return self
        return replace(self, **{name: replace(part, has_missing=True) for name, part in present.items()})
