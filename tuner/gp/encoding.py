"""Configurations encoded as rows of numbers for the Gaussian process.

d    parameters (axes)          D    embedded columns (>= number of axes that vary)
P    (m, d) rows: a number's place in [0, 1], a category's index, NaN where the parameter is inactive
E    (m, D) embedded rows: Euclidean distances between them are the distances that the kernel uses

Two different categories are at distance 1 (Hamming): each is a corner of a simplex, one-hot / sqrt(2). Of very many
categories each is a corner of a cube, drawn at random, so that the distances are about 1. An inactive number lies at
the centre, an inactive category is one more category.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints


class Activity(Protocol):
    """Which parameters are active in full rows, (m, d), without NaN.

    conditional are the axes that may be inactive, deciding those on which that depends.
    """

    def __call__(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which axes are active in each row, (m, d)."""
        ...

    @property
    def conditional(self) -> frozenset[int]:
        """The axes that may be inactive."""

    @property
    def deciding(self) -> frozenset[int]:
        """The axes by whose values others are active or not."""


MOST_CORNERS = 128
"""Columns of a parameter with more categories than that. Squared distances then vary by 9 %."""
MAX_ENUMERATED = 4096
"""A space with at most so many configurations is searched exhaustively."""


@dataclass(frozen=True)
class Axis:
    """One parameter: a number in [low, high], on a grid of step if step > 0, or one of choices categories.

    The grid extends half a step beyond low and high, so that all values get equal room.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    step: float = 0.0
    log: bool = False
    choices: int = 0

    @cached_property
    def count(self) -> float:
        """The number of different values; infinite for a real number."""
        if self.choices:
            return self.choices
        if self.high <= self.low:
            return 1
        return float(np.floor((self.high - self.low) / self.step + 1e-9)) + 1 if self.step else float("inf")

    def _ends(self) -> tuple[float, float]:
        """Return the two ends of the coordinate, on the logarithmic scale if log."""
        low, high = self.low - self.step / 2, self.high + self.step / 2
        return (float(np.log(low)), float(np.log(high))) if self.log else (low, high)

    def encode(self, values: Floats) -> Floats:
        """Return the coordinates of values (indices, for categories); NaN where a value has none."""
        if self.choices:
            return np.where((values >= 0) & (values < self.choices), values, np.nan)
        if self.count == 1:
            return np.where(np.isnan(values), np.nan, 0.5)
        low, high = self._ends()
        if self.log:
            values = np.log(np.where(values > 0, values, np.nan))
        return (values - low) / (high - low)

    def decode(self, places: Floats) -> Floats:
        """Return the values at coordinates, on the grid and within [low, high]."""
        if self.choices:
            return np.clip(np.rint(places), 0, self.choices - 1)
        if self.count == 1:
            return np.full_like(places, self.low)
        low, high = self._ends()
        values = low + np.clip(places, 0.0, 1.0) * (high - low)
        if self.log:
            values = np.exp(values)
        if self.step:
            steps = np.clip(np.rint((values - self.low) / self.step), 0, self.count - 1)
            values = self.low + steps * self.step
        return np.clip(values, self.low, self.high)

    def snap(self, places: Floats) -> Floats:
        """Return the coordinates of the values nearest to places."""
        if self.choices or self.step or self.count == 1:
            return self.encode(self.decode(places))
        return np.clip(places, 0.0, 1.0)

    def from_unit(self, uniform: Floats) -> Floats:
        """Return coordinates distributed over all values alike, from uniform numbers in [0, 1)."""
        if self.choices:
            return np.minimum(np.floor(uniform * self.choices), self.choices - 1)
        return self.snap(uniform)

    def grid(self) -> Floats:
        """Return the coordinates of all values of a finite axis."""
        if self.choices:
            return np.arange(float(self.choices))
        return self.encode(self.low + self.step * np.arange(self.count))


@dataclass(frozen=True)
class AxisRule:
    """The axis is active only while its parent is, at one of the allowed coordinates."""

    axis: int
    parent: int
    allowed: tuple[float, ...]


@dataclass(frozen=True)
class AxisRules:
    """An Activity made of rules, parents before children; an axis with several rules must satisfy them all."""

    rules: tuple[AxisRule, ...] = ()

    def __call__(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which axes are active in each row, (m, d)."""
        places = np.ascontiguousarray(rows.T)  # whole axes are read and written at a time
        active = np.ones(places.shape, dtype=bool)
        for (parent, _), (allowed, children) in self._groups.items():
            fits = (np.abs(places[parent] - allowed) < 1e-9).any(axis=0) & active[parent]
            for child in children:
                active[child] &= fits
        return active.T

    @cached_property
    def conditional(self) -> frozenset[int]:
        """The axes that may be inactive."""
        return frozenset(rule.axis for rule in self.rules)

    @cached_property
    def deciding(self) -> frozenset[int]:
        """The axes by whose values others are active or not."""
        return frozenset(rule.parent for rule in self.rules)

    @cached_property
    def _groups(self) -> dict[tuple[int, tuple[float, ...]], tuple[Floats, list[int]]]:
        """The rules with the same parent and the same allowed coordinates together, in the order of their first."""
        groups: dict[tuple[int, tuple[float, ...]], tuple[Floats, list[int]]] = {}
        for rule in self.rules:
            group = groups.setdefault((rule.parent, rule.allowed), (np.array(rule.allowed)[:, None], []))
            group[1].append(rule.axis)
        return groups


@lru_cache(maxsize=8)
def _cube_corners(count: int) -> Floats:
    """Return so many random corners of a cube, (count, MOST_CORNERS), at distances of about 1."""
    signs = np.random.default_rng(count).integers(0, 2, (count, MOST_CORNERS), dtype=np.int8)
    return np.asarray((2.0 * signs - 1.0) * np.sqrt(0.5 / MOST_CORNERS))


@dataclass(frozen=True)
class SpaceEncoding:
    """The axes of a space, and which of them are active where."""

    axes: tuple[Axis, ...]
    activity: Activity = AxisRules()

    @cached_property
    def branching(self) -> NDArray[np.bool_]:
        """Which axes are categories by which others are active or not, (d,): a combination of them is a branch."""
        return np.array([axis.choices > 1 and j in self.activity.deciding for j, axis in enumerate(self.axes)])

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The axes with more than one value: only these have a length scale."""
        return tuple(j for j, axis in enumerate(self.axes) if axis.count > 1)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """The embedded columns of each varying axis."""
        slices, start = [], 0
        for j in self.varying:
            width = min(self._corners(j), MOST_CORNERS)
            slices.append(slice(start, start + width))
            start += width
        return tuple(slices)

    @cached_property
    def _numbers(self) -> Ints:
        """The varying axes that are numbers, and the embedded column of each, (2, numbers)."""
        places = zip(self.varying, self.columns, strict=True)
        return (
            np.array([(j, column.start) for j, column in places if not self.axes[j].choices], dtype=int)
            .reshape(-1, 2)
            .T
        )

    @cached_property
    def _discrete(self) -> tuple[int, ...]:
        """The axes that are no real numbers."""
        return tuple(j for j, axis in enumerate(self.axes) if np.isfinite(axis.count))

    def _corners(self, axis: int) -> int:
        """Return how many different categories an axis has, with the inactive one; 1 for a number."""
        return self.axes[axis].choices + (axis in self.activity.conditional) if self.axes[axis].choices else 1

    @cached_property
    def axis_of_column(self) -> Ints:
        """The varying axis (its place in varying) that each embedded column belongs to, (D,)."""
        widths = [columns.stop - columns.start for columns in self.columns]
        return np.repeat(np.arange(len(widths)), widths)

    def embed(self, rows: Floats) -> Floats:
        """Return E, (m, D), of rows P, (m, d)."""
        embedded = np.zeros((len(rows), len(self.axis_of_column)))
        numbers, starts = self._numbers
        places = rows[:, numbers]
        embedded[:, starts] = np.where(np.isnan(places), 0.5, places)
        for j, columns in zip(self.varying, self.columns, strict=True):
            if not self.axes[j].choices:
                continue
            places = rows[:, j]
            active = ~np.isnan(places)
            index, count = np.where(active, places, self.axes[j].choices).astype(np.int64), self._corners(j)
            inside = index < count  # a missing value of an unconditional category: no corner
            if count <= MOST_CORNERS:
                embedded[np.flatnonzero(inside), columns.start + index[inside]] = np.sqrt(0.5)
            else:
                embedded[inside, columns] = _cube_corners(count)[index[inside]]
        return embedded

    def snap(self, rows: Floats) -> Floats:
        """Return full rows moved to the nearest values that exist."""
        return self._placed(rows, Axis.snap)

    def masked(self, rows: Floats) -> Floats:
        """Return full rows with NaN where a parameter is inactive."""
        return np.where(self.activity(rows), rows, np.nan)

    def from_unit(self, uniform: Floats) -> Floats:
        """Return full rows from uniform numbers, (m, d) in [0, 1)."""
        return self._placed(uniform, Axis.from_unit)

    def _placed(self, rows: Floats, place: Callable[[Axis, Floats], Floats]) -> Floats:
        """Return rows with real numbers within [0, 1], and other axes placed by themselves."""
        result = np.clip(rows, 0.0, 1.0)
        for j in self._discrete:
            result[:, j] = place(self.axes[j], rows[:, j])
        return result

    def filled(self, rows: Floats, generator: np.random.Generator) -> Floats:
        """Return rows with random values in place of NaN."""
        return np.where(np.isnan(rows), self.from_unit(generator.random(rows.shape)), rows)

    @cached_property
    def is_small(self) -> bool:
        """Whether a search can evaluate all configurations."""
        return bool(np.prod([axis.count for axis in self.axes]) <= MAX_ENUMERATED)

    def all_rows(self) -> Floats | None:
        """Return all configurations as full rows, one for each different masked row; None if they are too many."""
        if not self.is_small:
            return None
        rows = self.mesh()
        _, first = np.unique(np.nan_to_num(self.masked(rows), nan=-1.0), axis=0, return_index=True)
        return rows[np.sort(first)]

    def mesh(self) -> Floats:
        """Return all combinations of coordinates of finite axes, as full rows."""
        mesh = np.meshgrid(*(axis.grid() for axis in self.axes), indexing="ij")
        return np.stack([places.ravel() for places in mesh], axis=1)

    def only(self) -> Floats:
        """Return the full row, (d,), of a cube whose axes have one value each."""
        row: Floats = self.from_unit(np.zeros((1, len(self.axes))))[0]
        return row

    def values(self, row: Floats) -> list[Any]:
        """Return the value of each axis at one row (an index, for categories); None where it is inactive."""
        return [
            None if np.isnan(place) else float(axis.decode(np.array([place]))[0])
            for axis, place in zip(self.axes, row, strict=True)
        ]


def covered(rows: Floats, tried: Floats) -> NDArray[np.bool_]:
    """Return which full rows, (m, d), agree with a row of tried, (t, d), wherever that row is not NaN.

    A program that gets such a row asks for the same parameters and gets the same values: it is the same configuration,
    whatever the conditions are.
    """
    pairs = np.arange(len(rows) * len(tried))
    for places, others in zip(rows.T, tried.T, strict=True):  # of most pairs one of the first parameters differs
        if not len(pairs):
            break
        row, other = np.divmod(pairs, len(tried))
        value = others[other]
        pairs = pairs[np.isnan(value) | (np.abs(places[row] - value) < 1e-9)]
    result = np.zeros(len(rows), dtype=bool)
    result[pairs // max(len(tried), 1)] = True
    return result


def keys(masked: Floats) -> list[bytes]:
    """Return one hashable key a masked row: equal keys are the same configuration."""
    rounded = np.round(np.nan_to_num(masked, nan=-1.0), 12) + 0.0
    return [row.tobytes() for row in rounded]
