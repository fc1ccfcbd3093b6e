"""The order of a search, by what is known: first configurations, unfinished models, then the searches in turn."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

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
from ranktune.tuner.policy.next_trial import (
    CUT,
    LITTLE_GAIN,
    NO_TIME,
    NOTHING_LEFT,
    behind_best,
    next_action,
    with_reserve,
)
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.racing import time_limit
from ranktune.tuner.policy.reserve import Took

RANDOM = np.random.default_rng(0).random(50)
LINEAR, TREES = Untried("RankSVM", {"C": 1.0}), Untried("GBDTRanker", {"leaves": 8})
OTHER, FURTHER = Untried("RankSVM", {"C": 2.0}), Untried("GBDTRanker", {"leaves": 4})
FIRST, SECOND = Growing({"leaves": 16}, 0.4, first=True), Growing({"leaves": 32}, 0.5, first=False)
EVERYTHING = SearchState(
    {"RankSVM": SearchAccount(), "GBDTRanker": SearchAccount()},
    first=[LINEAR, TREES, OTHER, FURTHER],
    unfinished=[FIRST, SECOND],
    best=0.5,
    boosting=frozenset({"GBDTRanker", "LambdaMART"}),
)


def after(known: SearchState, action: Next) -> SearchState:
    """What is known once the trial of an action has begun."""
    if not isinstance(action, FitTrial | Grow):
        return known
    begun = {one.solver: 1 for one in known.first if one.params == action.params}
    return replace(
        known,
        first=[one for one in known.first if one.params != action.params],
        unfinished=[one for one in known.unfinished if one.params != action.params],
        begun={**known.begun, **begun},
    )


def actions(known: SearchState, left: float) -> Iterator[Next]:
    """The actions one after the other, the first suggestion or the end being the last."""
    while True:
        action = next_action(known, left)
        yield action
        if isinstance(action, Suggest | Finish):
            return
        known = after(known, action)


def test_one_first_configuration_of_each_solver_then_unfinished_models_then_the_rest() -> None:
    assert list(actions(EVERYTHING, math.inf)) == [
        FitTrial(LINEAR.params),
        FitTrial(TREES.params),
        Grow(SECOND.params),  # the better one
        Grow(FIRST.params),
        FitTrial(OTHER.params),
        FitTrial(FURTHER.params),
        Suggest("RankSVM"),
    ]


def test_of_models_that_were_suggested_only_those_as_good_as_the_best_continue() -> None:
    known = SearchState({"": SearchAccount()}, unfinished=[SECOND], best=0.5)
    assert next_action(known, 1.0) == Grow(SECOND.params)
    assert next_action(replace(known, best=0.51), 1.0) == Suggest("")
    assert next_action(replace(known, unfinished=[FIRST], best=0.9), 1.0) == Grow(FIRST.params)


@pytest.mark.parametrize("left", [-1.0, 0.0, 1.0, 2.0, 30.0, 40.0, 79.0, 80.0, 1e9])
@pytest.mark.parametrize("is_cut", [False, True])
def test_no_action_needs_more_than_the_time_left(left: float, is_cut: bool) -> None:
    usual = {"RankSVM": SearchAccount(usual={"RankSVM": 3.0}), "GBDTRanker": SearchAccount(usual={"GBDTRanker": 50.0})}
    known = replace(EVERYTHING, accounts=usual, is_cut=is_cut)
    share = CUT if is_cut else 1.0
    needed = {id(one.params): 3.0 for one in (LINEAR, OTHER)}
    needed |= {id(one.params): 50.0 * share for one in (TREES, FURTHER)}
    needed |= {id(FIRST.params): 0.0, id(SECOND.params): 0.0}
    searches = {"RankSVM": 3.0, "GBDTRanker": 50.0 * share}
    done = list(actions(known, left))
    for action in done:
        if isinstance(action, FitTrial | Grow):
            assert needed[id(action.params)] <= left and left > 0.0
        elif isinstance(action, Suggest):
            assert searches[action.search] <= left
    assert isinstance(done[-1], Finish) == (left < 3.0)
    assert len(done) == 1 or left > 0.0


def test_a_search_ends_where_nothing_is_left_to_try() -> None:
    used = SearchAccount(size=3.0, trials=2, running=1)
    assert next_action(SearchState({"BestFeature": used}), 9.0) == Finish(NOTHING_LEFT)
    assert next_action(SearchState({"BestFeature": replace(used, running=0)}), 9.0) == Suggest("BestFeature")
    assert next_action(SearchState({"RankSVM": SearchAccount(trials=4)}, share=4), 9.0) == Finish(NOTHING_LEFT)
    poor = SearchAccount(poor=POLICY.search.poor)
    assert next_action(SearchState({"BestFeature": used, "RankSVM": poor}), 9.0) == Finish(LITTLE_GAIN)
    assert next_action(SearchState(), 9.0) == Finish(NOTHING_LEFT)


def test_a_search_that_has_no_time_says_so() -> None:
    slow = SearchState({"": SearchAccount(usual={"LambdaMART": 9.0, "RankSVM": 8.0})})
    assert next_action(slow, 8.0) == Suggest("")
    assert next_action(slow, 7.9) == next_action(slow, 0.0) == next_action(EVERYTHING, 0.0) == Finish(NO_TIME)


@pytest.mark.parametrize(("behind", "share"), [(0.0, 1.0), (0.5, 0.4462), (3.5, POLICY.search.least_share)])
def test_the_time_of_a_search_is_the_odds_that_its_solver_is_the_best(behind: float, share: float) -> None:
    accounts = {"RankSVM": SearchAccount(), "RidgeRanker": SearchAccount()}
    seconds = {"RankSVM": 8.0, "RidgeRanker": 1.0}
    for _ in range(800):
        action = next_action(SearchState(accounts, behind={"RankSVM": 0.0, "RidgeRanker": behind}), math.inf)
        assert isinstance(action, Suggest)
        accounts[action.search].spend(action.search, seconds[action.search])
    assert accounts["RidgeRanker"].seconds == pytest.approx(share * accounts["RankSVM"].seconds, rel=0.1)


def test_once_a_model_has_grown_another_begins_only_where_a_good_part_of_it_has_room() -> None:
    known = replace(EVERYTHING, first=[TREES], unfinished=[], is_cut=True, fit_seconds=100.0)
    least = CUT * 100.0
    assert next_action(known, 1.0) == FitTrial(TREES.params)  # the first is begun in any case
    grown = replace(known, finished=frozenset({"LambdaMART"}))
    assert next_action(grown, least) == FitTrial(TREES.params)
    assert next_action(grown, 0.99 * least) == Suggest("RankSVM")
    assert next_action(replace(grown, finished=frozenset({"RankSVM"})), 1.0) == FitTrial(TREES.params)


def test_the_first_that_grow_share_the_time_as_far_as_it_is_enough_for_whole_fits() -> None:
    known = SearchState(
        first=[LINEAR, TREES, TREES, TREES], unfinished=[FIRST, SECOND], boosting=EVERYTHING.boosting, is_cut=True
    )
    assert known.to_grow == 4
    for fit_seconds, share in ((1.0, 12.0), (20.0, 20.0), (35.0, 60.0), (500.0, 60.0), (0.0, 60.0)):
        growing = replace(known, fit_seconds=fit_seconds)
        assert time_limit(growing, "RankSVM", 60.0, 1) == 60.0
        assert time_limit(growing, "GBDTRanker", 60.0, 1) == pytest.approx(share)
        assert time_limit(growing, "GBDTRanker", 60.0, 5) == 60.0  # each has a worker of its own
        assert time_limit(growing, "GBDTRanker", math.inf, 1) == math.inf


def test_on_folds_nothing_is_cut_before_the_time_is_over() -> None:
    known = SearchState(first=[TREES], boosting=EVERYTHING.boosting, fit_seconds=1.0)
    assert known.to_grow == 0
    assert time_limit(known, "GBDTRanker", 60.0, 1) == 60.0


def test_no_time_is_reserved_for_solvers_that_are_worse() -> None:
    took = {"RankSVM": Took(2.0, 1.0), "RidgeRanker": Took(1.0, 1.0)}
    reserved = {"RankSVM": Took(2.0, 1.0), "RidgeRanker": Took(0.0, 0.0)}
    assert with_reserve(SearchState(worse=frozenset({"RidgeRanker"})), took) == reserved
    assert with_reserve(SearchState(), took) == took


def test_a_solver_that_is_significantly_worse_has_no_further_first_configuration() -> None:
    known = SearchState(
        {"": SearchAccount()}, first=[LINEAR, TREES], begun={"RankSVM": 1, "GBDTRanker": 1}, is_cut=True
    )
    known = replace(known, boosting=EVERYTHING.boosting)
    assert next_action(known, 9.0) == FitTrial(LINEAR.params) and known.to_grow == 1
    behind = behind_best({"RankSVM": RANDOM - 0.1, "GBDTRanker": RANDOM})
    assert behind["GBDTRanker"] == 0.0 and behind["RankSVM"] > POLICY.significant
    assert next_action(replace(known, worse=frozenset({"RankSVM"})), 9.0) == FitTrial(TREES.params)
    both = replace(known, worse=frozenset({"RankSVM", "GBDTRanker"}))
    assert next_action(both, 9.0) == Suggest("") and both.to_grow == 0


@pytest.mark.parametrize(("left", "place"), [(199.0, 2), (201.0, 4)])
def test_boosting_comes_early_where_the_time_has_room_for_few_fits(left: float, place: int) -> None:
    cheap = [Untried(name, {}) for name in ("BestFeature", "RidgeRanker", "LogisticRanker", "RankSVM")]
    known = SearchState(first=[*cheap, TREES], boosting=EVERYTHING.boosting, is_cut=True, fit_seconds=100.0)
    requested = []
    while known.first:
        action = next_action(known, left)
        assert isinstance(action, FitTrial)
        (one,) = (one for one in known.first if one.params is action.params)
        requested.append(one.solver)
        first = [other for other in known.first if other is not one]
        known = replace(known, first=first, begun={**known.begun, one.solver: 1})
    assert requested.index(TREES.solver) == place
    assert [name for name in requested if name != TREES.solver] == [one.solver for one in cheap]
