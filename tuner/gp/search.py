"""Maximise a surface over a cube: many candidates, then the best of them climb.

Rows are full here, without NaN: a parameter that is inactive in a row keeps a latent value, which matters as soon
as a change of another parameter makes it active. Surfaces only ever see masked rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.acquisition import Surface
from ranktune.tuner.gp.ascent import ascend
from ranktune.tuner.gp.encoding import Cube, keys
from ranktune.tuner.gp.trust_region import Region

GLOBAL, LOCAL = 512, 40
"""Candidates over the whole space, and around each of the promising trials."""
CLIMBERS = 4
"""Candidates from which the search climbs."""
ROUNDS = 3
"""Alternations of climbing along numbers and changing one other parameter at a time."""
CALLS = 16
"""Evaluations of one ascent along numbers, all climbers together."""
TOLERANCE = 1e-4
"""What a step must gain, as a share of how far the best candidate is above their median."""
FLIPPED = 12
"""A whole-number axis with at most so many values has all of them tried; one with more, the nearest two."""


def quasi_random(count: int, dimensions: int, generator: np.random.Generator, skip: int = 0) -> Floats:
    """Return points that fill the cube evenly, (count, dimensions), after the first skip of their sequence.

    Multiples of the square roots of the primes, modulo 1, from a start that generator draws (Richtmyer's sequence; any
    run of it fills the cube). scipy.stats has Sobol's, but takes a third of a second to import.
    """
    steps = np.sqrt(np.array(_primes(dimensions), dtype=np.float64)) % 1.0
    start = generator.random(dimensions)
    points: Floats = (start + np.arange(skip + 1, skip + count + 1)[:, None] * steps) % 1.0
    return points


@cache
def _primes(count: int) -> list[int]:
    """Return the first primes."""
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found


@dataclass(eq=False)
class _Pool:
    """Every row whose value is known, and the values; rows in taken may be passed through but not returned."""

    cube: Cube
    surface: Surface
    region: Region | None = None
    rows: list[Floats] = field(default_factory=list)
    found: list[Floats] = field(default_factory=list)

    def add(self, rows: Floats) -> Floats:
        """Evaluate full rows, remember them and return their values."""
        values = self.surface.values(self.cube.embed(self.cube.masked(rows)))
        self.rows.append(rows)
        self.found.append(values)
        return values

    def best_free(self, taken: Collection[bytes]) -> tuple[Floats, bool]:
        """Return the best full row that is not taken and True, or the best of all and False."""
        rows, values = np.concatenate(self.rows), np.concatenate(self.found)
        order = np.argsort(-values, kind="stable")
        for start in range(0, len(order), 64):
            some = order[start : start + 64]
            for index, key in zip(some, keys(self.cube.masked(rows[some])), strict=True):
                if key not in taken:
                    return rows[index], True
        return rows[order[0]], False


def maximise(
    surface: Surface,
    cube: Cube,
    promising: Floats,
    taken: Collection[bytes],
    generator: np.random.Generator,
    region: Region | None = None,
) -> Floats:
    """Return the masked row, (d,), that maximises surface among those not taken.

    promising are full rows, (p, d), around which to look closely. In a region, if given, alone, unless all that is
    found there is taken. A space with few configurations is searched exhaustively; only where all of them are taken
    does one come again.
    """
    pool = _Pool(cube, surface, region)
    everything = cube.everything()
    if everything is not None:
        pool.add(everything)
        return _one_masked(cube, pool.best_free(taken)[0])
    candidates = _candidates(cube, promising, generator, region)
    values = pool.add(candidates)
    chosen = _climbers(cube, candidates, values)
    tolerance = TOLERANCE * (float(values.max() - np.median(values)) + 1e-12)
    _climb(pool, candidates[chosen], values[chosen], tolerance)
    row, free = pool.best_free(taken)
    for _ in range(8):
        if free:
            break
        pool.add(cube.from_unit(generator.random((GLOBAL, len(cube.axes)))))
        row, free = pool.best_free(taken)
    return _one_masked(cube, row)


def _one_masked(cube: Cube, row: Floats) -> Floats:
    masked: Floats = cube.masked(row[None])[0]
    return masked


def _candidates(cube: Cube, promising: Floats, generator: np.random.Generator, region: Region | None) -> Floats:
    """Return full rows: everywhere, and around each promising one; all in the region, if there is one."""
    everywhere = cube.from_unit(quasi_random(GLOBAL, len(cube.axes), generator))
    near = np.concatenate([promising, _perturbed(cube, np.repeat(promising, LOCAL, axis=0), generator)])
    if region is not None:
        near, everywhere = cube.snap(region.within(near, generator)), cube.snap(region.spread(everywhere, generator))
    return np.concatenate([near, everywhere])


def _perturbed(cube: Cube, rows: Floats, generator: np.random.Generator) -> Floats:
    """Return a variation of each full row: about a third of its parameters change, and one active one for sure."""
    width = 10.0 ** generator.uniform(-2.5, -0.5, size=(len(rows), 1))  # from fine to coarse steps
    numbers = rows + width * generator.standard_normal(rows.shape)
    numbers = np.abs(numbers)  # reflected at both ends
    numbers = np.where(numbers > 1.0, np.abs(2.0 - numbers), numbers)
    fresh = cube.from_unit(generator.random(rows.shape))
    category = np.array([axis.choices > 0 for axis in cube.axes])
    changes = generator.random(rows.shape) < np.where(category, 0.15, 0.35)
    one = np.argmax(generator.random(rows.shape) * cube.activity(rows), axis=1)
    changes[np.arange(len(rows)), one] = True
    return cube.snap(np.where(changes, np.where(category, fresh, numbers), rows))


def _climbers(cube: Cube, candidates: Floats, values: Floats) -> list[int]:
    """Return the indices to climb from: the best of each of the best few combinations of categories, then the best."""
    order = np.argsort(-values, kind="stable")[:200]
    category = [j for j, axis in enumerate(cube.axes) if axis.choices]
    kinds = keys(cube.masked(candidates[order])[:, category])
    first = list(dict(zip(reversed(kinds), reversed(order.tolist()), strict=True)).values())
    first.sort(key=lambda index: -values[index])
    chosen = [int(order[0]), *first[: CLIMBERS // 2 + 1], *order[:CLIMBERS].tolist()]
    return list(dict.fromkeys(chosen))[:CLIMBERS]


def _climb(pool: _Pool, rows: Floats, values: Floats, tolerance: float) -> None:
    """Improve full rows along their numbers and by single changes of the others, in turn, while that helps."""
    for _ in range(ROUNDS):
        moved = _along_numbers(pool, rows, tolerance)
        reached = pool.add(moved)
        better = reached > values
        rows, values = np.where(better[:, None], moved, rows), np.where(better, reached, values)
        changes = [_single_changes(pool.cube, row) for row in rows]
        if pool.region is not None:
            changes = [some[pool.region.holds(some)] for some in changes]
        if not sum(map(len, changes)):
            return
        found, ends = pool.add(np.concatenate(changes)), np.cumsum([len(some) for some in changes])
        helped = []
        for i, (some, end) in enumerate(zip(changes, ends, strict=True)):
            own = found[end - len(some) : end]
            if len(own) and own.max() > values[i] + tolerance:
                helped.append((some[np.argmax(own)], float(own.max())))
        if not helped:
            return
        rows, values = np.array([row for row, _ in helped]), np.array([value for _, value in helped])


def _along_numbers(pool: _Pool, rows: Floats, tolerance: float) -> Floats:
    """Return full rows with their active numbers moved to a local maximum, snapped to values that exist."""
    cube = pool.cube
    active = cube.activity(rows)
    smooth = [j for j in cube.varying if cube.axes[j].choices == 0 and cube.axes[j].count > FLIPPED]
    if not active[:, smooth].any():
        return rows
    columns = [cube.columns[cube.varying.index(j)].start for j in smooth]
    embedded = cube.embed(cube.masked(rows))
    free = np.zeros(embedded.shape, dtype=bool)
    free[:, columns] = active[:, smooth]
    low, high = np.zeros(embedded.shape[1]), np.ones(embedded.shape[1])
    if pool.region is not None:
        low[columns], high[columns] = pool.region.low[smooth], pool.region.high[smooth]
    climbed = ascend(
        pool.surface.values_and_gradients, embedded, free, calls=CALLS, tolerance=tolerance, low=low, high=high
    )
    moved = rows.copy()
    moved[:, smooth] = np.where(active[:, smooth], climbed[:, columns], rows[:, smooth])
    return cube.snap(moved)


def _single_changes(cube: Cube, row: Floats) -> Floats:
    """Return the full rows that differ from row in one active category or whole number, (number of changes, d)."""
    active = cube.activity(row[None])[0]
    changed = []
    for j in cube.varying:
        axis = cube.axes[j]
        if not active[j] or not np.isfinite(axis.count):
            continue
        if axis.choices or axis.count <= FLIPPED:
            places = axis.grid()
        else:
            value = axis.decode(row[j : j + 1])
            places = axis.encode(np.clip(np.concatenate([value - axis.step, value + axis.step]), axis.low, axis.high))
        for place in places[np.abs(places - row[j]) > 1e-12]:
            other = row.copy()
            other[j] = place
            changed.append(other)
    return np.array(changed).reshape(-1, len(row))
