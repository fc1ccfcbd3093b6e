"""Quality against cost: the Pareto front, its knee, and the best option within limits.

A cost is one of COSTS; less is better, and of quality more is better. A cost that is unknown, None or NaN, keeps an
option out of that cost's front and outside every limit on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest

COSTS = ("cost", "nonzeros", "bytes", "microseconds", "seconds")
SPELLINGS = {"features": "nonzeros"} | {name: name for name in COSTS}
SUFFIXES = {"": 1.0, "k": 1e3, "M": 1e6}


@dataclass(frozen=True)
class Option:
    """A model that could be chosen.

    quality        mean of the metric
    nonzeros       features that it looks at; cost: what these cost; bytes: its size on disk
    microseconds   processor time to score a document; seconds: processor time to learn it
    """

    label: str
    quality: float
    nonzeros: float | None = None
    bytes: float | None = None
    microseconds: float | None = None
    seconds: float | None = None
    cost: float | None = None

    def amount(self, name: str) -> float:
        """Return the cost of that name, NaN where it is unknown. Raises ParameterError on an unknown name."""
        value = getattr(self, cost_name(name))
        return math.nan if value is None else float(value)


def cost_name(name: str) -> str:
    """Return the cost of COSTS that name denotes. Raises ParameterError with the nearest otherwise."""
    if name not in SPELLINGS:
        raise ParameterError(f"'{name}' is no cost of a model. {nearest(name, SPELLINGS)}")
    return SPELLINGS[name]


def within_limits(costs: Mapping[str, float], limits: Mapping[str, float]) -> bool:
    """Return whether costs, by name, are no higher than limits; what is not known to keep them does not."""
    return all(float(costs.get(cost, math.inf)) <= most for cost, most in limits.items())


def front(options: Sequence[Option], cost: str) -> list[Option]:
    """Return the options that no other beats: from the cheapest to the best, both cost and quality rising.

    Of options equal in both the first is kept. Options whose cost or quality is unknown or infinite are left out.
    """
    measured = [option for option in options if math.isfinite(option.amount(cost)) and math.isfinite(option.quality)]
    best: list[Option] = []
    for option in sorted(measured, key=lambda option: (option.amount(cost), -option.quality)):
        if not best or option.quality > best[-1].quality:
            best.append(option)
    return best


def knee(options: Sequence[Option], cost: str) -> Option | None:
    """Return the option of the front after which quality grows slowest for its cost; None for an empty front.

    It lies farthest above the chord from the cheapest to the best, both axes scaled to [0, 1], cost by its logarithm
    (halving costs matters equally everywhere). Where no point lies above the chord, as on a front of one or two, it
    is the best. Source: Satopaa et al. 2011, "Finding a 'kneedle' in a haystack".
    """
    points = front(options, cost)
    if len(points) < 3:
        return points[-1] if points else None
    costs = np.array([option.amount(cost) for option in points])
    free = costs[costs > 0].min() / 2 if costs[0] <= 0 else 0.0  # a cost of 0 has no logarithm: half the least
    across = _unit(np.log(np.maximum(costs, free)))
    above = _unit(np.array([option.quality for option in points])) - across
    best = int(np.argmax(above))
    return points[best] if above[best] > 1e-12 else points[-1]


def _unit(values: Floats) -> Floats:
    """Return values, rising, scaled to [0, 1]."""
    scaled: Floats = (values - values[0]) / (values[-1] - values[0])
    return scaled


def best_within(options: Sequence[Option], limits: Mapping[str, float]) -> Option | None:
    """Return the option of highest quality that keeps every limit, cost name -> most; None where none does.

    Of options equally good the one with the least limited costs, in the order of limits, then the first.
    """
    names = [cost_name(name) for name in limits]
    most = list(limits.values())
    allowed = [
        option
        for option in options
        if not math.isnan(option.quality)
        and all(option.amount(name) <= limit for name, limit in zip(names, most, strict=True))  # NaN keeps no limit
    ]
    return min(allowed, key=lambda option: (-option.quality, [option.amount(name) for name in names]), default=None)


def parse_limits(text: str) -> dict[str, float]:
    """Return cost name -> most of a text such as "nonzeros<=29, bytes<=10k"; empty for a blank text.

    Numbers may end in k (1,000) or M (1,000,000). Of two limits on a cost the tighter holds. Raises ParameterError.
    """
    limits: dict[str, float] = {}
    for each in filter(None, (each.strip() for each in text.split(","))):
        name, most = _parse_limit(each)
        limits[name] = min(most, limits.get(name, math.inf))
    return limits


def _parse_limit(limit: str) -> tuple[str, float]:
    match = re.fullmatch(r"(\w+)\s*<=\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*([kM]?)", limit)
    if match is None:
        raise ParameterError(
            f"'{limit}' is not a limit: write a cost, <= and a number, such as nonzeros<=29 or bytes<=10k, "
            f"several with commas between. Costs: {', '.join(sorted(SPELLINGS))}."
        )
    most = float(match[2]) * SUFFIXES[match[3]]
    if not math.isfinite(most):
        raise ParameterError(f"'{limit}' limits nothing: its number is too large for a float. Leave the limit out.")
    return cost_name(match[1]), most
