"""Timing of works that take turns: their seconds, their results, and the ratios of their turns.

Noise of the machine affects the works of a turn alike, so that the median of the ratios of turns is more precise than
the ratio of the medians. Works run on one thread, and RankTune's warnings are not shown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneWarning

Work: TypeAlias = Callable[[], object]
Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True)
class Turns:
    """The seconds of each turn of each work, (turns,), and what its last turn returned."""

    seconds: Mapping[str, Floats]
    values: Mapping[str, Any]

    def median(self, name: str) -> float:
        """Return the median seconds of a work."""
        return float(np.median(self.seconds[name]))

    def ratios(self, name: str, beside: str) -> Floats:
        """Return the seconds of a work in those of another work, turn by turn, sorted."""
        return np.sort(self.seconds[name] / self.seconds[beside])

    def ratio(self, name: str, beside: str) -> float:
        """Return the median of the ratios of the turns."""
        return float(np.median(self.ratios(name, beside)))


def take_turns(
    works: Mapping[str, Work], repeats: int, clock: Clock = time.process_time, at_least: float = 0.0
) -> Turns:
    """Run each work in each of so many turns, after a turn that is not timed.

    A work is called until a turn has at least so many seconds, where the clock is too coarse for one call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    values: dict[str, Any] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        for work in works.values():
            work()
        for _ in range(repeats):
            for name, work in works.items():
                calls, begun = 0, clock()
                while calls == 0 or clock() - begun < at_least:
                    values[name] = work()
                    calls += 1
                seconds[name].append((clock() - begun) / calls)
    return Turns({name: np.array(taken) for name, taken in seconds.items()}, values)
