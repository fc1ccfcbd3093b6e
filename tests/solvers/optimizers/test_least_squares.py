"""Ridge by both ways against the closed form."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers import least_squares
from ranktune.solvers.optimizers.least_squares import NormalEquations


@pytest.mark.parametrize("way", ["equations", "small blocks", "iterated"])
@pytest.mark.parametrize("form", ["dense", "csr", "single"])
@pytest.mark.parametrize("by_query", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_both_ways_solve_the_normal_equations(
    way: str, form: str, by_query: bool, weighted: bool, hard_queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "iterated":
        monkeypatch.setattr(least_squares, "MAX_DENSE_FEATURES", 1)
    elif way == "small blocks":
        monkeypatch.setattr(least_squares, "BLOCK_BYTES", 8)
        monkeypatch.setattr(least_squares, "MIN_BLOCK_ROWS", 64)
        hard_queries = hard_queries.select(np.tile(np.arange(8), 6))
        length = int(hard_queries.n_documents)  # a long query is cut into blocks
        hard_queries = replace(
            hard_queries.replaced(query_weights=None), starts=np.array([0, 10, length]), query_ids=np.arange(2)
        )
    X: Any = 3.0 + hard_queries.features.astype(np.float32)
    X[:, 0] *= 100
    weights = np.linspace(0.5, 2.0, hard_queries.n_queries) if weighted else None
    rows = np.repeat(np.ones(hard_queries.n_queries) if weights is None else weights, hard_queries.lengths)
    dense = X.astype(np.float64)
    group = hard_queries.query_of_document if by_query else np.zeros(len(X), dtype=int)
    for g in np.unique(group):
        part = group == g
        dense[part] -= np.average(dense[part], axis=0, weights=rows[part])
    multiplier = np.array([0.01, 1.0, 2.0, 0.0, 1.0, 0.5])
    target = np.random.default_rng(5).normal(size=len(X))
    Z = dense * multiplier
    expected = np.linalg.solve(Z.T @ (rows[:, None] * Z) + 2.0 * np.eye(6), Z.T @ (rows * target))
    given = {"dense": X.astype(np.float64), "csr": sparse.csr_array(X.astype(np.float64)), "single": X}[form]
    queries = replace(hard_queries.with_features(given).replaced(query_weights=weights), grades=target)
    equations = NormalEquations(queries, multiplier, by_query)
    equations.solve(5.0)  # what was asked before changes nothing
    for _ in range(2):
        np.testing.assert_allclose(equations.solve(2.0), expected, rtol=1e-7, atol=1e-9)
