"""What the kernels do with vector registers, written in LLVM's own terms; the names are declared where they are used.

Importing this imports numba, which the compilation of a kernel that uses one of them does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ranktune.solvers.core.grade_tree import WIDTH
from ranktune.solvers.core.vectors import LANES

_alloca = cast(Callable[[Any, Any], Any], cgutils.alloca_once_value)


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def row_product(typing_context: Any, X: Any, i: Any, w: Any) -> Any:
    """See ranktune.solvers.core.vectors."""
    return types.float64(X, i, w), _product


def _product(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def add_to_later(typing_context: Any, tree: Any, first: Any, place: Any, value: Any) -> Any:
    """See ranktune.solvers.core.grade_tree."""
    return types.void(tree, types.int64, types.int64, types.float64), _addition


def _addition(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    index, wide = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
    places = ir.VectorType(index, LANES)
    tree = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    place, value = _everywhere(builder, arguments[2], places), _everywhere(builder, arguments[3], wide)
    for start in range(0, WIDTH, LANES):
        at = builder.gep(tree, [builder.add(arguments[1], ir.Constant(index, start))])
        into = builder.bitcast(at, wide.as_pointer())
        old = builder.load(into)
        old.align = 8
        later = builder.icmp_signed(">", ir.Constant(places, list(range(start, start + LANES))), place)
        new = builder.select(later, builder.fadd(old, value), old)
        builder.store(new, into).align = 8
    return context.get_dummy_value()


def _everywhere(builder: Any, scalar: Any, vector: Any) -> Any:
    """Return a vector that holds scalar in every lane."""
    nothing, lane = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(nothing, scalar, ir.Constant(lane, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(lane, LANES), [0] * LANES))
