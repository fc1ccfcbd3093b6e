"""A weight as a tree: it compares one feature alone, and its value rises in steps as the weighted feature does."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.models.trees import ANY_VALUE, Trees, one_tree

MAX_STEPS = 255
"""The most steps of a staircase."""


def staircase(column: int, weight: float, values: Floats, step: float, missing: float | None = None) -> Trees:
    """Return a tree whose value is about weight times the value of column, (n_documents,) of which are known.

    It rises in steps, each of which spans known values that differ by at most `step` in the score, or more where there
    would be more than MAX_STEPS. A step has the mean score of its documents. Beyond the known values it is constant.
    NaN among the values is missing; where missing is given, the tree has that value for what is missing, exactly.
    """
    present = values[~np.isnan(values)]
    known, counts = np.unique(present if len(present) else np.zeros(1), return_counts=True)
    width = step / abs(weight) if weight else np.inf
    while len(firsts := _firsts(known, width)) > MAX_STEPS:
        width *= 1.25
    documents = np.add.reduceat(counts, firsts)
    leaves = weight * np.add.reduceat(counts * known, firsts) / documents
    below, above = known[firsts[1:] - 1], known[firsts[1:]]
    middle = below + (above - below) / 2.0
    return _balanced(column, np.where(middle < above, middle, below), leaves, missing)


def _firsts(known: Floats, width: float) -> Ints:
    """Return the places in known, ascending, of the first value of each step, which spans at most width.

    No more than MAX_STEPS + 1 of them.
    """
    firsts = [0]
    while (after := int(np.searchsorted(known, known[firsts[-1]] + width, side="right"))) < len(known):
        firsts.append(max(after, firsts[-1] + 1))
        if len(firsts) > MAX_STEPS:
            break
    return np.array(firsts)


def _balanced(column: int, thresholds: Floats, leaves: Floats, missing: float | None) -> Trees:
    """Return the tree of least depth that gives a value of column the leaf between the thresholds around it.

    Its root, if missing is given, sends every value left, and what is missing right.
    """
    order: list[int] = []
    children: list[list[int]] = []
    if missing is not None:
        order.append(len(thresholds))
        children.append([])
        thresholds, leaves = np.append(thresholds, ANY_VALUE), np.append(leaves, missing)

    def grow(first: int, last: int) -> int:
        if last - first == 1:
            return ~first
        middle, number = (first + last) // 2, len(order)
        order.append(middle - 1)
        children.append([])
        children[number] = [grow(first, middle), grow(middle, last)]
        return number

    if missing is None:
        grow(0, len(leaves))
    else:
        children[0] = [grow(0, len(leaves) - 1), ~(len(leaves) - 1)]
    left, right = np.array(children, dtype=np.int32).reshape(-1, 2).T
    sides = None if missing is None else np.zeros(len(order), dtype=bool)
    return one_tree(np.full(len(order), column), thresholds[order], left, right, leaves, sides)
