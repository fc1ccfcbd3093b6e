"""The order of a search: its next trial, when it ends, and for which solvers time is reserved.

The first configurations come first, one of each solver, as the level that the search has to beat: cheap ones before
boosting, unless it needs nearly all of the time. Then unfinished models continue before other configurations begin: the
rest of the first ones, but for solvers that are significantly worse, and what the samplers suggest. Compositions of a
loss, a pair weight, a penalty and an optimizer are searched beside all other solvers, since a fit takes little. A
search that ends by gain ends after trials in vain.

Of the searches that are open the one is next that has used the least time. The seconds of a search are divided by the
odds that its solver is the best, paired by query: the one that leads has most of the time, another that is as good has
as much, and one that is far behind may still recover.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.policy.actions import (
    Finish,
    FitTrial,
    Grow,
    Growing,
    Next,
    SearchAccount,
    SearchState,
    Suggest,
    Untried,
)
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.racing import can_be_cut
from ranktune.tuner.policy.reserve import Took
from ranktune.tuner.statistics.intervals import z_score

ALL_RUN = "all trials were run"
NO_TIME = "no further trial fits into the time"
NOTHING_LEFT = "nothing is left to try"
LITTLE_GAIN = "further trials are expected to gain too little"
IN_VAIN = "The search ended because its last trials were no better than those before"
GIVEN_UP = "a trial did not end within its time"
CUT = 0.3
"""Share of its expected time from which a trial of boosting is begun; at the deadline it counts with its rounds. Half
and twice as much deliver the same (docs/explanation/tasks.md)."""


def next_action(state: SearchState, left: float, policy: Policy = POLICY) -> Next:
    """Return what a search does next, with so many seconds left for trials."""
    if left <= 0.0:
        return Finish(NO_TIME)
    new = [one for one in state.first if one.solver not in state.begun]
    if first := _fitting(state, _in_order(state, new, left, policy), left):
        return FitTrial(first.params)
    if growing := _continued(state):
        return Grow(growing.params)
    if state.in_vain >= state.most_in_vain:
        return Finish(IN_VAIN)
    if _is_turn_of_compositions(state, policy):
        return Suggest(state.composed)
    if first := _fitting(state, [one for one in state.first if one.solver not in state.worse], left):
        return FitTrial(first.params)
    return _next_search(state, left, policy)


def _in_order(state: SearchState, new: Sequence[Untried], left: float, policy: Policy) -> list[Untried]:
    """Return first configurations in their order: boosting after few others where the time has room for few fits."""
    if not state.is_cut or state.fit_seconds * policy.search.few_fits <= left:
        return list(new)
    others = [one for one in new if one.solver not in state.boosting]
    before = max(policy.search.before_boosting - len(state.begun.keys() - state.boosting), 0)
    return [*others[:before], *(one for one in new if one.solver in state.boosting), *others[before:]]


def _continued(state: SearchState) -> Growing | None:
    """Return the model that continues, None if there is none.

    Models of first configurations continue in any case, since another kind of trees helps in a blend; others only where
    they are as good as the best of all trials. That all models grow in steps, from the beginning, was computed too: on
    the drawn tasks to learn from it gained 0.002 NDCG@10 on test queries, and on those that confirm it lost 0.002
    (docs/explanation/tasks.md).
    """
    eligible = [growing for growing in state.unfinished if growing.first or growing.value >= state.best]
    return max(eligible, key=lambda growing: growing.value, default=None)


def _is_turn_of_compositions(state: SearchState, policy: Policy) -> bool:
    """Return whether a composition is next: one for each other trial, up to a number of them while others lead."""
    if state.composed not in state.finished:
        return False
    account, leads = state.accounts[state.composed], state.behind.get(state.composed) == 0.0
    others = sum(each.tried for each in state.accounts.values()) - account.tried
    most = others if leads else min(others, state.compositions)
    return account.tried < most and is_open(account, state.share, policy)


def _next_search(state: SearchState, left: float, policy: Policy) -> Suggest | Finish:
    """Return the search that has used the least time of those that are open and fit into the seconds left."""
    accounts = {name: each for name, each in state.accounts.items() if name != state.composed or not name}
    every, behind = accounts.values(), state.behind
    are_open = {name: account for name, account in accounts.items() if is_open(account, state.share, policy)}
    fitting = {name: account for name, account in are_open.items() if _fits(state, account, left)}
    if fitting:
        return Suggest(min(fitting, key=lambda name: time_used(fitting[name], behind.get(name, 0.0), policy)))
    if are_open or state.first:
        return Finish(NO_TIME)
    return Finish(LITTLE_GAIN if any(account.poor >= policy.search.poor for account in every) else NOTHING_LEFT)


def _fits(state: SearchState, account: SearchAccount, left: float) -> bool:
    """Return whether a trial of some promising solver fits into the seconds left, by what its trials took."""
    promising = {solver: seconds for solver, seconds in account.usual.items() if solver not in state.worse}
    usual = (promising or account.usual).items()
    return min((_least(state, *each) for each in usual), default=0.0) <= left


def _fitting(state: SearchState, untried: Iterable[Untried], left: float) -> Untried | None:
    """Return the first configuration that fits into the seconds left."""
    return next((one for one in untried if _least(state, one.solver, _expected(state, one)) <= left), None)


def _expected(state: SearchState, untried: Untried) -> float:
    """Return the expected seconds of a trial, 0 where it is begun in any case: as the first one of its solver.

    Once a model has grown, another begins only where a good part of its fit has room.
    """
    has_grown = can_be_cut(state, untried.solver) and bool(state.boosting & state.finished)
    took = max((account.usual.get(untried.solver, 0.0) for account in state.accounts.values()), default=0.0)
    return state.fit_seconds if has_grown else took


def _least(state: SearchState, solver: str, seconds: float) -> float:
    """Return the seconds that a trial needs to begin: boosting counts where it is cut."""
    return CUT * seconds if can_be_cut(state, solver) else seconds


def with_reserve(state: SearchState, took: Mapping[str, Took]) -> dict[str, Took]:
    """Return what took the solvers for whose end time is reserved, of what each solver's best trial took.

    Those of solvers that are significantly worse are only reported: they are rescored and refitted if there is time.
    """
    return {solver: Took(0.0, 0.0) if solver in state.worse else each for solver, each in took.items()}


def is_open(account: SearchAccount, share: float, policy: Policy = POLICY) -> bool:
    """Return whether a search has configurations left, promises a gain, and has not had its share of the trials."""
    return account.poor < policy.search.poor and account.tried < min(account.size, share)


def most_in_vain(fit_seconds: float, policy: Policy = POLICY) -> int:
    """Return how many trials in a row end a search in vain, if a boosted one takes about so many seconds."""
    rules = policy.search
    return int(min(max(rules.seconds_in_vain / max(fit_seconds, 1e-9), rules.poor), rules.most_in_vain))


def behind_best(bests: Mapping[str, Floats], weights: Floats | None = None) -> dict[str, float]:
    """Return by how many standard errors each solver is behind the best, given what its best trial scored by query."""
    best = max(bests.values(), key=lambda values: mean_or_zero(values, weights))
    return {name: z_score(best, scores, weights) for name, scores in bests.items()}


def time_used(account: SearchAccount, behind: float, policy: Policy = POLICY) -> float:
    """Return the seconds by which searches take turns, of a solver so many standard errors behind the best."""
    odds = math.erfc(behind / math.sqrt(2.0)) / math.erfc(-behind / math.sqrt(2.0))
    return account.used / max(odds, policy.search.least_share)
