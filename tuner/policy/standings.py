"""The results of a first look, and what follows from them: what is tried first, on which sample, and with what lead."""

from __future__ import annotations

from dataclasses import dataclass

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.space import Value
from ranktune.solvers.names import SOLVER
from ranktune.tuner.policy.policy import POLICY, Policy


@dataclass(frozen=True)
class Standing:
    """The results of a configuration on samples.

    Attributes
    ----------
    params : mapping
        The configuration, by flat name.
    sizes, values, seconds : tuple of float
        Training queries of each sample, the mean of the metric after it, and the seconds that it took.
    growth : float
        What the last doubling of the queries gained; NaN after one sample.
    hopeless : bool
        Whether it is significantly behind the leader, its growth up to all queries included.
    """

    params: JsonView
    sizes: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    growth: float = float("nan")
    hopeless: bool = False

    @property
    def solver(self) -> str:
        """Name of the solver."""
        return str(self.params[SOLVER])

    def cost(self, queries: int) -> float:
        """Return the expected seconds of a fit to so many queries: in proportion, from the largest sample."""
        return self.seconds[-1] * queries / self.sizes[-1]


@dataclass(frozen=True)
class Look:
    """The result of the look.

    Attributes
    ----------
    standings : tuple of Standing
        The configurations, the leader first.
    queries : int
        The training queries of one part of the plan.
    parts : int
        The parts of the plan by which trials are scored: all, or 1 where all would take too long.
    seconds : float
        How long the look took.
    """

    standings: tuple[Standing, ...]
    queries: int
    parts: int
    seconds: float = 0.0

    @property
    def hopeless(self) -> frozenset[str]:
        """The solvers none of whose configurations may still win."""
        promising = {s.solver for s in self.standings if not s.hopeless}
        return frozenset(s.solver for s in self.standings) - promising

    def first(self, policy: Policy = POLICY) -> list[dict[str, Value]]:
        """Return what to try first: the best configuration of each promising cheap solver, and that of the leader."""
        best: dict[str, Standing] = {}
        for standing in self._promising:
            best.setdefault(standing.solver, standing)
        leader, *others = best.values() or [None]
        if leader is None:
            return []
        cheap = [s for s in others if s is not None and self._is_cheap(s, policy)]
        return [dict(s.params) for s in ([leader, *cheap] if self._is_cheap(leader, policy) else [*cheap, leader])]

    def then(self, policy: Policy = POLICY) -> list[dict[str, Value]]:
        """Return the other promising configurations of the expensive solvers: the best of each solver, then others."""
        first = self.first(policy)
        others = [s for s in self._promising if not self._is_cheap(s, policy) and dict(s.params) not in first]
        seen = {params[SOLVER] for params in first}
        news = {s.solver: s for s in reversed(others) if s.solver not in seen}
        ordered = [s for s in others if s is news.get(s.solver)]
        return [dict(s.params) for s in (*ordered, *(s for s in others if s not in ordered))]

    @property
    def _promising(self) -> list[Standing]:
        return [s for s in self.standings if not s.hopeless]

    def _is_cheap(self, standing: Standing, policy: Policy) -> bool:
        """Return whether a trial takes little of the time of the longest."""
        longest = max(other.cost(self.queries) for other in self.standings)
        return standing.cost(self.queries) <= policy.look.cheap * longest

    def cost(self, solver: str) -> float:
        """Return the expected seconds of a trial of a solver; 0 where nothing is known."""
        return self.parts * next((s.cost(self.queries) for s in self.standings if s.solver == solver), 0.0)
