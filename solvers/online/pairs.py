"""The order in which online learners visit documents and pairs, and the number of pairs.

The result of an online learner depends on the order of its instances. To be independent of the order of rows, it visits
the documents of a query in the order of a fixed pseudo-random projection of their features, which is invariant to a
shift of all features of the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data import products
from ranktune.solvers.data.grades import copies_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.kernels import rank
from ranktune.solvers.online.kernels import VisitedLists, list_pairs
from ranktune.solvers.online.weighted_draws import mass_of

WeighedPairs: TypeAlias = tuple[Ints, Ints, Floats]
"""The better and the worse rows of pairs, and their weights, empty where all are 1."""

ORDERS = ("shuffled", "rows", "worse")
"""shuffled: by the projection, each document with all later ones; rows: the same in the order of rows; worse: in the
order of rows, each document with all better ones.
"""
MAX_PAIRS = 1e8
"""Pairs of one query beyond which learning from all of them is refused: it would take a minute or more."""
LISTED = 1 << 20
"""Pairs that are listed at once: 16 MB."""


def projection(queries: Queries) -> Floats:
    """Return a fixed pseudo-random projection of each document's features, (n_documents,). Cost: one pass over X."""
    return products.scores(queries.features, np.random.default_rng(0).normal(size=queries.n_features))


def visits(queries: Queries, pair_order: str) -> Ints:
    """Return the rows of each query in the order in which its documents are visited, (n_documents,)."""
    if pair_order != "shuffled":
        return np.arange(queries.n_documents)
    return _sorted(queries, projection(queries), queries.grades)


def by_grade(queries: Queries) -> Ints:
    """Return the rows of each query, lowest grade first, (n_documents,); within a grade by their projection."""
    return _sorted(queries, queries.grades, projection(queries))


def _sorted(queries: Queries, first: Floats, second: Floats) -> Ints:
    """Return the rows of each query by first, among equals by second, and then as they are: all rising."""
    return rank(-first, -second, queries.starts, int(queries.lengths.max()))


def lists_of(queries: Queries, pair_order: str, pairs_per_query: int | None) -> VisitedLists:
    """Return queries as the kernels visit them. Raises DataError where all pairs of a query are too many."""
    judgements = Judgements.of(queries)
    pairs = judgements.pairs()
    if pairs_per_query is None and pairs.max() > MAX_PAIRS:
        q = int(pairs.argmax())
        raise DataError(
            f"query {queries.query_ids[q]} has {pairs[q]:.3g} pairs of different grades, more than {MAX_PAIRS:.0e}, "
            "and learning from all of them would take too long. Set pairs_per_query, for example to 100000."
        )
    limit = 0 if pairs_per_query is None else int(pairs_per_query)
    drawn = 0 < limit < pairs.max()
    sorted_rows = by_grade(queries) if drawn else np.zeros(0, dtype=np.int64)
    rows, counts, by_worse = visits(queries, pair_order), pairs.astype(np.int64), pair_order == "worse"
    weights = copies_of(queries), mass_of(queries, sorted_rows)
    return VisitedLists(judgements.grades, judgements.starts, rows, sorted_rows, counts, limit, by_worse, *weights)


def listed_pairs(lists: VisitedLists, order: Ints, generator: np.random.Generator) -> Iterator[WeighedPairs]:
    """Yield the better and the worse rows of the pairs of the queries in order, as they are visited, and their weights.

    Mostly at once: only a query of very many pairs that are all visited is cut up.
    """
    drawn = (0 < lists.limit) & (lists.pairs[order] > lists.limit)
    draws = generator.random(lists.limit * np.count_nonzero(drawn))
    counts = np.where(drawn, lists.limit, lists.pairs[order])
    whole = (0, len(lists.rows))
    if counts.sum() <= LISTED or drawn.any():
        yield _listed(lists, order, whole, draws, int(counts.sum()))
        return
    for q in order:
        a, b = int(lists.starts[q]), int(lists.starts[q + 1])
        step = max(1, LISTED // (b - a))
        for first in range(a, b, step):
            yield _listed(lists, np.array([q]), (first, first + step), draws, min(step, b - a) * (b - a))


def _listed(lists: VisitedLists, order: Ints, places: tuple[int, int], draws: Floats, most: int) -> WeighedPairs:
    pairs, weights = np.empty((2, most), dtype=np.int64), np.empty(most if len(lists.copies) else 0)
    count = list_pairs(lists, order, *places, draws, pairs, weights)
    return pairs[0, :count], pairs[1, :count], weights[:count]
