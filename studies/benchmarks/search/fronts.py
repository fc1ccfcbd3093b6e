"""Problems with two objectives to minimise, and the hypervolume of the trials.

zdt1, zdt2, zdt3    Zitzler, Deb & Thiele 2000, six numbers: a convex, a concave and a disconnected front
dtlz2               Deb et al. 2002, six numbers: a quarter of a circle, with two objectives
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from optuna.trial import Trial

DIMENSIONS = 6
POINTS = 10_001
"""Points of a true front by which its hypervolume is computed."""
Objectives: TypeAlias = Callable[[Trial], tuple[float, float]]


def hypervolume(values: Sequence[Sequence[float]], corner: Sequence[float]) -> float:
    """Return the area that pairs of values dominate below a corner."""
    total, height = 0.0, corner[1]
    for first, second in sorted((a, b) for a, b in values if a < corner[0]):
        if second < height:
            total += (corner[0] - first) * (height - second)
            height = second
    return total


def _numbers(trial: Trial) -> list[float]:
    return [trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(DIMENSIONS)]


def _zdt(shape: Callable[[float, float], float]) -> Objectives:
    """Return a problem of ZDT: x0, and g times a function of x0 and g, where g = 1 is best."""

    def values(trial: Trial) -> tuple[float, float]:
        x = _numbers(trial)
        g = 1.0 + 9.0 * float(np.mean(x[1:]))
        return x[0], g * shape(x[0], g)

    return values


def _convex(first: float, g: float) -> float:
    return 1.0 - float(np.sqrt(first / g))


def _concave(first: float, g: float) -> float:
    return 1.0 - (first / g) ** 2


def _disconnected(first: float, g: float) -> float:
    return 1.0 - float(np.sqrt(first / g)) - first / g * float(np.sin(10.0 * np.pi * first))


def dtlz2(trial: Trial) -> tuple[float, float]:
    """Return two objectives whose best values lie on the unit circle."""
    x = _numbers(trial)
    radius = 1.0 + sum((value - 0.5) ** 2 for value in x[1:])
    angle = 0.5 * np.pi * x[0]
    return radius * float(np.cos(angle)), radius * float(np.sin(angle))


ZDT_CORNER = (1.1, 3.0)


def _area(shape: Callable[[float, float], float]) -> float:
    firsts = np.linspace(0.0, 1.0, POINTS).tolist()
    return hypervolume([(first, shape(first, 1.0)) for first in firsts], ZDT_CORNER)


SHAPES = {"zdt1": _convex, "zdt2": _concave, "zdt3": _disconnected}
FRONTS: dict[str, tuple[Objectives, tuple[float, float], float]] = {
    **{name: (_zdt(shape), ZDT_CORNER, _area(shape)) for name, shape in SHAPES.items()},
    "dtlz2": (dtlz2, (2.0, 2.0), 4.0 - np.pi / 4.0),
}
"""The objectives of each problem, the corner below which areas count, and the area of the true front."""
