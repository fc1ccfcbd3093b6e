"""Which search is next: of those that are open, the one that has used the least time.

A search of a solver that is significantly worse than the best, paired by query, counts its seconds many times: it may
recover, but it will hardly be selected or help a blend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.statistics.intervals import z_score


@dataclass(eq=False)
class Account:
    """What a search has used and reached.

    Attributes
    ----------
    size : float
        Configurations that there are to try.
    trials, running : int
        Finished trials, and those that are running.
    seconds : float
        What the finished ones took.
    usual : dict of str to float
        How long the next trial of each solver may take.
    poor : int
        Suggestions in a row with too small an expected gain.
    """

    size: float = float("inf")
    trials: int = 0
    running: int = 0
    seconds: float = 0.0
    usual: dict[str, float] = field(default_factory=dict)
    poor: int = 0

    @property
    def tried(self) -> int:
        """Trials that have begun."""
        return self.trials + self.running

    @property
    def used(self) -> float:
        """The seconds that the search has used, with those that its running trials are expected to take."""
        return self.seconds + self.running * (self.seconds / self.trials if self.trials else 0.0)

    def spend(self, solver: str, seconds: float, policy: Policy = POLICY) -> None:
        """Count the seconds of a finished trial."""
        self.trials += 1
        self.seconds += seconds
        self.usual[solver] = max(policy.search.usual * self.usual.get(solver, 0.0), seconds)

    def suggested(self, gain: float | None, until: float, policy: Policy = POLICY) -> None:
        """Count a suggestion with its expected gain, None where the sampler expects none, which should be `until`."""
        is_poor = gain is not None and gain < until and self.trials >= policy.search.min_trials
        self.poor = self.poor + 1 if is_poor else 0


def is_open(account: Account, share: float, policy: Policy = POLICY) -> bool:
    """Return whether a search has configurations left, promises a gain, and has not had its share of the trials."""
    return account.poor < policy.search.poor and account.tried < min(account.size, share)


def significantly_worse(
    bests: Mapping[str, Floats], weights: Floats | None = None, policy: Policy = POLICY
) -> frozenset[str]:
    """Return the solvers that are significantly worse than the best, by what the best trial of each scored by query."""
    best = max(bests.values(), key=lambda values: mean_or_zero(values, weights))
    return frozenset(name for name, own in bests.items() if z_score(best, own, weights) > policy.significant)


def time_used(account: Account, *, is_worse: bool, policy: Policy = POLICY) -> float:
    """Return the seconds by which searches take turns; those of one that is significantly worse count many times."""
    return account.used * policy.search.worse_cost if is_worse else account.used
