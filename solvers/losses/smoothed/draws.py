"""Random numbers of noisy rankings, and their first documents.

A uniform number is a hash (splitmix64) of a seed, the list, the round, the sample and the document, so that it does not
depend on what is computed before or beside it.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled

LOG_2 = 0.6931471805599453
MARGIN = 1.4
"""Factor from the last of the first times to the limit that others like these are sought from."""


@compiled
def _mixed(z: np.uint64) -> np.uint64:
    """Return a hash of 64 bits. Source: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def draw(seed: int, key: int, number: int, sample: int, room: Floats, noise: Floats) -> None:
    """Overwrite noise with -log(u), u uniform in (0, 1), for each document of a list; room, (n,), is scratch.

    u is a whole number and a half by 2^52. The loops are such that they become vector instructions: with m 2^e = u and
    z = (m - sqrt 2) / (m + sqrt 2), log u = (e + 1/2) log 2 + 2 (z + z^3 / 3 + z^5 / 5 + ...), to 5e-13.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    hashed = _mixed(_mixed(np.uint64(seed) + step) ^ (np.uint64(key) + step))
    hashed = _mixed(_mixed(hashed ^ (np.uint64(number) + step)) + np.uint64(sample) * step)
    for i in range(len(noise)):
        room[i] = float(np.int64(_mixed(hashed + np.uint64(i + 1) * step) >> np.uint64(12))) + 0.5
    bits = room.view(np.int64)
    for i in range(len(noise)):
        e = float((bits[i] >> 52) - (1023 + 52))
        m = 1.0 + float(bits[i] & 0xFFFFFFFFFFFFF) * 2.0**-52
        z = np.divide(m - 2.0**0.5, m + 2.0**0.5)  # unlike /, it does not test for zero
        w = z * z
        series = 1.0 + w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w * (1 / 13))))))
        noise[i] = -(e + 0.5) * LOG_2 - 2.0 * z * series


@compiled
def first_ones(times: Floats, guess: float, near: Ints, kept: Floats, places: Ints, order: Ints) -> float:
    """Overwrite order, (k,), with the numbers of the k smallest times, ascending; near, kept and places are scratch.

    The times up to a limit, of which there are k to 2 k + 8, are compared with each other. The limit is sought from
    guess on, which is above 0 and does not change the result. Return a guess for other times like these.
    """
    n, k = len(times), len(order)
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
        near[count], kept[count] = i, times[i]
        count += 0 if times[i] > limit else 1
    order[:] = near[:k]  # numbers of documents, also where times are NaN
    for a in range(count):
        place = 0
        for b in range(a):
            earlier = 1 if kept[b] <= kept[a] else 0
            place += earlier
            places[b] += 1 - earlier
        places[a] = place
    last = 0.0
    for a in range(count):
        if places[a] < k:
            order[places[a]] = near[a]
            last = max(last, kept[a])
    return MARGIN * last if 0.0 < last < np.inf else guess
