"""Sums of the numbers added so far to the grades below a given grade: a tree of 32 children per node, in an array.

Grades are numbered from 0. Level 0 holds a number per grade, each level above a number per 32 of the level below; a
number is the sum of the siblings BEFORE it. Adding to a grade therefore changes the later siblings on every level, and
the sum below a grade is one number per level: two for 1,000 grades, four for a million. A Fenwick tree needs 5 to 10
dependent steps for both, and where it outgrows the cache each is a miss.

tree  1-dimensional float64, level after level, whole nodes
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined

BITS = 5
WIDTH = 1 << BITS


@compiled
def offsets(n_grades: int) -> Ints:
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
def add(tree: Floats, ends: Ints, grade: int | np.int64, value: float) -> None:
    """Add value to grade; ends is what offsets returned."""
    _add_to_later(tree, grade, value)
    for level in range(len(ends) - 1):
        grade >>= BITS
        _add_to_later(tree[ends[level] :], grade, value)


@inlined
def _add_to_later(numbers: Floats, place: int | np.int64, value: float) -> None:
    """Add value to the numbers after place within its node."""
    for later in range(place + 1, (place & -WIDTH) + WIDTH):
        numbers[later] += value


@compiled
def below(tree: Floats, ends: Ints, grade: int | np.int64) -> float:
    """Return the sum of what was added to the grades below grade."""
    total = tree[np.uint64(grade)]
    for level in range(len(ends) - 1):
        grade >>= BITS
        total += tree[np.uint64(ends[level] + grade)]
    return float(total)
