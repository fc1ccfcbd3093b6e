"""Shapley values of a function that is only evaluated: sampled over orders of the features.

The features of one document are put in place of the other's one after another, in a random order and in its reverse;
each contributes the change of the score at its turn. The mean over orders is an unbiased estimate, and adds up to the
difference of the scores whatever the orders. Source: Castro, Gomez & Tejada 2009; Mitchell et al. 2022 for reverses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix

ORDERS = 64
"""Orders of the features for each document at least, reverses included."""


def sampled_contributions(
    score: Callable[[Matrix], Floats], X: Matrix, documents: Ints, background: Ints, generator: np.random.Generator
) -> Floats:
    """Return each column's contribution to the score of the rows in documents, as tree_contributions does.

    score maps rows to their scores, each by itself. Cost: ORDERS times the columns in which two rows differ.
    """
    total = np.zeros((len(documents), X.shape[1]))
    orders = max(1, ORDERS // (2 * len(background)))
    for k, document in enumerate(documents):
        for other in background:
            a, b = X[document], X[other]
            differing = np.flatnonzero((a != b) & ~(np.isnan(a) & np.isnan(b)))
            for _ in range(orders if len(differing) else 0):
                order = generator.permutation(differing)
                for way in (order, order[::-1]):
                    rows = np.repeat(b[None, :], len(way) + 1, axis=0)
                    for place, j in enumerate(way):
                        rows[place + 1 :, j] = a[j]
                    total[k, way] += np.diff(score(rows)) / (2 * orders)
    return total / len(background)
