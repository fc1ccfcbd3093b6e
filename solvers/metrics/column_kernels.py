"""The discounted sums of many rankings at once: those by each column of a part of X, equal values averaged.

A sum needs the k greatest values of a column in a query, and where they stand. The values of all columns are sorted
into their k greatest row by row, so that one comparison of the machine serves several columns; a second look at the
rows adds the value of each document to the rank of its feature.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled

ROWS = 4
"""Rows that are sorted in together: their values stay in registers between the ranks."""


@compiled
def column_sums(
    X: Matrix, columns: Ints, sign: np.floating, starts: Ints, values: Floats, discounts: Floats, sums: Floats
) -> None:
    """Overwrite sums, (n_queries, len(columns)), with those of the documents ranked by sign times each column of X.

    A sum is that of values times discounts over the first len(discounts) ranks, as kernels.discounted_sums has it with
    ties averaged, to the bit. sign is 1 or -1 in the type of X. Cost: k comparisons a value.
    """
    k, width = len(discounts), len(columns)
    greatest, rows = np.empty((k, width), X.dtype), np.empty((ROWS, width), X.dtype)
    counts, value_sums = np.empty((k, width)), np.empty((k, width))  # of the documents whose value first has that rank
    for q in range(len(starts) - 1):
        first, stop = starts[q], starts[q + 1]
        top = min(k, stop - first)
        _greatest(X, columns, sign, first, stop, rows, greatest)
        for r in range(top):
            for c in range(width):
                counts[r, c] = value_sums[r, c] = 0.0
        for i in range(first, stop):
            for c in range(width):
                value = sign * X[i, columns[c]]
                if value >= greatest[top - 1, c]:
                    rank = 0
                    while greatest[rank, c] > value:
                        rank += 1
                    counts[rank, c] += 1.0
                    value_sums[rank, c] += values[i]
        for c in range(width):
            total, b = 0.0, 0
            while b < top:
                mean, end = value_sums[b, c] / counts[b, c], min(b + int(counts[b, c]), top)
                for r in range(b, end):
                    total += mean * discounts[r]
                b = end
            sums[q, c] = total


@compiled
def _greatest(
    X: Matrix, columns: Ints, sign: np.floating, first: int, stop: int, rows: Matrix, greatest: Matrix
) -> None:
    """Overwrite greatest, (k, len(columns)), with the greatest of sign times the rows first to stop, falling."""
    for r in range(len(greatest)):
        for c in range(len(columns)):
            greatest[r, c] = -np.inf
    for start in range(first, stop, ROWS):
        for i in range(start, start + ROWS):
            for c in range(len(columns)):
                rows[i - start, c] = sign * X[i, columns[c]] if i < stop else -np.inf
        for r in range(len(greatest)):
            for c in range(len(columns)):
                a = greatest[r, c]
                b0, b1, b2, b3 = rows[0, c], rows[1, c], rows[2, c], rows[3, c]
                a0 = a if a > b0 else b0
                rows[0, c] = b0 if a > b0 else a
                a1 = a0 if a0 > b1 else b1
                rows[1, c] = b1 if a0 > b1 else a0
                a2 = a1 if a1 > b2 else b2
                rows[2, c] = b2 if a1 > b2 else a1
                rows[3, c] = b3 if a2 > b3 else a2
                greatest[r, c] = a2 if a2 > b3 else b3
