"""Draws of documents by their weights.

mass  (n_documents + 1,) the weights of the documents before each position, and of all; empty where each counts once
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.grades import NO_COPIES, copies_of
from ranktune.solvers.data.queries import Queries


def mass_of(queries: Queries, rows: Ints) -> Floats:
    """Return the mass of rows, which put the documents of each query in some order."""
    copies = copies_of(queries)
    return np.concatenate([[0.0], np.cumsum(copies[rows])]) if len(copies) else NO_COPIES


def places(mass: Floats, first: Ints, last: Ints, shares: Floats) -> Ints:
    """Return a position from first up to but without last by its weight for each number of shares, in [0, 1)."""
    at = np.searchsorted(mass, mass[first] + shares * (mass[last] - mass[first]), side="right") - 1
    return np.clip(at, first, last - 1)


@inlined
def partner(mass: Floats, a: int, b: int, first: int, last: int, share: float) -> int:
    """Return a position of a query, a to b - 1, but not one from first to last - 1, by its weight."""
    block = mass[last] - mass[first]
    at = mass[a] + share * (mass[b] - mass[a] - block)
    at += block if at >= mass[first] else 0.0
    r = min(max(np.searchsorted(mass[a : b + 1], at, side="right") - 1 + a, a), b - 1)
    if first <= r < last:  # by rounding
        r = last if last < b else first - 1
    return int(r)


@compiled
def draw_by_weight(grades: Floats, rows: Ints, mass: Floats, a: int, b: int, draws: Floats, pairs: Ints) -> None:
    """Overwrite pairs, (2, n), with the better and worse rows of pairs of a query, by the product of their weights.

    rows[a:b] are those of the query, lowest grade first.
    """
    first, last, before = np.empty(b - a, dtype=np.int64), np.empty(b - a, dtype=np.int64), np.zeros(b - a + 1)
    for p in range(a, b):
        new = p == a or grades[rows[p]] != grades[rows[p - 1]]
        first[p - a] = p if new else first[p - a - 1]
    for p in range(b - 1, a - 1, -1):
        last[p - a] = last[p - a + 1] if p + 1 < b and first[p - a + 1] == first[p - a] else p + 1
    for p in range(b - a):
        others = mass[b] - mass[a] - (mass[last[p]] - mass[first[p]])
        before[p + 1] = before[p] + (mass[a + p + 1] - mass[a + p]) * others
    for t in range(len(draws)):
        number = draws[t] * before[-1]
        p = min(np.searchsorted(before, number, side="right") - 1, b - a - 1)
        share = (number - before[p]) / (before[p + 1] - before[p])
        r = partner(mass, a, b, first[p], last[p], share)
        pairs[0, t], pairs[1, t] = rows[max(a + p, r)], rows[min(a + p, r)]
