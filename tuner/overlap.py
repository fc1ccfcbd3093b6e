"""Queries that stand in two parts of a split: what is learnt from must not be what is scored.

Queries are the same where their documents and grades are, in any order; ids say little, since files that have nothing
to do with each other count their queries from 1. Queries that nothing can be learnt from (one grade) do not matter.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.arrays import Features
from ranktune.solvers.errors import DataError, RankTuneWarning
from ranktune.solvers.queries import Queries
from ranktune.tuner.split import Split

Bits: TypeAlias = NDArray[np.uint64]

NOTHING = 0
"""The digest of queries that do not matter."""
BLOCK = 1 << 20
"""Values that are looked at together."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


def without_shared(split: Split) -> Split:
    """Return split with each query in one part only: test keeps its own, validation what is left, training the rest.

    Warns (RankTuneWarning) with the number left out. Raises DataError where a part is left with nothing to learn from.
    """
    parts = {name: getattr(split, name) for name in ("test", "vali", "train")}
    present = {name: part for name, part in parts.items() if part is not None}
    if len(present) == 1:
        return split
    taken: dict[int, str] = {}
    for name, part in present.items():
        digests = _digests(part)
        shared = np.array([digest in taken for digest in digests])
        if shared.any():
            present[name] = _kept(name, part, shared, sorted({taken[digest] for digest in digests if digest in taken}))
        taken |= {digest: name for digest in digests if digest != NOTHING and digest not in taken}
    return replace(split, **present)


_CALLED = {"train": "training", "vali": "validation", "test": "test"}


def _kept(name: str, part: Queries, shared: NDArray[Any], others: list[str]) -> Queries:
    told = (
        f"{np.count_nonzero(shared)} of {part.n_queries} {_CALLED[name]} queries are also among the "
        f"{' and '.join(_CALLED[other] for other in others)} queries (same documents and grades)"
    )
    kept = part.select(np.flatnonzero(~shared))
    if kept.n_queries == 0 or not kept.has_pairs:
        remedy = "leave vali out: training queries are then cross-validated"
        if "test" in others:
            remedy = "give other test queries, or none: a fifth of the training queries is then set aside"
        raise DataError(
            f"{told}, and nothing is left to learn from. A score on what was learnt says nothing; {remedy}."
        )
    warnings.warn(f"{told}: they are left out of the {_CALLED[name]} queries.", RankTuneWarning, stacklevel=4)
    return kept


def _digests(queries: Queries) -> list[int]:
    """Return 64 bits for each query, the same for the same documents and grades in any order; NOTHING for one grade."""
    bits = _mixed(_row_digests(queries.features) * _ODD + _mixed(_as_bits(queries.grades)) + _ODD)
    digests = np.add.reduceat(bits, queries.starts[:-1])
    lowest = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    digests[np.maximum.reduceat(queries.grades, queries.starts[:-1]) == lowest] = NOTHING
    found: list[int] = digests.tolist()
    return found


def _row_digests(features: Features) -> Bits:
    """Return 64 bits for each row: a sum over its values that are not zero, so dense and sparse rows agree."""
    n_rows, n_features = features.shape
    of_column = np.random.default_rng(0).integers(0, 2**63, n_features, dtype=np.uint64) * 2 + 1
    if sparse.issparse(features):
        running = np.zeros(len(features.data) + 1, dtype=np.uint64)  # sums wrap around, and so do their differences
        np.cumsum(_mixed(_as_bits(features.data)) * of_column[features.indices], out=running[1:])
        return np.asarray(running[features.indptr[1:]] - running[features.indptr[:-1]])
    digests = np.empty(n_rows, dtype=np.uint64)
    rows = max(BLOCK // max(n_features, 1), 1)
    for a in range(0, n_rows, rows):
        digests[a : a + rows] = (_mixed(_as_bits(features[a : a + rows])) * of_column).sum(axis=1, dtype=np.uint64)
    return digests


def _as_bits(values: NDArray[Any]) -> Bits:
    return np.asarray((values.astype(np.float64) + 0.0).view(np.uint64))  # + 0.0 makes -0.0 zero


def _mixed(bits: Bits) -> Bits:
    """Return bits with every bit spread over all others; 0 stays 0."""
    half: Bits = (bits ^ (bits >> np.uint64(32))) * _ODD
    mixed: Bits = half ^ (half >> np.uint64(29))
    return mixed
