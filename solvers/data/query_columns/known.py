"""The columns that queries can have: weights, positions, times, scores of a baseline, clicks, cells of their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.query_columns.column import FEATURE, QUERY, Column, numeric
from ranktune.solvers.data.query_columns.monotone import Monotone, signs_of

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

Weights: TypeAlias = Sequence[float] | Array | Mapping[Any, float]


LARGEST = 1e100
"""Sums and squares of larger weights, and of the inverse of smaller ones, are no numbers."""


def is_weight(values: Array) -> Array:
    """Return which values are positive, and can be summed up and squared."""
    return np.asarray((values > 1.0 / LARGEST) & (values < LARGEST))


class QueryWeights(Column):
    """The weights of queries, which can be given by id, in the order of queries, or one a row."""

    def given(self, values: Weights, name: str, queries: Queries) -> Array:
        """Return the weights of queries, (n_queries,)."""
        if isinstance(values, Mapping):
            ids = queries.query_ids.tolist()
            known = set(ids)
            strange = [each for each in values if each not in known]
            if strange:
                raise DataError(f"{name} names the query {strange[0]!r}, which the data do not hold.")
            return np.array([values.get(each, 1.0) for each in ids], dtype=np.float64)
        weights = np.ascontiguousarray(numeric(values, name), dtype=np.float64)
        if weights.shape == (queries.n_documents,) != (queries.n_queries,):
            rows = weights if queries.rows is None else weights[queries.rows]
            weights = rows[queries.starts[:-1]]
            differ = np.flatnonzero(rows != np.repeat(weights, queries.lengths))
            if len(differ):
                query = queries.query_ids[np.searchsorted(queries.starts, differ[0], side="right") - 1]
                raise DataError(
                    f"{name} differs between the documents of query {query}: a weight says how often a query counts. "
                    "Give all documents of a query the same."
                )
        return weights


_RULE = f"weights must be positive, from {1.0 / LARGEST:g} to {LARGEST:g}. Leave out {{}} that should not count."

QUERY_WEIGHTS = QueryWeights("weight", 1.0, good=is_weight, rule=_RULE.format("queries"), of=QUERY, file="weights")
DOCUMENT_WEIGHTS = Column(
    "weight",
    1.0,
    good=is_weight,
    rule=_RULE.format("documents"),
    is_void=lambda values: bool((values == 1.0).all()),
)


class _Signs(Column):
    """The signs of the monotone constraints of features, which can be given by name."""

    def given(self, values: Monotone, name: str, queries: Queries) -> Array | None:
        """Return the sign of each feature, (n_features,); None where there is no constraint."""
        return signs_of(values, queries.n_features, queries.feature_names)


LAST_POSITION = 2**31 - 1
"""The largest position: libraries take 32 bits."""


def _is_position(values: Array) -> Array:
    return np.asarray((values >= 0) & (values <= LAST_POSITION) & (values == np.floor(values)))


POSITIONS = Column(
    "position",
    0,
    np.int64,
    good=_is_position,
    rule=f"positions are whole numbers from 0 to {LAST_POSITION}. Give those at which documents were shown.",
    is_void=lambda values: bool((values == values[0]).all()),
)
TIMES = Column(
    "time", good=np.isfinite, rule="times are finite numbers or dates. Give each document one.", has_dates=True
)
MONOTONE = _Signs("sign", 0, np.int64, is_digested=False, of=FEATURE)
BASELINE = Column(is_digested=False)
CLICKS = Column()
CONTENTS = Column(absent=0, dtype=np.uint64, is_digested=False)
