"""The trees of XGBoost as our own arrays, read from its JSON after training.

XGBoost compares in single precision and sends x < t left; ours send x <= threshold left in double precision. Both send
every number, rounded to single precision by XGBoost, the same way if the threshold is the largest double that rounds to
less than t.
"""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.core.arrays import Floats, Ints, JsonView
from ranktune.solvers.models.trees import Trees, joined, one_tree


def trees_of(raw: bytes | bytearray) -> Trees:
    """Return the trees in the JSON of a booster of finite, numerical features."""
    found = json.loads(bytes(raw))["learner"]["gradient_booster"]["model"]["trees"]
    return joined([_tree(tree) for tree in found])


def last_below(limits: ArrayLike) -> Floats:
    """Return the largest doubles that round to single-precision numbers below limits, which are such numbers."""
    t = np.asarray(limits, dtype=np.float32)
    below = np.nextafter(t, np.float32(-np.inf))
    middle = below.astype(np.float64) / 2.0 + t.astype(np.float64) / 2.0  # exact: doubles have more bits
    belongs = middle.astype(np.float32) == below  # a tie goes to the even one of the two
    threshold: Floats = np.where(belongs, middle, np.nextafter(middle, -np.inf))
    return threshold


def _tree(tree: JsonView) -> Trees:
    """Return one tree, whose nodes XGBoost keeps in one list: a leaf has no left child, and its value as condition."""
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    splits = left >= 0
    reached = _reached(left, right)
    number = np.empty(len(left), dtype=np.int64)
    inner, leaves = reached[splits[reached]], reached[~splits[reached]]
    number[inner], number[leaves] = np.arange(len(inner)), ~np.arange(len(leaves))
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    return one_tree(
        np.array(tree["split_indices"])[inner],
        last_below(conditions[inner]),
        number[left[inner]],
        number[right[inner]],
        conditions[leaves].astype(np.float64),
    )


def _reached(left: Ints, right: Ints) -> Ints:
    """Return the nodes that can be reached from the root, parents before children."""
    order = [0]
    for node in order:
        if left[node] >= 0:
            order += [int(left[node]), int(right[node])]
    return np.array(order)
