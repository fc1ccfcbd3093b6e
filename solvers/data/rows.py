"""Rows of dense or CSR features for kernels: one row, the difference of two, or the adjacent rows of one list.

d  features    z  (1, d) a difference x_i - x_j of two rows in its first m entries; of sparse rows the stored values
columns        (d,) the column of each entry of z; unused for dense rows, where entry and column are the same

Of a list, only the columns that are stored count, all of them where rows are dense: they are numbered 0 to m - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Features, Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined, instruction
from ranktune.solvers.data.products import csr_parts, row_product

if TYPE_CHECKING:
    from llvmlite import ir

CACHE_LINE = 64
"""Bytes."""


class MatrixRows(NamedTuple):
    """A matrix in one of two forms, of one type for kernels; the other form is empty."""

    dense: Matrix
    data: Matrix
    indices: Indices
    indptr: Indices
    is_sparse: bool


def rows_of(features: Features) -> MatrixRows:
    """Return features, (n_documents, n_features), for kernels; copied only if sparse with unsorted or repeated columns.

    64-bit column indices are copied to 32 bits.
    """
    if isinstance(features, np.ndarray):
        return MatrixRows(features, np.zeros(0, features.dtype), np.zeros(0, np.uint32), np.zeros(1, np.int64), False)
    if not features.has_canonical_format:
        features = features.copy()
        features.sum_duplicates()
    data, indices, indptr = csr_parts(features)
    indices, indptr = indices.astype(np.uint32, copy=False), indptr.astype(np.int64, copy=False)
    return MatrixRows(np.zeros((0, 0), features.dtype), data, indices, indptr, True)


class ListColumns(NamedTuple):
    """The columns of one list, m of them.

    place (d,) the number of each column of X, -1 for one that is not stored; columns, low, high, filled (d,) by number:
    the column of X, its least and greatest value in the list, and how many values are stored
    """

    place: Ints
    columns: Ints
    low: Matrix
    high: Matrix
    filled: Ints


@inlined
def no_columns(rows: MatrixRows, d: int) -> ListColumns:
    """Return what open_list fills."""
    low, high = np.empty(d, dtype=rows.dense.dtype), np.empty(d, dtype=rows.dense.dtype)
    place, columns, filled = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    for j in range(d):
        place[j], columns[j] = -1, j
    return ListColumns(place, columns, low, high, filled)


@compiled
def open_list(rows: MatrixRows, a: int, b: int, at: ListColumns) -> int:
    """Return m, the number of columns of the rows a to b - 1; fill at, but for filled of dense rows.

    low and high have a 0 where fewer than all rows store a value. close_list must have closed the list before.
    """
    if not rows.is_sparse:
        ranges(rows.dense[a:b], at.low, at.high)
        return int(rows.dense.shape[1])
    place, columns, low, high, filled = at
    data, indices, m = rows.data, rows.indices, 0
    for p in range(rows.indptr[a], rows.indptr[b]):
        c, x = indices[p], data[p]
        r = place[c]
        if r < 0:
            place[c] = m
            columns[m], low[m], high[m], filled[m] = c, x, x, 1
            m += 1
            continue
        low[r] = x if x < low[r] else low[r]
        high[r] = x if x > high[r] else high[r]
        filled[r] += 1
    for r in range(m):
        if filled[r] < b - a:
            low[r] = 0.0 if low[r] > 0.0 else low[r]
            high[r] = 0.0 if high[r] < 0.0 else high[r]
    return m


@inlined
def close_list(rows: MatrixRows, m: int, at: ListColumns) -> None:
    """Make at ready for the next list, after one of m columns."""
    if rows.is_sparse:
        for r in range(m):
            at.place[at.columns[r]] = -1


@inlined
def ranges(X: Matrix, low: Matrix, high: Matrix) -> None:
    """Overwrite low and high with the least and the greatest value of each column."""
    for j in range(X.shape[1]):
        low[j], high[j] = X[0, j], X[0, j]
    for i in range(1, X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]


@compiled
def score_list(rows: MatrixRows, a: int, b: int, at: ListColumns, weights: Floats, out: Floats) -> None:
    """Overwrite out, (b - a,), with the scores of the rows of a list by the weights of its columns."""
    X, data, indices, indptr, is_sparse = rows
    if not is_sparse:
        for i in range(a, b):
            out[i - a] = row_product(X, i, weights)
        return
    place = at.place
    for i in range(a, b):
        score = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            score += data[p] * weights[place[indices[p]]]
        out[i - a] = score


@compiled
def add_list(rows: MatrixRows, a: int, b: int, at: ListColumns, by_document: Floats, out: Floats) -> None:
    """Add the rows of a list, times by_document, (b - a,), to out, a number per column of the list."""
    X, data, indices, indptr, is_sparse = rows
    if is_sparse:
        place = at.place
        for i in range(a, b):
            factor = by_document[i - a]
            for p in range(indptr[i], indptr[i + 1] if factor != 0.0 else indptr[i]):
                out[place[indices[p]]] += data[p] * factor
        return
    d, i = X.shape[1], a
    while i + 4 <= b:
        e, f, g, h = by_document[i - a], by_document[i - a + 1], by_document[i - a + 2], by_document[i - a + 3]
        if e != 0.0 or f != 0.0 or g != 0.0 or h != 0.0:
            for j in range(d):
                out[j] = (((out[j] + X[i, j] * e) + X[i + 1, j] * f) + X[i + 2, j] * g) + X[i + 3, j] * h
        i += 4
    while i < b:
        for j in range(d):
            out[j] += X[i, j] * by_document[i - a]
        i += 1


@inlined
def difference(rows: MatrixRows, i: int, j: int, z: Floats, columns: Ints) -> int:
    """Overwrite z, and columns if sparse, with x_i - x_j; return the number of entries m. Cost: the stored values."""
    if not rows.is_sparse:
        for c in range(rows.dense.shape[1]):
            z[0, c] = np.float64(rows.dense[i, c]) - np.float64(rows.dense[j, c])
        return int(rows.dense.shape[1])
    m, a, b = 0, rows.indptr[i], rows.indptr[j]
    while a < rows.indptr[i + 1] or b < rows.indptr[j + 1]:
        left = rows.indices[a] if a < rows.indptr[i + 1] else np.uint32(4294967295)
        right = rows.indices[b] if b < rows.indptr[j + 1] else np.uint32(4294967295)
        value = 0.0
        if left <= right:
            value += np.float64(rows.data[a])
            a += 1
        if right <= left:
            value -= np.float64(rows.data[b])
            b += 1
        z[0, m], columns[m] = value, min(left, right)
        m += 1
    return m


@inlined
def product(rows: MatrixRows, z: Floats, columns: Ints, m: int, w: Floats) -> float:
    """Return z'w; w is (d,)."""
    total = 0.0
    if rows.is_sparse:
        for k in range(m):
            total += z[0, k] * w[columns[k]]
        return total
    return row_product(z, 0, w)


@inlined
def stretched_square(rows: MatrixRows, z: Floats, columns: Ints, m: int, stretch: Floats) -> float:
    """Return z'S z, S the diagonal matrix of stretch, (d,)."""
    total = 0.0
    if rows.is_sparse:
        for k in range(m):
            total += z[0, k] * z[0, k] * stretch[columns[k]]
        return total
    for c in range(m):
        total += z[0, c] * z[0, c] * stretch[c]
    return total


@inlined
def add(rows: MatrixRows, z: Floats, columns: Ints, m: int, factor: float, stretch: Floats, w: Floats) -> None:
    """Add factor S z to w, S the diagonal matrix of stretch, (d,)."""
    if rows.is_sparse:
        for k in range(m):
            w[columns[k]] += factor * stretch[columns[k]] * z[0, k]
    else:
        for c in range(m):
            w[c] += factor * stretch[c] * z[0, c]


def _code(typing_context: object, X: Any, i: Any) -> object:
    """Return the signature of fetch_row and the function that emits its LLVM code."""
    from numba.core import types

    return types.void(X, i), _emit


@instruction(_code)
def fetch_row(X: Matrix, i: int) -> None:
    """Have row i of X brought into cache while other work is done; nothing where X has no columns."""


def _emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
    from llvmlite import ir
    from numba.core import cgutils

    X = context.make_array(signature.args[0])(context, builder, arguments[0])
    index, number, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
    prefetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    )
    n_features = builder.extract_value(X.shape, 1)
    row = builder.gep(X.data, [builder.mul(arguments[1], n_features)])
    line = ir.Constant(index, CACHE_LINE * 8 // signature.args[0].dtype.bitwidth)
    with cgutils.for_range_slice(builder, ir.Constant(index, 0), n_features, line) as (at, _):
        place = builder.bitcast(builder.gep(row, [at]), byte)
        builder.call(prefetch, [place, *(ir.Constant(number, option) for option in (0, 3, 1))])  # to read, keep, data
    return context.get_dummy_value()


@inlined
def row_score(rows: MatrixRows, i: int, w: Floats) -> float:
    """Return x_i'w; the same bits as products.scores for dense rows."""
    total = 0.0
    if rows.is_sparse:
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[k] * w[rows.indices[k]]
        return total
    return row_product(rows.dense, i, w)


@inlined
def add_row(rows: MatrixRows, i: int, factor: float, stretch: Floats, w: Floats) -> None:
    """Add factor S x_i to w, S the diagonal matrix of stretch, (d,)."""
    if rows.is_sparse:
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            c = rows.indices[k]
            w[c] += factor * stretch[c] * rows.data[k]
    else:
        for c in range(rows.dense.shape[1]):
            w[c] += factor * stretch[c] * rows.dense[i, c]
