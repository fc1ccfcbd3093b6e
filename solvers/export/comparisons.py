"""What is computed of a feature within a query, by Python alone: exported functions hold copies of these.

They give the bits of `ranktune.solvers.models.within.columns`, which says what each kind is. A missing value is None.
"""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Callable, Sequence

from ranktune.solvers.data.scaling import MIN_SPREAD
from ranktune.solvers.models.within.columns import LARGEST


def single(x: float) -> float:
    """Return the number of single precision that is nearest to x."""
    rounded: float = struct.unpack("f", struct.pack("f", x))[0]
    return rounded


def rank(values: list[float | None]) -> list[float | None]:
    """Return 0 for the lowest value to 1 for the highest, for equal values their mean rank."""
    known = sorted(x for x in values if x is not None)
    ranks = dict.fromkeys(known, 0.5)
    if len(known) > 1:
        last = {x: k for k, x in enumerate(known)}
        first = {x: len(known) - 1 - k for k, x in enumerate(reversed(known))}
        ranks = {x: single(0.5 * (first[x] + last[x]) / (len(known) - 1)) for x in known}
    return [None if x is None else ranks[x] for x in values]


def zscore(values: list[float | None]) -> list[float | None]:
    """Return the values less their mean, by their standard deviation; 0 where they do not vary."""
    known = sorted(x for x in values if x is not None)
    half = 0.5 * known[-1] - 0.5 * known[0] if known else 0.0
    if half < MIN_SPREAD:
        return [None if x is None else 0.0 for x in values]
    scaled = {x: (0.5 * x - 0.5 * known[0]) / half for x in known}
    mean = variance = 0.0
    for x in known:
        mean += scaled[x] / len(known)
    for x in known:
        variance += (scaled[x] - mean) * (scaled[x] - mean) / len(known)
    return [None if x is None else single((scaled[x] - mean) / math.sqrt(variance)) for x in values]


def gap(values: list[float | None]) -> list[float | None]:
    """Return how far each value is below the highest."""
    highest = max((x for x in values if x is not None), default=0.0)
    return [None if x is None else single(min(highest - x, LARGEST)) for x in values]


def share(values: list[float | None]) -> list[float | None]:
    """Return the values by the highest; 0 where none is above 0."""
    highest = max((x for x in values if x is not None), default=0.0)
    return [None if x is None else single(max(x / highest, -LARGEST)) if highest > 0.0 else 0.0 for x in values]


_FUNCTIONS = {function.__name__: function for function in (rank, zscore, gap, share)}
"""Kind of column -> what computes it."""


def copied(kinds: Sequence[str]) -> str:
    """Return the text of what computes columns of these kinds."""
    functions: list[Callable[..., object]] = [single, *(_FUNCTIONS[kind] for kind in kinds)]
    constants = f"MIN_SPREAD, LARGEST = {MIN_SPREAD!r}, {LARGEST!r}"
    return "\n\n".join([constants, *(inspect.getsource(function) for function in functions)])
