"""Digests of queries by content: equal for equal documents and grades, in any order. Sketches: nearly equal for such.

Ids do not identify a query: unrelated files count their queries from 1, and joined data may hold a query twice under
different ids.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Features, Floats, Ints, Matrix, dense
from ranktune.solvers.data.columns.grammar import bits_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.values import csr_of

Bits: TypeAlias = NDArray[np.uint64]

NOTHING = 0
"""The digest of queries whose documents all have one grade."""
BLOCK = 1 << 16
"""Values that are processed together: what is computed of them stays in the processor's cache."""
SKETCH, SAMPLE = 3, 10_000
"""Waves of a sketch, and documents that give the scale of features."""
FAR = 1024.0
"""How many times their differences values are from 0 that are measured from their median."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_LAST = np.uint64(1 << 29)
"""A float64 whose bits are a multiple of this is a float32."""


def distinct(queries: Queries) -> Ints:
    """Return the number of the content of each query, (n_queries,), counted from 0 in order of first occurrence.

    Each query whose documents all have one grade counts as distinct.
    """
    numbers: dict[int, int] = {}
    result = np.empty(queries.n_queries, dtype=np.int64)
    for place, digest in enumerate(query_digests(queries)):
        result[place] = numbers.setdefault(-1 - place if digest == NOTHING else digest, len(numbers))
    return result


def given_columns(queries: Queries) -> tuple[str, ...] | None:
    """Return the columns that queries were given by; of categories and dates those of the table.

    None where they have no names.
    """
    names, encoding = queries.feature_names, queries.encoding
    if names is None or encoding is None or queries.contents is None:
        return None if names is None else tuple(sorted(names))
    return tuple(sorted({*encoding.sources(names).values()}))


def query_digests(queries: Queries, columns: Sequence[str] | None = None) -> list[int]:
    """Return 64 bits for each query, the same for the same documents and grades in any order; NOTHING for one grade.

    Without columns features count by their places. Else columns of these names do, in any order and as far as float32
    holds them, and those of categories and dates as they were given, so that other queries of the table do not matter.
    """
    wanted = frozenset(columns or ())
    if columns is None:
        by_place = np.random.default_rng(0).integers(0, 2**63, queries.n_features, dtype=np.uint64) * 2 + 1
        rows = _row_digests(queries.features, by_place, _as_bits)
    else:
        rows = _row_digests(queries.features, _keys(queries.feature_names or (), wanted), _rounded)
        if queries.contents is not None and queries.encoding is not None:
            rows += (_mixed(queries.contents) * _keys(queries.encoding.columns, wanted)).sum(axis=1, dtype=np.uint64)
    bits = _mixed(rows * _ODD + _mixed(_as_bits(queries.grades)) + _ODD)
    digests = np.add.reduceat(bits, queries.starts[:-1])
    lowest = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    digests[np.maximum.reduceat(queries.grades, queries.starts[:-1]) == lowest] = NOTHING
    result: list[int] = digests.tolist()
    return result


class Scale(NamedTuple):
    """What values of each feature are measured from, and how large their differences are, (n_features,) each."""

    origin: Floats
    size: Floats


def sketches(queries: Queries, scale: Scale) -> Floats:
    """Return a few numbers for each query, (n_queries, SKETCH + 1), that differ by little where all values do.

    They are its number of documents, and means over them of waves: the cosine of a random direction times the features,
    which are linear from their origin up to about their size, and logarithmic above.
    """
    generator = np.random.default_rng(1)
    directions = generator.normal(size=(queries.n_features, SKETCH)) / np.sqrt(queries.n_features)
    of_grade, phase = generator.normal(size=(2, SKETCH))
    waves = np.outer(queries.grades, of_grade) + phase
    rows = max(BLOCK // queries.n_features, 1) if isinstance(queries.features, np.ndarray) else queries.n_documents
    for a in range(0, queries.n_documents, rows):
        block = queries.features[a : a + rows]
        if isinstance(block, np.ndarray):
            waves[a : a + rows] += _squeezed(block, *scale) @ directions
        else:
            values = _squeezed(block.data, scale.origin[block.indices], scale.size[block.indices])
            waves += csr_of(values, block.indices, block.indptr, queries.n_features) @ directions
    lengths = queries.lengths[:, None]
    return np.hstack([np.add.reduceat(np.cos(waves), queries.starts[:-1], axis=0) / lengths, lengths])


def scale_of(parts: Sequence[Features]) -> Scale:
    """Return the scale of the features of all parts: how large values are that are not 0, measured from 0.

    Values that are all far from 0 beside their differences, by more than FAR times, are measured from their median.
    """
    samples = [matrix[:: max(matrix.shape[0] // SAMPLE, 1)] for matrix in parts]
    size = np.max([_typical(sample) for sample in samples], axis=0)
    origin, full = np.zeros_like(size), size > 0.0
    for matrix in parts:
        if not isinstance(matrix, np.ndarray):  # what is not stored is 0
            full &= np.bincount(matrix.indices, minlength=matrix.shape[1]) == matrix.shape[0]
    columns = np.flatnonzero(full)
    values = [dense(sample[:, columns]).astype(np.float64) for sample in samples]
    middle = np.median(np.concatenate(values), axis=0)
    with np.errstate(over="ignore"):
        spread = np.max([_typical(matrix - middle) for matrix in values], axis=0)
    far = (spread > 0.0) & (FAR * spread < size[columns])
    origin[columns[far]], size[columns[far]] = middle[far], FAR * spread[far]
    return Scale(origin, size)


def _typical(sample: Features) -> Floats:
    """Return about how large the values of each column are that are not 0, (n_features,).

    A mean of roots is ruled neither by few huge values nor by noise around 0.
    """
    counts = np.asarray((sample != 0.0).sum(axis=0), dtype=np.float64).ravel()
    roots = abs(sample) ** 0.25 if isinstance(sample, np.ndarray) else abs(sample).power(0.25)
    sums = np.nan_to_num(np.asarray(roots.sum(axis=0), dtype=np.float64).ravel())
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0) ** 4


def _squeezed(values: Matrix, origin: Floats, size: Floats) -> Floats:
    """Return values on their scale, missing and huge ones as numbers."""
    with np.errstate(over="ignore"):
        parts = np.divide(values - origin, size, out=np.zeros(values.shape), where=size > 0.0)
        np.arcsinh(parts, out=parts)
    return np.nan_to_num(parts, copy=False, nan=-np.pi, posinf=np.e**6, neginf=-(np.e**6))


def _keys(names: Iterable[str], wanted: Container[str]) -> Bits:
    """Return a number for each column by its name, 0 for one that is not wanted."""
    return np.array([bits_of(name) | 1 if name in wanted else 0 for name in names], dtype=np.uint64)


def _row_digests(features: Features, of_column: Bits, bits_of_values: Callable[[Matrix], Bits]) -> Bits:
    """Return 64 bits for each row: a sum over its values that are not zero, so dense and sparse rows agree."""
    n_rows, n_features = int(features.shape[0]), int(features.shape[1])
    if not isinstance(features, np.ndarray):
        running = np.zeros(len(features.data) + 1, dtype=np.uint64)  # sums wrap around, and so do their differences
        np.cumsum(_mixed(bits_of_values(features.data)) * of_column[features.indices], out=running[1:])
        return np.asarray(running[features.indptr[1:]] - running[features.indptr[:-1]])
    digests = np.empty(n_rows, dtype=np.uint64)
    rows = max(BLOCK // max(n_features, 1), 1)
    for a in range(0, n_rows, rows):
        bits = _mixed(bits_of_values(features[a : a + rows]))
        digests[a : a + rows] = (bits * of_column).sum(axis=1, dtype=np.uint64)
    return digests


def _as_bits(values: Matrix) -> Bits:
    return np.asarray((values.astype(np.float64) + 0.0).view(np.uint64))  # + 0.0 makes -0.0 zero


def _rounded(values: Matrix) -> Bits:
    """Return the bits of values as float32 holds them, missing ones as 0."""
    return (_as_bits(np.nan_to_num(values)) + _LAST // 2) // _LAST * _LAST


def _mixed(bits: Bits) -> Bits:
    """Return bits with every bit spread over all others; 0 stays 0."""
    half: Bits = (bits ^ (bits >> np.uint64(32))) * _ODD
    mixed: Bits = half ^ (half >> np.uint64(29))
    return mixed
