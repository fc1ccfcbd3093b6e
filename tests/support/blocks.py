"""Blocks of queries, and workers that lose what they keep."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers import Queries
from ranktune.solvers.data.blocked import OpenBlock


class Keeping:
    """Blocks that keep what functions leave there, but for those that lose it before a call, drawn at random."""

    def __init__(self, loss: float = 0.0) -> None:
        self.generator, self.loss, self.lost = np.random.default_rng(0), loss, 0
        self.names: list[str] = []

    def open(self, sources: Sequence[Any]) -> None:
        self.blocks = [OpenBlock(source) for source in sources]

    def map(self, function: Any, *arguments: Any, **named: Any) -> list[Any]:
        self.names.append(function.__name__)
        for block in self.blocks:
            if self.generator.random() < self.loss:
                self.lost += len(block.cache)
                block.cache.clear()
        return [function(block, *arguments, **named) for block in self.blocks]


def parts_of(seed: int, *, n_features: int = 6, lengths: int = 12, n_queries: int = 120, kind: str = "dense") -> Any:
    """Three blocks of different sizes, the last of one query without pairs, and all queries."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 2 * lengths, n_queries)
    n = int(sizes.sum())
    X = generator.normal(size=(n, n_features)) * np.geomspace(0.1, 10.0, n_features)
    X[:, 1] = 3.0
    if kind == "sparse":
        X *= generator.random(X.shape) < 0.2
    y = np.clip(np.round(X @ generator.normal(size=n_features) / 5.0 + generator.normal(size=n)), 0, 4)
    y[n - sizes[-1] :] = 1.0
    weights = generator.random(n_queries) + 0.5 if kind == "weighted" else None
    of_documents = generator.random(n) + 0.5 if kind == "documents" else None
    features = sparse.csr_array(X) if kind == "sparse" else X.astype(np.float32)
    queries = Queries.from_arrays(features, y, group=sizes, query_weights=weights, document_weights=of_documents)
    cuts = [0, n_queries // 3, n_queries - 1, n_queries]
    return [queries.select(np.arange(a, b)) for a, b in pairwise(cuts)], queries
