"""Data for rankers that learn together."""

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, dense
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.queries import Queries


def linear_queries(n_queries: int, seed: int, d: int = 9, *, is_sparse: bool = False, noise: float = 0.5) -> Queries:
    """Queries of 2 to 13 documents whose grades follow a linear score; some have one grade, some equal documents.

    Of sparse features one in four is filled. The last feature has one value in each query.
    """
    generator = np.random.default_rng(seed)
    weights = np.random.default_rng(99).normal(size=d)
    lengths = generator.integers(2, 14, n_queries)
    qid = np.repeat(np.arange(n_queries), lengths)
    X = generator.normal(size=(len(qid), d))
    if is_sparse:
        X *= generator.random(X.shape) < 0.25
    else:
        X[:, -1] = qid % 5
    X[1::9] = X[0::9][: len(X[1::9])]
    score = X @ weights + noise * generator.normal(size=len(X))
    grades = np.digitize(score, [0.0, 1.5, 3.0]).astype(float)
    grades[qid % 11 == 3] = 1.0
    X = X.astype(np.float32)
    return Queries.from_arrays(sparse.csr_array(X) if is_sparse else X, grades, qid=qid)


def parts_of(queries: Queries, rows: int) -> list[Queries]:
    """Consecutive blocks of so many documents."""
    return [block_of(queries, first, last) for first, last in query_ranges(queries.starts, rows)]


def differences(queries: Queries, pair_order: str = "rows") -> list[Floats]:
    """Better minus worse of every pair, query by query: of each row with all later ones, or of each worse with all."""
    X, y = dense(queries.features).astype(np.float64), queries.grades
    pairs: list[tuple[int, int]] = []
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        if pair_order == "rows":
            pairs += [(i, j) for i in range(a, b) for j in range(i + 1, b) if y[i] != y[j]]
        else:
            pairs += [(i, j) for i in range(a, b) for j in range(a, b) if y[i] < y[j]]
    return [X[i] - X[j] if y[i] > y[j] else X[j] - X[i] for i, j in pairs]
