"""The inner product of a row of X with w in vector registers, the same bits on every machine.

A compiler may not reorder a floating-point sum by itself, so a plain loop adds one number at a time; allowing it to
(fastmath) would make results depend on the width of the machine's vectors. Here the order is spelt out: 32 interleaved
partial sums of doubles, added pairwise at the end. Where vectors are narrower than 8 doubles, LLVM splits them.
Measured on 239,270 x 136 float32 out of cache: 4.7 ms against 10 ms with eight scalar sums and 21 ms with one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8

_alloca = cast(Callable[[Any, Any], Any], cgutils.alloca_once_value)


def _row_product(typing_context: Any, X: Any, i: Any, w: Any) -> Any:
    """Return the sum over the first n_features // 8 * 8 columns j of X[i, j] * w[j]; both C-contiguous, w float64."""
    return types.float64(X, i, w), _generate


row_product = cast(Callable[[Any, int, Any], float], intrinsic(_row_product))


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    X_type, _, w_type = signature.args
    X = context.make_array(X_type)(context, builder, arguments[0])
    w = context.make_array(w_type)(context, builder, arguments[2])
    index = ir.IntType(64)
    n_features = builder.extract_value(X.shape, 1)
    row = builder.gep(X.data, [builder.mul(arguments[1], n_features)])
    wide = ir.VectorType(ir.DoubleType(), LANES)
    sums = [_alloca(builder, ir.Constant(wide, [0.0] * LANES)) for _ in range(4)]

    def add_lanes(at: Any, into: Any) -> None:
        term = builder.fmul(_load(builder, row, at, X_type.dtype), _load(builder, w.data, at, w_type.dtype))
        builder.store(builder.fadd(builder.load(into), term), into)

    by_32 = builder.and_(n_features, ir.Constant(index, -32))
    by_8 = builder.and_(n_features, ir.Constant(index, -8))
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


def _load(builder: Any, pointer: Any, at: Any, dtype: Any) -> Any:
    """Return eight numbers from pointer[at] on, as doubles."""
    single = dtype == types.float32
    element = ir.FloatType() if single else ir.DoubleType()
    lanes = builder.load(builder.bitcast(builder.gep(pointer, [at]), ir.VectorType(element, LANES).as_pointer()))
    lanes.align = 4 if single else 8
    return builder.fpext(lanes, ir.VectorType(ir.DoubleType(), LANES)) if single else lanes
