"""Maximise an acquisition function over a search space: many candidates, then local search from the best of them.

Rows are full here, without NaN: a parameter that is inactive in a row keeps a latent value, which matters as soon as
another parameter's change activates it. Acquisition functions get masked rows only. Numbers climb by batched projected
quasi-Newton ascent: all starts are evaluated in one call, because its overhead exceeds the cost of these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.acquisition import Acquisition, TrustRegion
from ranktune.tuner.gp.encoding import SpaceEncoding, covered, keys

GLOBAL_CANDIDATES, LOCAL_CANDIDATES = 512, 40
"""Candidates over the whole space, and around each centre, with FEW parameters that vary or more."""
FEW, LEAST = 4, 2
"""With fewer than FEW there are fewer candidates, by their square, and with less than LEAST as with so many."""
LOCAL_STARTS = 4
"""Candidates from which local search starts."""
LOCAL_ROUNDS = 3
"""Alternations of gradient ascent along numbers and single changes of other parameters."""
ASCENT_EVALUATIONS = 16
"""Batched evaluations of one gradient ascent."""
TOLERANCE = 1e-4
"""Smallest gain of a step, as a share of the distance from the median candidate to the best."""
MAX_ENUMERATED_VALUES = 12
"""Integer axes with at most this many values are enumerated; of larger ones the two nearest values are tried."""


def quasi_random(count: int, dimensions: int, generator: np.random.Generator, skip: int = 0) -> Floats:
    """Return points that fill the cube evenly, (count, dimensions), after the first skip of their sequence.

    Scrambled Sobol points: Owen 1998, "Scrambling Sobol' and Niederreiter-Xing Points".
    """
    points = sobol_points(count, min(dimensions, DIMENSIONS), generator, skip)
    rest = generator.random((skip + count, dimensions - points.shape[1]))  # few points fill so many dimensions nowhere
    return np.hstack([points, rest[skip:]])


@dataclass(eq=False)
class _Evaluated:
    """The rows evaluated so far, and their values."""

    encoding: SpaceEncoding
    function: Acquisition
    region: TrustRegion | None = None
    rows: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)

    def add(self, rows: Floats) -> Floats:
        """Evaluate full rows, store them and return their values."""
        values = self.function.values(self.encoding.embed(self.encoding.masked(rows)))
        self.rows.append(rows)
        self.values.append(values)
        return values

    def best_free(self, tried: Floats) -> tuple[Floats, bool]:
        """Return the best full row that tried does not cover, and True, or the best of all and False."""
        rows, values = np.concatenate(self.rows), np.concatenate(self.values)
        order = np.argsort(-values, kind="stable")
        start, size = 0, 1
        while start < len(order):
            some = rows[order[start : start + size]]
            free = np.flatnonzero(~covered(some, tried))
            if len(free):
                return some[free[0]], True
            start, size = start + size, min(2 * size, 64)
        return rows[order[0]], False


def maximise(
    function: Acquisition,
    encoding: SpaceEncoding,
    centres: Floats,
    tried: Floats | None,
    generator: np.random.Generator,
    region: TrustRegion | None = None,
    rounds: int = LOCAL_ROUNDS,
) -> Floats:
    """Return the full row, (d,), that maximises the acquisition function among those that tried, (t, d), leaves.

    centres are full rows, (p, d), with extra candidates around them. With a region the search stays within it, unless
    all candidates there are taken. Local search has that many rounds. Small spaces are enumerated; a taken row is
    returned only if all rows are taken.
    """
    tried = np.empty((0, len(encoding.axes))) if tried is None else tried
    pool = _Evaluated(encoding, function, region)
    all_rows = encoding.all_rows()
    if all_rows is not None:
        pool.add(all_rows)
        row, free = pool.best_free(tried)
        if not free and encoding.activity.conditional:  # learnt conditions may hide what is left
            pool.add(encoding.mesh())
            row, _ = pool.best_free(tried)
        return row
    candidates = _candidates(encoding, centres, generator, region)
    values = pool.add(candidates)
    chosen = _starts(encoding, candidates, values)
    tolerance = TOLERANCE * (float(values.max() - np.median(values)) + 1e-12)
    _local_search(pool, candidates[chosen], values[chosen], tolerance, rounds)
    row, free = pool.best_free(tried)
    for _ in range(8):
        if free:
            break
        pool.add(encoding.from_unit(generator.random((GLOBAL_CANDIDATES, len(encoding.axes)))))
        row, free = pool.best_free(tried)
    return row


def _candidates(
    encoding: SpaceEncoding, centres: Floats, generator: np.random.Generator, region: TrustRegion | None
) -> Floats:
    """Return full rows around each centre and over the whole space, all moved into the region, if there is one."""
    share = (min(max(len(encoding.varying), LEAST), FEW) / FEW) ** 2
    everywhere = encoding.from_unit(quasi_random(round(share * GLOBAL_CANDIDATES), len(encoding.axes), generator))
    around = np.repeat(centres, round(share * LOCAL_CANDIDATES), axis=0)
    near = np.concatenate([centres, _perturbed(encoding, around, generator)])
    if region is not None:
        near, everywhere = (
            encoding.snap(region.within(near, generator)),
            encoding.snap(region.spread(everywhere, generator)),
        )
    return np.concatenate([near, everywhere])


def _perturbed(encoding: SpaceEncoding, rows: Floats, generator: np.random.Generator) -> Floats:
    """Return a mutation of each full row: about a third of its parameters change, at least one of them active."""
    width = 10.0 ** generator.uniform(-2.5, -0.5, size=(len(rows), 1))  # from fine to coarse steps
    numbers = rows + width * generator.standard_normal(rows.shape)
    numbers = np.abs(numbers)  # reflected at both ends
    numbers = np.where(numbers > 1.0, np.abs(2.0 - numbers), numbers)
    fresh = encoding.from_unit(generator.random(rows.shape))
    category = np.array([axis.choices > 0 for axis in encoding.axes])
    changes = generator.random(rows.shape) < np.where(category, 0.15, 0.35)
    changed = np.argmax(generator.random(rows.shape) * encoding.activity(rows), axis=1)
    changes[np.arange(len(rows)), changed] = True
    return encoding.snap(np.where(changes, np.where(category, fresh, numbers), rows))


def _starts(encoding: SpaceEncoding, candidates: Floats, values: Floats) -> list[int]:
    """Return start indices: the best of each of the best few combinations of categories, then the best overall."""
    order = np.argsort(-values, kind="stable")[:200]
    category = [j for j, axis in enumerate(encoding.axes) if axis.choices]
    kinds = keys(encoding.masked(candidates[order])[:, category])
    first = list(dict(zip(reversed(kinds), reversed(order.tolist()), strict=True)).values())
    first.sort(key=lambda index: -values[index])
    chosen = [int(order[0]), *first[: LOCAL_STARTS // 2 + 1], *order[:LOCAL_STARTS].tolist()]
    return list(dict.fromkeys(chosen))[:LOCAL_STARTS]


def _local_search(pool: _Evaluated, rows: Floats, values: Floats, tolerance: float, rounds: int) -> None:
    """Alternate gradient ascent along numbers and the best single change, while that improves a row."""
    for _ in range(rounds):
        moved = _ascend_numbers(pool, rows, tolerance)
        reached = pool.add(moved)
        better = reached > values
        rows, values = np.where(better[:, None], moved, rows), np.where(better, reached, values)
        changes = [_neighbours(pool.encoding, row) for row in rows]
        if pool.region is not None:
            changes = [some[pool.region.holds(some)] for some in changes]
        if not sum(map(len, changes)):
            return
        changed, ends = pool.add(np.concatenate(changes)), np.cumsum([len(some) for some in changes])
        helped = []
        for i, (some, end) in enumerate(zip(changes, ends, strict=True)):
            results = changed[end - len(some) : end]
            if len(results) and results.max() > values[i] + tolerance:
                helped.append((some[np.argmax(results)], float(results.max())))
        if not helped:
            return
        rows, values = np.array([row for row, _ in helped]), np.array([value for _, value in helped])


def _ascend_numbers(pool: _Evaluated, rows: Floats, tolerance: float) -> Floats:
    """Return full rows with their active numbers moved to a local maximum and snapped to the grid."""
    encoding = pool.encoding
    active = encoding.activity(rows)
    smooth = [
        j for j in encoding.varying if encoding.axes[j].choices == 0 and encoding.axes[j].count > MAX_ENUMERATED_VALUES
    ]
    if not active[:, smooth].any():
        return rows
    columns = [encoding.columns[encoding.varying.index(j)].start for j in smooth]
    embedded = encoding.embed(encoding.masked(rows))
    free = np.zeros(embedded.shape, dtype=bool)
    free[:, columns] = active[:, smooth]
    low, high = np.zeros(embedded.shape[1]), np.ones(embedded.shape[1])
    if pool.region is not None:
        low[columns], high[columns] = pool.region.low[smooth], pool.region.high[smooth]
    climbed = ascend(
        pool.function.values_and_gradients,
        embedded,
        free,
        calls=ASCENT_EVALUATIONS,
        tolerance=tolerance,
        low=low,
        high=high,
    )
    moved = rows.copy()
    moved[:, smooth] = np.where(active[:, smooth], climbed[:, columns], rows[:, smooth])
    return encoding.snap(moved)


def _neighbours(encoding: SpaceEncoding, row: Floats) -> Floats:
    """Return the full rows that differ from row in one active category or whole number, (number of changes, d)."""
    active = encoding.activity(row[None])[0]
    changed = []
    for j in encoding.varying:
        axis = encoding.axes[j]
        if not active[j] or not np.isfinite(axis.count):
            continue
        if axis.choices or axis.count <= MAX_ENUMERATED_VALUES:
            places = axis.grid()
        else:
            value = axis.decode(row[j : j + 1])
            places = axis.encode(np.clip(np.concatenate([value - axis.step, value + axis.step]), axis.low, axis.high))
        for place in places[np.abs(places - row[j]) > 1e-12]:
            other = row.copy()
            other[j] = place
            changed.append(other)
    return np.array(changed).reshape(-1, len(row))


Both = Callable[[Floats], tuple[Floats, Floats]]
"""Rows (c, D) -> values (c,) and gradients (c, D)."""

FIRST_STEP_LENGTH = 0.1
"""Length of the first step, without an estimate of the curvature."""
ARMIJO = 1e-4
"""Share of the linear prediction that a step must gain to be accepted (Armijo's rule)."""


def ascend(
    function: Both,
    starts: Floats,
    free: NDArray[np.bool_],
    *,
    calls: int,
    tolerance: float,
    low: Floats | float = 0.0,
    high: Floats | float = 1.0,
) -> Floats:
    """Return the rows, (c, D), reached from starts along their free columns, (c, D), in at most that many calls.

    low and high, (D,), are the bounds of columns; starts lie between them where they are free. A start stops once a
    step gains less than tolerance. No result is below its start.

    Source: projected BFGS with backtracking; Nocedal & Wright 2006, sections 6.1 and 16.7.
    """
    x = starts.copy()
    value, gradient = function(x)
    inverse = np.zeros((len(x), x.shape[1], x.shape[1]))
    fresh = np.ones(len(x), dtype=bool)  # no curvature estimate yet
    step = np.ones(len(x))
    alive: NDArray[np.bool_] = np.asarray(free.any(axis=1))
    direction = np.zeros_like(x)
    turn = alive  # needs a new direction
    for _ in range(calls - 1):
        if not alive.any():
            break
        pushed = ((x <= low) & (gradient < 0.0)) | ((x >= high) & (gradient > 0.0))
        _set_directions(direction, turn, gradient, free & ~pushed, inverse, fresh)
        step = np.where(turn, 1.0, step)
        trial = np.clip(x + step[:, None] * direction, low, high)
        moved = trial - x
        trial_value, slope = function(trial)
        promised = np.einsum("ij,ij->i", gradient, moved)
        good = alive & (trial_value >= value + ARMIJO * promised) & (promised > 0.0)
        _update_inverse_hessians(inverse, fresh, good, moved, gradient - slope, free)
        gained = trial_value - value
        x[good], value[good], gradient[good] = trial[good], trial_value[good], slope[good]
        step = np.where(good, 1.0, 0.25 * step)
        turn = good
        alive = alive & ~(good & (gained < tolerance)) & (promised > 0.1 * tolerance)
    return x


def _set_directions(
    direction: Floats, turn: NDArray[np.bool_], gradient: Floats, free: NDArray[np.bool_], inverse: Floats,
    fresh: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Set the directions of the marked starts; columns that are not free stay."""
    pull = np.where(free, gradient, 0.0)
    steepest = pull * (FIRST_STEP_LENGTH / np.maximum(np.abs(pull).max(axis=1, keepdims=True), 1e-300))
    newton = np.where(free, np.einsum("ijk,ik->ij", inverse, pull), 0.0)
    uphill = ~fresh & (np.einsum("ij,ij->i", newton, pull) > 0.0)
    chosen = np.where(uphill[:, None], newton, steepest)
    direction[turn] = chosen[turn]


def _update_inverse_hessians(
    inverse: Floats, fresh: NDArray[np.bool_], good: NDArray[np.bool_], s: Floats, y: Floats, free: NDArray[np.bool_]
) -> None:
    """Apply the BFGS update for the steps s, with y the decrease of the gradient."""
    sy = np.einsum("ij,ij->i", s, y)
    learns = good & (sy > 1e-10 * np.sqrt(np.einsum("ij,ij->i", s, s) * np.einsum("ij,ij->i", y, y)))
    for i in np.flatnonzero(learns):
        if fresh[i]:
            inverse[i] = np.diag(np.where(free[i], sy[i] / (y[i] @ y[i]), 0.0))
            fresh[i] = False
        Hy = inverse[i] @ y[i]
        inverse[i] += ((sy[i] + y[i] @ Hy) / sy[i] ** 2) * np.outer(s[i], s[i])
        inverse[i] -= (np.outer(Hy, s[i]) + np.outer(s[i], Hy)) / sy[i]


DIMENSIONS, BITS = 128, 30
"""The shape of sobol.npy, the direction numbers of Sobol points."""


@cache
def _direction_bits() -> NDArray[np.float32]:
    """Return the bits of the direction numbers, (DIMENSIONS, BITS, BITS): the highest first, then the number."""
    numbers: NDArray[np.uint32] = np.load(Path(__file__).with_name("sobol.npy"))
    places = np.arange(BITS - 1, -1, -1, dtype=np.uint32)
    return ((numbers[:, None, :] >> places[:, None]) & 1).astype(np.float32)


def sobol_points(count: int, dimensions: int, generator: np.random.Generator, skip: int = 0) -> Floats:
    """Return points after the first skip of a scrambled sequence, (count, dimensions), of at most DIMENSIONS.

    They are those of scipy.stats.qmc.Sobol to the last bit, without the third of a second that it takes to import.
    Sources: Joe & Kuo 2008, "Constructing Sobol Sequences with Better Two-Dimensional Projections", for the direction
    numbers; Matousek 1998, "On the L2-Discrepancy for Anchored Boxes", for the scrambling.

    Examples
    --------
    >>> import numpy as np
    >>> sobol_points(4, 2, np.random.default_rng(0)).round(2).shape
    (4, 2)
    """
    (generator,) = generator.spawn(1)  # as scipy does: the given one stays where it is
    powers = 1 << np.arange(BITS, dtype=np.uint32)
    shift = generator.integers(2, size=(dimensions, BITS), dtype=np.uint32) @ powers
    lower = np.tril(generator.integers(2, size=(dimensions, BITS, BITS), dtype=np.uint32)).astype(np.float32)
    lower[:, np.arange(BITS), np.arange(BITS)] = 1.0
    # The sums are of at most 30 zeros and ones: exact in single precision.
    bits = (lower @ _direction_bits()[:dimensions]).astype(np.uint32) & 1
    scrambled = np.einsum("dbj,b->jd", bits, powers[::-1])
    steps = np.arange(skip, skip + count)
    changed = np.log2((steps[:-1] + 1) & -(steps[:-1] + 1)).astype(np.int64)  # the bit of the Gray code that changes
    gray = skip ^ (skip >> 1)
    first = np.bitwise_xor.reduce([shift, *(scrambled[j] for j in range(BITS) if gray >> j & 1)], axis=0)
    points: Floats = np.bitwise_xor.accumulate(np.vstack([first, scrambled[changed]]), axis=0) * 2.0**-BITS
    return points
