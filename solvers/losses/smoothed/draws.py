"""Random numbers of noisy rankings, and their first documents.

The numbers are successive ones of a shuffled table. Where they begin is a hash (splitmix64) of the list, the round and
the sample, so that they do not depend on what is computed before or beside them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined

STEP = np.uint64(0x9E3779B97F4A7C15)
BLOCK = 2**10
"""Successive numbers of the table that belong together; longer lists take several blocks."""
BEGINNINGS = 2**16
"""Where in the table a block can begin."""
MARGIN = 1.4
"""Factor from the last of the first times to the limit that others like these are sought from."""


@lru_cache(maxsize=4)
def table_of(seed: int) -> Floats:
    """Return -log(u), (BEGINNINGS + BLOCK,), where u are the same quantiles of (0, 1) for each seed, shuffled."""
    n = BEGINNINGS + BLOCK
    return np.asarray(-np.log((np.random.default_rng(seed).permutation(n) + 0.5) / n))


@inlined
def _mixed(z: np.uint64) -> np.uint64:
    """Return a hash of 64 bits. Source: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def stream(key: int, number: int) -> np.uint64:
    """Return a hash of the key of a list and the number of a round."""
    return _mixed(_mixed(np.uint64(key) + STEP) ^ (np.uint64(number) + STEP))


@compiled
def draw(table: Floats, hashed: np.uint64, sample: int, late: Floats, times: Floats) -> None:
    """Overwrite times with late times random numbers of table, all (n,), of a sample of a stream."""
    for begin in range(0, len(times), BLOCK):
        first = np.int64(_mixed(hashed + np.uint64((sample << 32) + begin) * STEP) >> np.uint64(48))
        drawn, factors, out = table[first : first + BLOCK], late[begin : begin + BLOCK], times[begin : begin + BLOCK]
        for i in range(len(out)):
            out[i] = drawn[i] * factors[i]


@compiled
def rankings(
    table: Floats, hashed: np.uint64, late: Floats, guess: float, room: Matrix, numbers: Ints, k: int, orders: Ints
) -> float:
    """Overwrite orders, (samples, k), with the first k documents of each sample of a stream by their times, see draw.

    The times up to a limit, of which there are k to 2 k + 8, are compared with each other. The limit is sought from
    guess on, which is above 0 and does not change the result. Return a guess for other lists like this one. room and
    numbers, (2, n) and (3, n), are scratch.
    """
    n, times, times_near, near, places, ranked = len(late), room[0], room[1], numbers[0], numbers[1], numbers[2]
    for sample in range(len(orders)):
        draw(table, hashed, sample, late, times[:n])
        low, high, limit, count = 0.0, np.inf, guess, 0
        while True:
            count = 0
            for i in range(n):  # a vector instruction: the times themselves are taken once
                count += 0 if times[i] > limit else 1
            if count >= k and (count <= 2 * k + 8 or limit == high):  # no limit lies between low and high: equal times
                break
            low, high = (limit, high) if count < k else (low, limit)
            limit = 2.0 * low if high == np.inf else 0.5 * (low + high)
            limit = high if limit == low else limit
        count = 0
        for i in range(n):  # without branches, which could not be foreseen
            near[count], times_near[count] = i, times[i]
            count += 0 if times[i] > limit else 1
        for a in range(count):
            place = 0
            for b in range(a):
                earlier = 1 if times_near[b] <= times_near[a] else 0
                place += earlier
                places[b] += 1 - earlier
            places[a], ranked[a] = place, near[a]  # numbers of documents, also where times are NaN
        for a in range(count):
            ranked[places[a]] = near[a]
        for r in range(k):
            orders[sample, r] = ranked[r]
        last = times[ranked[k - 1]]
        guess = MARGIN * last if 0.0 < last < np.inf else guess
    return guess
