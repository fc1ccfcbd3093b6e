"""The two products that every linear solver is made of: X w and X' v, dense or CSR, summed in float64.

X  (n_documents, n_features) features, float32 or float64, C-ordered or scipy.sparse.csr_array
w  (n_features,) weights             v  (n_documents,) one number per document

block gives the products of a range of rows, so that a caller can do both on a part of X while it is in cache.

row_product, the inner product of a dense row with w, is summed in one order, which gives the same bits on every
machine. A compiler may not reorder a floating-point sum by itself, so that a plain loop adds one number at a time;
allowing it to (fastmath) would make results depend on the width of the machine's vectors. Here the order is fixed: 32
interleaved partial sums of doubles, added pairwise at the end. _partial_sums states it as a plain loop; kernels run it
as the LLVM code below, four registers of 8 doubles, which LLVM splits where vectors are narrower. With the plain loop
compiled in its place, whole fits took longer: with 46 features PairwisePegasos 1.5, ListNet 1.4 and RankSVM 1.25 times,
with 136 PairwisePerceptron 1.5, SOLAR1 1.3 and RankSVM 1.1 times, with 700 ListNet 1.1 times.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from ranktune.solvers.core.arrays import Features, Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import as_written, compiled, instruction, is_worth_loading

if TYPE_CHECKING:
    from llvmlite import ir

Overwrite: TypeAlias = Callable[[Floats, Floats], None]
Add: TypeAlias = Callable[[Floats, Floats], None]

MANY_FEATURES = 5000
"""With fewer features than this, all weights are in the nearest cache anyway."""
LANES = 8
"""Doubles that are added at once."""


def scores(features: Features, weights: Floats) -> Floats:
    """Return X w, (n_documents,), accumulated in float64 whatever the features are. Cost: one pass over X."""
    result = np.empty(features.shape[0])
    if isinstance(features, np.ndarray) and not is_worth_loading(features.size):
        with np.errstate(all="ignore"):
            result[:] = as_written(row_product)(features, slice(None), weights)
        return result
    times, _ = block(features, 0, len(result))
    times(weights, result)
    return result


def transposed(features: Features, by_document: Floats) -> Floats:
    """Return X' v, (n_features,), accumulated in float64 whatever the features are. Cost: one pass over X."""
    result = np.zeros(features.shape[1])
    _, add_transposed = block(features, 0, len(by_document))
    add_transposed(by_document, result)
    return result


def squares(features: Features, by_document: Floats) -> Floats:
    """Return (X * X)' v, (n_features,). Cost: one pass over X."""
    result = np.zeros(features.shape[1])
    if isinstance(features, np.ndarray):
        _add_dense_squares(features, by_document, result)
    else:
        _add_csr_squares(*csr_parts(features), by_document, result)
    return result


def block(features: Features, start: int, stop: int) -> tuple[Overwrite, Add]:
    """Return the two products of the rows start to stop of X, as functions of one vector and of where the result goes.

    times(w, out) overwrites out, (stop - start,), with X w; add_transposed(v, out) adds X' v to out, (n_features,).
    """
    if isinstance(features, np.ndarray):
        rows = features[start:stop]
        return partial(dense_times, rows), partial(add_dense_transposed, rows)
    data, indices, indptr = csr_parts(features)
    parts = (data, indices, indptr[start : stop + 1])
    return partial(csr_times, *parts), partial(add_csr_transposed, *parts)


def csr_parts(features: csr_array) -> tuple[Matrix, Indices, Indices]:
    """Return data, indices and indptr of a csr_array, for kernels.

    Columns are never negative: unsigned indices spare numba a test for wrapping around.
    """
    indices = features.indices
    return features.data, indices.view(f"u{indices.itemsize}"), features.indptr


def often_first(features: csr_array) -> tuple[csr_array, Ints] | None:
    """Return a csr_array's columns in the order of how often they are filled, and that order; None where it is no gain.

    Where few columns make most of X, as words do, their weights then share few cache lines. How often is counted on a
    part of X. Cost: a copy of the indices, those of a row unsorted; the other arrays are shared.
    """
    n_features = features.shape[1]
    if n_features < MANY_FEATURES:
        return None
    counts = np.zeros(n_features, dtype=np.int64)
    _count_some(features.indices, counts)
    order = np.argsort(-np.minimum(counts, 32767).astype(np.int16), kind="stable")  # of 16 bits: in linear time
    rank = np.empty(n_features, dtype=features.indices.dtype)
    rank[order] = np.arange(n_features, dtype=rank.dtype)
    result = copy(features)
    result.indices = np.empty_like(features.indices)
    _look_up(rank, features.indices, result.indices)
    return result, order


@compiled
def _count_some(numbers: Indices, counts: Ints) -> None:
    """Add to counts how often each number occurs in every eighth run of 4,096 numbers."""
    for start in range(0, len(numbers), 8 * 4096):
        for k in range(start, min(start + 4096, len(numbers))):
            counts[numbers[k]] += 1


@compiled
def _look_up(table: Indices, numbers: Indices, out: Indices) -> None:
    for k in range(len(numbers)):
        out[k] = table[numbers[k]]


@compiled
def dense_times(X: Matrix, w: Floats, out: Floats) -> None:
    """Overwrite out with X w."""
    for i in range(X.shape[0]):
        out[i] = row_product(X, i, w)


@compiled
def csr_times(data: Matrix, indices: Indices, indptr: Indices, w: Floats, out: Floats) -> None:
    """Overwrite out with X w."""
    for i in range(len(indptr) - 1):
        first, last = indptr[i], indptr[i + 1]
        whole = first + (last - first) // 4 * 4
        a0 = a1 = a2 = a3 = 0.0
        for k in range(first, whole, 4):
            a0 += data[k] * w[indices[k]]
            a1 += data[k + 1] * w[indices[k + 1]]
            a2 += data[k + 2] * w[indices[k + 2]]
            a3 += data[k + 3] * w[indices[k + 3]]
        for k in range(whole, last):
            a0 += data[k] * w[indices[k]]
        out[i] = (a0 + a2) + (a1 + a3)


@compiled
def add_dense_transposed(X: Matrix, v: Floats, out: Floats) -> None:
    """Add X' v to out."""
    for i in range(X.shape[0]):
        factor = v[i]
        for j in range(X.shape[1]):
            out[j] += X[i, j] * factor


@compiled
def add_csr_transposed(data: Matrix, indices: Indices, indptr: Indices, v: Floats, out: Floats) -> None:
    """Add X' v to out."""
    for i in range(len(indptr) - 1):
        factor = v[i]
        if factor != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += data[k] * factor


@compiled
def _add_dense_squares(X: Matrix, v: Floats, out: Floats) -> None:
    """Add (X * X)' v to out."""
    for i in range(X.shape[0]):
        factor = v[i]
        for j in range(X.shape[1]):
            out[j] += X[i, j] * factor * X[i, j]


@compiled
def _add_csr_squares(data: Matrix, indices: Indices, indptr: Indices, v: Floats, out: Floats) -> None:
    """Add (X * X)' v to out."""
    for i in range(len(indptr) - 1):
        factor = v[i]
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += data[k] * factor * data[k]


def blocks(starts: Ints, rows: int) -> list[tuple[int, int]]:
    """Return ranges of queries of about so many rows; a longer query is a separate range or ends a range."""
    marks = np.searchsorted(starts, np.arange(rows, starts[-1] + rows, rows), side="right") - 1
    ends = np.unique(np.append(marks[marks > 0], len(starts) - 1))
    return [(int(a), int(b)) for a, b in zip(np.append(0, ends[:-1]), ends, strict=True)]


@compiled
def row_product(X: Matrix, i: int | slice, w: Floats) -> float:
    """Return the sum over all columns j of X[i, j] * w[j]; both C-contiguous. As written, i may be several rows."""
    total = _partial_sums(X, i, w)
    for j in range(X.shape[1] // LANES * LANES, X.shape[1]):
        total += X[i, j] * w[j]
    return total


def _code(typing_context: object, X: Any, i: Any, w: Any) -> object:
    """Return the signature of _partial_sums and the function that emits its LLVM code."""
    from numba.core import types

    return types.float64(X, i, w), _emit


@instruction(_code)
def _partial_sums(X: Matrix, i: int | slice, w: Floats) -> float:
    """Return the sum over the first n_features // 8 * 8 columns, as the LLVM code adds it up."""
    by_32, by_8 = X.shape[1] // 32 * 32, X.shape[1] // LANES * LANES
    sums = [0.0] * 32
    for j in range(by_32):
        sums[j % 32] = sums[j % 32] + np.float64(X[i, j]) * w[j]
    for j in range(by_32, by_8):
        sums[j % LANES] = sums[j % LANES] + np.float64(X[i, j]) * w[j]
    a, b, c, d = (sums[start : start + LANES] for start in range(0, 32, LANES))
    terms = [(a[lane] + b[lane]) + (c[lane] + d[lane]) for lane in range(LANES)]
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [terms[lane] + terms[lane + half] for lane in range(half)]
    return terms[0]


def _emit(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
    from llvmlite import ir
    from numba.core import cgutils, types

    X_type, _, w_type = signature.args
    X = context.make_array(X_type)(context, builder, arguments[0])
    w = context.make_array(w_type)(context, builder, arguments[2])
    index, wide = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
    n_features = builder.extract_value(X.shape, 1)
    row = builder.gep(X.data, [builder.mul(arguments[1], n_features)])
    allocate: Callable[[ir.IRBuilder, ir.Value], ir.Value] = cgutils.alloca_once_value
    sums = [allocate(builder, ir.Constant(wide, [0.0] * LANES)) for _ in range(4)]

    def load(pointer: ir.Value, at: ir.Value, dtype: object) -> ir.Value:
        """Return eight numbers from pointer[at] on, as doubles."""
        single = dtype == types.float32
        vector = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), LANES)
        lanes = builder.load(builder.bitcast(builder.gep(pointer, [at]), vector.as_pointer()))
        lanes.align = 4 if single else 8
        return builder.fpext(lanes, wide) if single else lanes

    def add_lanes(at: ir.Value, into: ir.Value) -> None:
        term = builder.fmul(load(row, at, X_type.dtype), load(w.data, at, w_type.dtype))
        builder.store(builder.fadd(builder.load(into), term), into)

    by_32 = builder.and_(n_features, ir.Constant(index, -32))
    by_8 = builder.and_(n_features, ir.Constant(index, -LANES))
    with cgutils.for_range_slice(builder, ir.Constant(index, 0), by_32, ir.Constant(index, 32)) as (j, _):
        for part, into in enumerate(sums):
            add_lanes(builder.add(j, ir.Constant(index, LANES * part)), into)
    with cgutils.for_range_slice(builder, by_32, by_8, ir.Constant(index, LANES)) as (j, _):
        add_lanes(j, sums[0])
    a, b, c, d = (builder.load(part) for part in sums)
    lanes = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
    terms = [builder.extract_element(lanes, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [builder.fadd(terms[lane], terms[lane + half]) for lane in range(half)]
    return terms[0]
