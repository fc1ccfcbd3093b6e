"""Days of generated queries: what decides the grades moves from day to day in a known way."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries

FEATURES, LENGTH, PERIOD = 8, 12, 7
CUTS = (0.6, 1.5, 2.4)

MOVES = ("none", "slow", "sudden", "seasonal")
"""How the truth moves: not at all; by a quarter turn over all days; by that at once in the middle; to and fro."""


def turn_of(move: str, day: int, days: int) -> float:
    """Return by how much of a quarter turn the truth of a day differs from that of the first."""
    if move == "slow":
        return day / max(days - 1, 1)
    if move == "sudden":
        return float(day >= days / 2)
    return 0.5 - 0.5 * float(np.cos(2.0 * np.pi * day / PERIOD)) if move == "seasonal" else 0.0


def weights_of(turn: float) -> Floats:
    """Return the weights of the features, (FEATURES,), after a part of a quarter turn: half are for each end."""
    half = FEATURES // 2
    fading = np.linspace(1.0, 0.4, half)
    weights: Floats = np.concatenate([np.cos(0.5 * np.pi * turn) * fading, np.sin(0.5 * np.pi * turn) * fading])
    return weights


def queries_of(turn: float, count: int, generator: np.random.Generator) -> Queries:
    """Return so many queries whose grades follow the truth and noise."""
    X = generator.normal(size=(count * LENGTH, FEATURES))
    utility = X @ weights_of(turn) + generator.normal(size=len(X))
    return Queries.from_arrays(X, np.digitize(utility, CUTS), qid=np.repeat(np.arange(count), LENGTH))
