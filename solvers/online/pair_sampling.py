"""Sampling of pairs of documents of different grades, at a constant cost each: uniform, or by weights of documents.

The first document of a pair is drawn from all that have a partner ("documents": long queries count more), or from a
query that is drawn uniformly ("queries"); the second document from those of the same query with another grade.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, as_ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.online.pairs import by_grade
from ranktune.solvers.online.weighted_draws import mass_of, partner, places


class PairTable(NamedTuple):
    """The index of partners; a block is the documents of one grade of one query, adjacent in rows.

    rows    (n_documents,) the rows of each query, lowest grade first
    block   (n_documents,) the block of each position in rows   first   (n_blocks + 1,) its first position
    query   (n_blocks,) its query                               starts  (n_queries + 1,) first position of each query
    useful  (n_useful,) queries with at least two grades        before  (n_useful + 1,) their documents, cumulated
    mass    of rows: see online.weighted_draws
    """

    rows: Ints
    block: Ints
    first: Ints
    query: Ints
    starts: Ints
    useful: Ints
    before: Ints
    mass: Floats


def pair_table(queries: Queries) -> PairTable:
    """Return the table of queries. Cost: a sort of the documents and one pass over X."""
    rows, of_query = by_grade(queries), queries.query_of_document
    grades = queries.grades[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (grades[1:] != grades[:-1]) | (of_query[1:] != of_query[:-1])
    block, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    query = of_query[first]
    useful = np.flatnonzero(np.bincount(query, minlength=queries.n_queries) > 1)
    before = np.concatenate([[0], np.cumsum(queries.lengths[useful])])
    starts, mass = as_ints(queries.starts), mass_of(queries, rows)
    return PairTable(rows, block, np.append(first, len(rows)), query, starts, useful, before.astype(np.int64), mass)


def first_positions(table: PairTable, draws: Floats, sampling: str) -> Ints:
    """Return the position of a first document for each number of draws, in [0, 1)."""
    n_useful = len(table.useful)
    if len(table.mass):
        start, end = table.starts[table.useful], table.starts[table.useful + 1]
        shares = np.ones(n_useful) if sampling == "queries" else table.mass[end] - table.mass[start]
        up_to = np.cumsum(shares)
        number = np.minimum(np.searchsorted(up_to, draws * up_to[-1], side="right"), n_useful - 1)
        part = (draws * up_to[-1] - up_to[number]) / shares[number] + 1.0
        return places(table.mass, start[number], end[number], part)
    if sampling == "queries":
        number = np.minimum((draws * n_useful).astype(np.int64), n_useful - 1)
        start, length = table.starts[table.useful[number]], np.diff(table.before)[number]
        within = (draws * n_useful - number) * length
        return np.asarray(start + np.minimum(within.astype(np.int64), length - 1))
    total = int(table.before[-1])
    document = np.minimum((draws * total).astype(np.int64), total - 1)
    if total == len(table.rows):
        return document
    number = np.searchsorted(table.before, document, side="right") - 1
    return np.asarray(table.starts[table.useful[number]] + document - table.before[number])


def draw(table: PairTable, count: int, sampling: str, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return count pairs drawn from all queries: the rows of the better documents and those of the worse."""
    first = first_positions(table, generator.random(count), sampling)
    return _with_partners(table, first, generator)


def draw_from(table: PairTable, query: int, count: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return count pairs drawn from one query that has two grades."""
    a, b = int(table.starts[query]), int(table.starts[query + 1])
    draws = generator.random(count)
    if len(table.mass):
        return _with_partners(table, places(table.mass, np.array(a), np.array(b), draws), generator)
    first = a + np.minimum((draws * (b - a)).astype(np.int64), b - a - 1)
    return _with_partners(table, first, generator)


def _with_partners(table: PairTable, first: Ints, generator: np.random.Generator) -> tuple[Ints, Ints]:
    better, worse = np.empty((2, len(first)), dtype=np.int64)
    partners(table, first, generator.random(len(first)), better, worse)
    return better, worse


@compiled
def partners(table: PairTable, positions: Ints, draws: Floats, better: Ints, worse: Ints) -> None:
    """Overwrite better and worse with the rows of the pairs of each position and a partner drawn for it."""
    for t in range(len(positions)):
        p = positions[t]
        g = table.block[p]
        a, b = table.starts[table.query[g]], table.starts[table.query[g] + 1]
        others = b - a - (table.first[g + 1] - table.first[g])
        r = a + min(int(draws[t] * others), others - 1)
        if r >= table.first[g]:
            r += table.first[g + 1] - table.first[g]
        if len(table.mass) > 0:
            r = partner(table.mass, a, b, table.first[g], table.first[g + 1], draws[t])
        better[t], worse[t] = table.rows[max(p, r)], table.rows[min(p, r)]
