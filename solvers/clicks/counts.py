"""Impressions and clicks by query, document and position: all that most click models need to know of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ranktune.solvers.clicks.impressions import Impressions
from ranktune.solvers.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Counts:
    """How often a document was shown for a query at a position, and clicked, (n,) each, in rising order of the three.

    shown: impressions; clicks: the sum of their weights; queries, documents: the names.
    """

    query: Ints
    document: Ints
    position: Ints
    shown: Floats
    clicks: Floats
    queries: Sequence[str]
    documents: Sequence[str]

    @classmethod
    def of(cls, batches: Iterable[Impressions]) -> Self:
        """Return the counts of all batches of a log; the memory is that of the counts and one batch."""
        keys, sums = np.empty((0, 3), dtype=np.int64), np.empty((0, 2))
        queries: Sequence[str] = ()
        documents: Sequence[str] = ()
        for batch in batches:
            queries, documents = batch.queries, batch.documents
            rows = np.column_stack([batch.query, batch.document, batch.position])
            values = np.column_stack([np.ones(len(rows)), batch.click])
            keys, places = np.unique(np.vstack([keys, rows]), axis=0, return_inverse=True)
            total = np.zeros((len(keys), 2))
            np.add.at(total, places.ravel(), np.vstack([sums, values]))
            sums = total
        return cls(*keys.T, *sums.T, queries, documents)
