"""The first look: when it is taken, how large its samples are, which configurations go on, and who is hopeless."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.reserve import Durations
from ranktune.tuner.statistics.intervals import z_score


@dataclass
class Arm:
    """A configuration with what it scored by validation query after each sample, and the weights of these queries."""

    solver: str
    params: Mapping[str, Value]
    sizes: list[int] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    weights: Floats | None = None

    @property
    def growth(self) -> float:
        """What the last doubling of the queries gained, NaN after one sample."""
        return mean_or_zero(self.scores[-1] - self.scores[-2], self.weights) if len(self.scores) > 1 else math.nan

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: those that were fitted to the largest samples first, then by what they scored."""
        return -self.sizes[-1], -mean_or_zero(self.scores[-1], self.weights)


def is_worth_it(durations: Durations, seconds: float) -> bool:
    """Return whether no boosted fit would come near its end in the time, so that samples decide which gets it."""
    return math.isfinite(seconds) and durations.a_fit > durations.policy.look.too_long * seconds


def first_size(queries: int, cells: float, seconds: float, policy: Policy = POLICY) -> int:
    """Return the size of the first sample of the training queries, by a rough estimate of the time of boosting.

    cells are the stored features of the queries, and seconds those of the whole look.
    """
    rules = policy.look
    share = min(rules.first * seconds / (cells * rules.a_cell), rules.first_most)
    return int(np.clip(queries * share, min(rules.min_sample, queries), queries))


def is_hopeless(arm: Arm, others: Sequence[Arm], queries: int, policy: Policy = POLICY) -> bool:
    """Return whether an arm is significantly behind another after a sample of the same size, with all its growth.

    queries are all training queries, up to which an arm is given the growth of its last doubling.
    """
    doublings = math.log2(queries / arm.sizes[-1])
    known = [own.growth for own in (arm, *others) if own.solver == arm.solver and math.isfinite(own.growth)]
    if not known and doublings > 0.0:
        return False
    gain = max(0.0, arm.growth if math.isfinite(arm.growth) else max(known, default=0.0)) * doublings
    same = [other.scores[other.sizes.index(arm.sizes[-1])] for other in others if arm.sizes[-1] in other.sizes]
    return any(z_score(scores, arm.scores[-1] + gain, arm.weights) > policy.significant for scores in same)


def promising(arms: Sequence[Arm], queries: int, policy: Policy = POLICY) -> list[Arm]:
    """Return those that may still win, the best first; after two samples at most a share of them."""
    ordered = sorted(arms, key=lambda arm: arm.rank)
    may_win = [arm for arm in ordered if not is_hopeless(arm, ordered, queries, policy)]
    most = max(policy.look.fewest, int(policy.look.kept * len(arms)))
    return may_win if len(ordered[0].sizes) < 2 else may_win[:most]


def affordable(arms: Sequence[Arm], left: float, policy: Policy = POLICY) -> list[Arm]:
    """Return the first arms whose fits to the next sample fit into the seconds left; none where too few do."""
    kept = []
    for arm in arms:
        known = arm.seconds or next(
            (other.seconds for other in arms if other.solver == arm.solver and other.seconds), [0.0]
        )
        left -= policy.look.growth_of_cost * known[-1]
        if left >= 0.0:
            kept.append(arm)
    return kept if len(kept) >= policy.look.fewest else []


def parts_of_trials(longest: float, parts: int, seconds: float, policy: Policy = POLICY) -> int:
    """Return the parts of the plan by which trials are scored: 1 where the longest trial takes too much of the time."""
    return 1 if longest * parts > policy.look.one_part * seconds else parts
