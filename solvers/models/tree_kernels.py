"""Scores of trees, in compiled code. The arrays are those of ranktune.solvers.models.trees; rows go through in blocks.

A block of rows passes one tree after another, so that both stay in cache. A row goes left where x <= threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled

ROWS = 256
"""Rows of a block."""


@compiled
def add_dense(X: Any, column: Any, threshold: Floats, children: Any, value: Floats, starts: Ints, out: Floats) -> None:
    """Add to out, (n_rows,), what the trees answer to the rows of X, tree by tree in their order."""
    for a in range(0, X.shape[0], ROWS):
        b = min(a + ROWS, X.shape[0])
        for t in range(len(starts) - 1):
            first = starts[t]
            if first == starts[t + 1]:
                for i in range(a, b):
                    out[i] += value[first + t]
                continue
            for i in range(a, b):
                node = first
                while node >= 0:
                    node = children[node, np.int64(not X[i, column[node]] <= threshold[node])]
                out[i] += value[~node]


@compiled
def add_csr(
    data: Any,
    indices: Any,
    indptr: Any,
    place: Any,
    width: int,
    column: Any,
    threshold: Floats,
    children: Any,
    value: Floats,
    starts: Ints,
    out: Floats,
) -> None:
    """Add to out what the trees answer to the rows of a CSR matrix; what it does not store is 0.

    place is where a feature stands among the width that the trees look at, (n_features,), or -1; column likewise.
    """
    rows = max(1, min(ROWS, 2**20 // max(width, 1)))
    block = np.zeros((rows, max(width, 1)))
    for a in range(0, len(out), rows):
        b = min(a + rows, len(out))
        for i in range(a, b):
            for k in range(indptr[i], indptr[i + 1]):
                if place[indices[k]] >= 0:
                    block[i - a, place[indices[k]]] += data[k]
        add_dense(block[: b - a], column, threshold, children, value, starts, out[a:b])
        for i in range(a, b):
            for k in range(indptr[i], indptr[i + 1]):
                if place[indices[k]] >= 0:
                    block[i - a, place[indices[k]]] = 0.0
