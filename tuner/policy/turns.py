"""Which search is next: of those that are open, the one that has used the least time.

The seconds of a search are divided by the odds that its solver is the best, paired by query: the one that leads has
most of the time, another that is as good has as much, and one that is far behind may still recover.
"""

from __future__ import annotations

import math
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


def most_in_vain(fit_seconds: float, policy: Policy = POLICY) -> int:
    """Return how many trials in a row end a search in vain, if a boosted one takes about so many seconds."""
    rules = policy.search
    return int(min(max(rules.seconds_in_vain / max(fit_seconds, 1e-9), rules.poor), rules.most_in_vain))


def behind_best(bests: Mapping[str, Floats], weights: Floats | None = None) -> dict[str, float]:
    """Return by how many standard errors each solver is behind the best, given what its best trial scored by query."""
    best = max(bests.values(), key=lambda values: mean_or_zero(values, weights))
    return {name: z_score(best, own, weights) for name, own in bests.items()}


def time_used(account: Account, behind: float, policy: Policy = POLICY) -> float:
    """Return the seconds by which searches take turns, of a solver so many standard errors behind the best."""
    odds = math.erfc(behind / math.sqrt(2.0)) / math.erfc(-behind / math.sqrt(2.0))
    return account.used / max(odds, policy.search.least_share)
