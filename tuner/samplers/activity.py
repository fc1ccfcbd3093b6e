"""Which parameters a trial asks for, learnt from the trials of an unknown define-by-run program.

Such a program asks for one parameter after the other, and the values it got decide what it asks for next: a
category, a flag, a whole number (`for i in range(n)`), a threshold, or several of them. Parameters that come and go
together share a decision tree over parameters that are asked for at least as often. A tree is grown until it explains
every trial, by the splits that shorten the description of the trials most: the bits that a split saves, less those that
name one of the splits possible on its parameter.

n    trials        d    parameters (axes)        values (n, d): coordinates, ABSENT where a parameter was not asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.encoding import Axis

ABSENT = -9.0
"""Coordinate of a parameter that was not asked for: below those of all values."""
MAX_DEPTH = 8
"""Splits on the way to a leaf; a parameter that needs more counts as always asked for where they end."""
MAX_LEARNT_TRIALS = 300
"""Latest trials that the trees are grown from."""

Booleans: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Leaf:
    """The decision of a tree."""

    active: bool

    def decide(self, values: Floats) -> Booleans:
        """Return the decision for each row, (m,)."""
        return np.full(len(values), self.active)


@dataclass(frozen=True)
class AxisSplit:
    """A question about one axis: is it above the threshold, or for a category, is it none of the excluded ones."""

    axis: int
    threshold: float
    excluded: tuple[float, ...] | None
    no: Leaf | AxisSplit
    yes: Leaf | AxisSplit

    def decide(self, values: Floats) -> Booleans:
        """Return the decision for each row, (m,)."""
        column = values[:, self.axis]
        yes = column > self.threshold if self.excluded is None else ~np.isin(column, self.excluded)
        return np.where(yes, self.yes.decide(values), self.no.decide(values))


@dataclass(frozen=True, eq=False)
class LearntActivity:
    """The activity that trees describe: axes that share one, and the tree, those that it asks about first.

    deciding are all axes that trees ask about.
    """

    steps: tuple[tuple[tuple[int, ...], Leaf | AxisSplit], ...]
    deciding: frozenset[int]

    def __call__(self, rows: Floats) -> Booleans:
        """Return which axes are active in each full row, (m, d)."""
        active = np.ones(rows.shape, dtype=bool)
        values = rows.copy()
        for axes, tree in self.steps:
            decided = tree.decide(values)[:, None]
            active[:, axes] = decided
            values[:, axes] = np.where(decided, values[:, axes], ABSENT)
        return active

    @property
    def conditional(self) -> frozenset[int]:
        """The axes that may be inactive."""
        return frozenset(axis for axes, _ in self.steps for axis in axes)


def learn_activity(axes: Sequence[Axis], rows: Floats, asked: Booleans) -> LearntActivity:
    """Return what explains which parameters the trials asked for, (n, d), by their values: rows, (n, d).

    Of trials that no split separates, some may have asked for a parameter and others not: it counts as active.
    """
    rows, asked = rows[-MAX_LEARNT_TRIALS:], asked[-MAX_LEARNT_TRIALS:]
    values = np.where(asked & ~np.isnan(rows), rows, ABSENT)
    counts = asked.sum(axis=0)
    together: dict[bytes, list[int]] = {}
    for j in np.argsort(-counts, kind="stable").tolist():
        if 0 < counts[j] < len(rows):
            together.setdefault(asked[:, j].tobytes(), []).append(j)
    always = [j for j in range(len(axes)) if counts[j] == len(rows) and axes[j].count > 1]
    steps, deciding = [], set[int]()
    for group in together.values():
        parents = sorted(always, key=lambda j: (axes[j].count, j))
        steps.append((tuple(group), _grown(axes, values, asked[:, group[0]], parents, MAX_DEPTH, deciding)))
        always += group
    return LearntActivity(tuple(steps), frozenset(deciding))


def _grown(
    axes: Sequence[Axis], values: Floats, labels: Booleans, parents: Sequence[int], depth: int, deciding: set[int]
) -> Leaf | AxisSplit:
    """Return the tree that predicts labels, (n,), from the parents' values, which are noted as deciding."""
    if labels.all() or not labels.any():
        return Leaf(bool(labels[0]))
    cuts = [_best_cut(values[:, j], labels, axes[j].choices > 0) for j in parents] if depth else []
    scores = [cut[0] for cut in cuts]
    if not scores or max(scores) == -np.inf:
        return Leaf(True)
    place = int(np.argmax(scores))
    _, threshold, excluded = cuts[place]
    deciding.add(parents[place])
    split = AxisSplit(parents[place], threshold, excluded, Leaf(False), Leaf(True))
    yes = split.decide(values)
    no, rest = (_grown(axes, values[some], labels[some], parents, depth - 1, deciding) for some in (~yes, yes))
    return AxisSplit(split.axis, threshold, excluded, no, rest)


def _best_cut(column: Floats, labels: Booleans, category: bool) -> tuple[float, float, tuple[float, ...] | None]:
    """Return the bits that the best split by one parameter saves, its threshold, and for a category what is excluded.

    Categories are cut in the order of their share of positive labels, which holds the best cut (Breiman et al. 1984,
    "Classification and Regression Trees", theorem 4.5); one that no trial had belongs to the larger share.
    """
    unique, place = np.unique(column, return_inverse=True)
    if len(unique) == 1:
        return -np.inf, 0.0, None
    total = np.bincount(place, minlength=len(unique)).astype(np.float64)
    positive = np.bincount(place, labels.astype(np.float64), minlength=len(unique))
    if category:
        order = np.argsort(positive / total, kind="stable")
        unique, total, positive = unique[order], total[order], positive[order]
    n, p = np.cumsum(total, dtype=np.float64), np.cumsum(positive, dtype=np.float64)
    bits = _bits(n[-1:], p[-1:])[0] - _bits(n[:-1], p[:-1]) - _bits(n[-1] - n[:-1], p[-1] - p[:-1])
    best = int(np.argmax(bits))
    score = float(bits[best]) - np.log2(len(bits))
    if category:
        return score, 0.0, tuple(unique[: best + 1].tolist())
    return score, float(0.5 * (unique[best] + unique[best + 1])), None


def _bits(n: Floats, p: Floats) -> Floats:
    """Return the bits that name which p of n labels are positive, by their entropy."""
    share = np.clip(p / n, 1e-12, 1.0 - 1e-12)
    result: Floats = -n * (share * np.log2(share) + (1.0 - share) * np.log2(1.0 - share))
    return result
