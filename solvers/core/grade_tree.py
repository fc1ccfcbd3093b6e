"""Sums of the numbers added so far whose grade lies below a given one: a tree with 32 children a node, in one array.

Grades are numbered from 0. Level 0 holds one number a grade, each level above one for 32 of the level below; a number
is the sum of its siblings BEFORE it. Adding to a grade therefore changes the later siblings on every level, four vector
instructions each, and the sum below a grade is one number a level: two for 1,000 grades, four for a million. A Fenwick
tree needs 5 to 10 dependent steps for both, and where it outgrows the cache each is a miss.

tree  1-dimensional float64, level after level, whole nodes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.compiled import compiled, instruction

BITS = 5
WIDTH = 1 << BITS


@instruction("ranktune.solvers.core.vector_instructions")
def add_to_later(tree: Floats, first: int, place: int, value: float) -> None:
    """Add value to tree[first + j] for the j > place of 0 to WIDTH - 1; tree is float64 and contiguous."""
    raise NotImplementedError


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
    add_to_later(tree, grade & -WIDTH, grade & (WIDTH - 1), value)
    for level in range(len(ends) - 1):
        grade >>= BITS
        add_to_later(tree, ends[level] + (grade & -WIDTH), grade & (WIDTH - 1), value)


@compiled
def below(tree: Floats, ends: Any, grade: Any) -> Any:
    """Return the sum of what was added to the grades below grade."""
    total = tree[np.uint64(grade)]
    for level in range(len(ends) - 1):
        grade >>= BITS
        total += tree[np.uint64(ends[level] + grade)]
    return total
