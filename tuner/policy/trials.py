"""Which trials are believed: those that may replace a first configuration, and the finalists of all solvers.

The first configuration that was tried of a solver is good on many other tasks. The maximum of many noisy scores is
mostly noise where queries are few, so a trial replaces it only where its mean difference over queries is larger than
its standard error. With many queries that is soon so, with few only for a large difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.statistics.intervals import paired, randomisation_test, z_score


class Tried(Protocol):
    """A configuration that was tried: what it scored by validation query, (n_queries,), with weights of these."""

    @property
    def solver(self) -> str:
        """Name of its solver."""

    @property
    def seconds(self) -> float:
        """What its trial took."""

    @property
    def fit_seconds(self) -> float:
        """What a fit of it would take, on all parts of a trial."""

    @property
    def vali(self) -> Floats:
        """What it scored."""

    @property
    def vali_weights(self) -> Floats | None:
        """Weights of the queries, None where each counts once."""


def ahead(first: Floats, others: Sequence[Floats], weights: Floats | None = None, policy: Policy = POLICY) -> list[int]:
    """Return the places of the trials that are ahead of the first configuration, the highest mean first.

    Parameters
    ----------
    first : array of shape (n_queries,)
        What the first configuration scored by validation query.
    others : sequence of array of shape (n_queries,)
        The same of the other trials.
    weights : array of shape (n_queries,), optional
        Weights of the queries.
    policy : Policy
        By how many standard errors a trial must be ahead.
    """
    differences = [paired(values, first, weights) for values in others]
    needed = policy.choice.ahead
    places = [place for place, (difference, error) in enumerate(differences) if difference > needed * error]
    return sorted(places, key=lambda place: -differences[place][0])


def close(values: Sequence[Floats], weights: Floats | None = None, policy: Policy = POLICY) -> list[int]:
    """Return the places of the trials that are close to the best of them, the highest mean first.

    values are what each scored by validation query, (n_queries,). Their models are averaged: that is more accurate than
    any of them where the queries do not tell which is best. Of those that score the same, the first is enough.
    """
    ordered = sorted(range(len(values)), key=lambda place: -mean_or_zero(values[place], weights))
    best = values[ordered[0]]
    near = [place for place in ordered if z_score(best, values[place], weights) <= policy.choice.close]
    different = {values[place].tobytes(): place for place in reversed(near)}
    return [place for place in near if place in different.values()][: policy.choice.averaged]


def is_behind(tried: Tried, leader: Tried, policy: Policy = POLICY) -> bool:
    """Return whether a configuration is significantly worse than the leader."""
    return z_score(leader.vali, tried.vali, tried.vali_weights) > policy.significant


def finalists(
    candidates: Sequence[Tried], generator: np.random.Generator, *, worse: bool = False, policy: Policy = POLICY
) -> list[int]:
    """Return the places of the finalists, the best of each solver first; candidates are best first.

    They are those that paired queries do not distinguish from the best: the maximum of many noisy scores is biased, so
    it does not decide between them. The best of each other solver may still help in a blend. Those that are
    significantly worse are among them only with `worse`: the best of each solver, and all where queries are many.
    """
    leader, weights, rules = candidates[0].vali, candidates[0].vali_weights, policy.choice
    few = len(leader) < rules.many_queries
    close = [
        k
        for k, candidate in enumerate(candidates)
        if (worse and not few) or randomisation_test(candidate.vali, leader, generator, weights=weights) > rules.alpha
    ]
    solvers = [candidate.solver for candidate in candidates]
    best = [k for k in range(len(candidates)) if solvers[k] not in solvers[:k]]
    first = [k for k in best if worse or not is_behind(candidates[k], candidates[0], policy)]
    rest = sorted((k for k in close if k not in first), key=lambda k: (solvers[:k].count(solvers[k]), k))
    return [*first, *rest][: rules.finalists]
