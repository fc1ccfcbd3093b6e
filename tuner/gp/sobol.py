"""Scrambled Sobol points, as scipy.stats.qmc.Sobol gives them, without the third of a second that it takes to import.

The points are those of scipy to the last bit, for as many dimensions as sobol.npy has direction numbers, (128, 30).

Source: Joe & Kuo 2008, "Constructing Sobol Sequences with Better Two-Dimensional Projections", for the direction
numbers; Matousek 1998, "On the L2-Discrepancy for Anchored Boxes", for the scrambling by lower triangular matrices and
a shift.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats

DIMENSIONS, BITS = 128, 30


@cache
def _direction_bits() -> NDArray[np.float32]:
    """Return the bits of the direction numbers, (DIMENSIONS, BITS, BITS): the highest first, then the number."""
    numbers: NDArray[np.uint32] = np.load(Path(__file__).with_name("sobol.npy"))
    places = np.arange(BITS - 1, -1, -1, dtype=np.uint32)
    return ((numbers[:, None, :] >> places[:, None]) & 1).astype(np.float32)


def sobol_points(count: int, dimensions: int, generator: np.random.Generator, skip: int = 0) -> Floats:
    """Return points after the first skip of a scrambled sequence, (count, dimensions), of at most DIMENSIONS.

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
