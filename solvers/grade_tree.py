"""Sums of the numbers added so far whose grade lies below a given one: a tree with 32 children a node, in one array.

Grades are numbered from 0. Level 0 holds one number a grade, each level above one for 32 of the level below; a number
is the sum of its siblings BEFORE it. Adding to a grade therefore changes the later siblings on every level, four vector
instructions each, and the sum below a grade is one number a level: two for 1,000 grades, four for a million. A Fenwick
tree needs 5 to 10 dependent steps for both, and where it outgrows the cache each is a miss.

tree  1-dimensional float64, level after level, whole nodes     steps  (1024,) steps[32 c + j] = 1 where j > c
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ranktune.solvers.arrays import Floats
from ranktune.solvers.compiled import compiled

BITS = 5
WIDTH = 1 << BITS
LANES = 8


def _add_later(typing_context: Any, tree: Any, first: Any, place: Any, value: Any) -> Any:
    """Add value to tree[first + j] for the j > place of 0 to WIDTH - 1; tree is float64 and contiguous."""
    return types.void(tree, types.int64, types.int64, types.float64), _generate


_add_to_later = cast(Callable[[Floats, int, int, float], None], intrinsic(_add_later))


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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


@compiled
def offsets(n_grades: int) -> Any:
    """Return where levels 1, 2, ... begin, the last being the length of the tree for grades 0 to n_grades inclusive."""
    result = np.zeros(8, dtype=np.int64)
    size, levels = n_grades + 1, 0
    while True:
        nodes = (size + WIDTH - 1) // WIDTH
        result[levels + 1] = result[levels] + nodes * WIDTH
        levels += 1
        if nodes == 1:
            return result[1 : levels + 1]
        size = nodes


@compiled
def add(tree: Floats, ends: Any, grade: Any, value: float) -> None:
    """Add value to grade; ends is what offsets returned."""
    _add_to_later(tree, grade & -WIDTH, grade & (WIDTH - 1), value)
    for level in range(len(ends) - 1):
        grade >>= BITS
        _add_to_later(tree, ends[level] + (grade & -WIDTH), grade & (WIDTH - 1), value)


@compiled
def below(tree: Floats, ends: Any, grade: Any) -> Any:
    """Return the sum of what was added to the grades below grade."""
    total = tree[np.uint64(grade)]
    for level in range(len(ends) - 1):
        grade >>= BITS
        total += tree[np.uint64(ends[level] + grade)]
    return total
