"""Weights of queries and documents, as callers give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.core.arrays import Array, Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.values import numeric

Weights: TypeAlias = Sequence[float] | Array | Mapping[Any, float]


def query_weights_of(given: Weights, ids: Array) -> Floats:
    """Return the weights of queries, (n_queries,), which are given in their order or by id."""
    if not isinstance(given, Mapping):
        return np.ascontiguousarray(numeric(given, "query_weights"), dtype=np.float64)
    known = set(ids.tolist())
    strange = [name for name in given if name not in known]
    if strange:
        raise DataError(f"query_weights names the query {strange[0]!r}, which the data do not hold.")
    return np.array([given.get(name, 1.0) for name in ids.tolist()], dtype=np.float64)


def document_weights_of(given: ArrayLike, n_documents: int) -> Floats:
    """Return the weights of documents, in the order of the caller's rows."""
    weights = np.ascontiguousarray(numeric(given, "document_weights"), dtype=np.float64)
    check_weights(weights, n_documents, "document")
    return weights


def check_weights(weights: Floats, count: int, kind: str) -> None:
    """Raise DataError unless there is one positive, finite weight for each query or document."""
    many = {"query": "queries", "document": "documents"}[kind]
    if weights.shape != (count,):
        raise DataError(f"{kind}_weights has shape {weights.shape} for {count} {many}: give one weight a {kind}.")
    bad = ~(np.isfinite(weights) & (weights > 0.0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"the weight of {kind} number {at} is {weights[at]}: weights must be positive and finite. "
            f"Leave out {many} that should not count."
        )
