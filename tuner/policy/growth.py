"""Which unfinished boosted model continues, in time that is left after the first configuration of each solver.

That all models grow in steps, from the beginning, was computed too: on the drawn tasks to learn from it gained 0.002
NDCG@10 on test queries, and on those that confirm it lost 0.002 (docs/explanation/tasks.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ranktune.solvers.core.space import Value


@dataclass(frozen=True)
class Growing:
    """A boosted model that its limit ended: its parameters, what it scored, and whether a study tries it first."""

    params: Mapping[str, Value]
    value: float
    first: bool


def continued(unfinished: Sequence[Growing], best: float) -> Growing | None:
    """Return the model that continues, None if there is none.

    Models of first configurations continue in any case, since another kind of trees helps in a blend; others only where
    they are as good as the best of all trials.
    """
    eligible = [growing for growing in unfinished if growing.first or growing.value >= best]
    return max(eligible, key=lambda growing: growing.value, default=None)
