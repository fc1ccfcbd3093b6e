"""The end of a study in the time that is left: the best first, then as many solvers as fit, bags as large as fit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.tuner.policy.actions import Bag, BlendTrials, Rescore
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.reserve import Durations, Took, explaining
from ranktune.tuner.selection.finals import Candidate

RULES = replace(POLICY, time=replace(POLICY.time, a_query=0.0))
END = Durations(
    queries=40,
    documents=400,
    cells=4000,
    parts=5,
    fresh_parts=5,
    averages=["LambdaMART", "GBDTRanker"].__contains__,
    policy=RULES,
)
REPORTING = END.reporting()


def candidate(solver: str, seconds: float) -> Candidate:
    return Candidate(solver, {}, 0.5, np.full(40, 0.5), 1, seconds=seconds)


def took(*found: Candidate) -> dict[str, Took]:
    return {one.solver: Took(one.seconds, one.fit_seconds) for one in found}


FOUND = [candidate(*own) for own in (("LambdaMART", 8.0), ("RankSVM", 1.0), ("RankSVM", 0.1), ("ListNet", 2.0))]


def bag_size(plain: Sequence[Candidate], jobs: int, left: float) -> int:
    places = [*range(len(plain))]
    bags = [place for place in places if END.is_bagged(plain[place].solver)]
    return max(END.bag_sizes(plain, places, bags, jobs, left).values())


@settings(max_examples=200)
@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=6), st.integers(1, 4), st.floats(0.0, 60.0))
def test_bags_end_in_time_whatever_process_takes_them_and_leave_less_than_a_seed(
    seconds: list[float], jobs: int, left: float
) -> None:
    plain = [candidate("LambdaMART", one) for one in seconds]
    sizes = END.bag_sizes(plain, range(len(plain)), range(len(plain)), jobs, left)
    cost = [END.refit(one.fit_seconds) for one in plain]
    took = [sizes[place] * each for place, each in enumerate(cost)]
    processes, threads = min(jobs, len(plain)), max(jobs // len(plain), 1)
    ends = [0.0] * processes
    for each in took:
        ends[ends.index(min(ends))] += each / threads
    if max(sizes.values()) > 1:
        assert max(ends) <= END.free(left, 1, len(plain)) + 1e-9
    if processes == 1 and min(sizes.values()) < POLICY.time.max_bag:
        assert sum(took) + max(cost) > END.free(left, jobs, len(plain)) - 1e-9, ()
    assert sizes[0] <= POLICY.time.max_bag


def test_without_a_deadline_everything_is_affordable() -> None:
    assert END.fit_in_time([0, 1, 3, 2], FOUND, 1, np.inf) == [0, 1, 3, 2]
    assert bag_size(FOUND, 1, np.inf) == POLICY.time.untimed_bag


def test_where_time_is_short_the_best_of_each_solver_come_first() -> None:
    costs = [1.1 * 1.25 * result.seconds for result in FOUND]  # scored again, and refitted
    fixed = REPORTING + 1e-9
    assert END.fit_in_time([0, 1, 3, 2], FOUND, 1, fixed + costs[0] + costs[1] + costs[3]) == [0, 1, 3]
    assert END.fit_in_time([0, 1, 3, 2], FOUND, 1, fixed + sum(costs)) == [0, 1, 3, 2]


def test_unless_the_best_of_each_solver_fit_none_is_scored_again() -> None:
    solvers = sum(1.1 * 1.25 * FOUND[k].seconds for k in (0, 1, 3))
    assert END.fit_in_time([0, 1, 3, 2], FOUND, 1, REPORTING + solvers - 0.01) == []
    assert END.fit_in_time([0, 1, 3, 2], FOUND, 8, 5.0) == [0, 1, 3, 2]  # in eight processes they do


@pytest.mark.parametrize(("left", "seeds"), [(0.0, 1), (5.0, 2), (7.0, 3), (1000.0, POLICY.time.max_bag)])
def test_bags_are_as_large_as_there_is_time(left: float, seeds: int) -> None:
    """A seed of these trees takes 2.2 seconds, the others .3."""
    assert bag_size([FOUND[0], FOUND[1]], 1, left + REPORTING) == seeds


@pytest.mark.parametrize(("trees", "seeds"), [(1, 3), (2, 1), (3, 1), (5, 1)])
def test_without_a_deadline_trees_that_are_blended_share_the_seeds(trees: int, seeds: int) -> None:
    assert bag_size([*[FOUND[0]] * trees, FOUND[1]], 1, np.inf) == seeds


def test_the_end_fits_into_what_is_put_aside_for_it() -> None:
    """What the trials' seconds put aside is enough to score all solvers again and learn all of them in full bags."""
    own = [FOUND[0], FOUND[2], FOUND[3]]
    aside = END.reserve(1000.0, took(*own))
    assert END.fit_in_time([0, 1, 2], own, 1, aside) == [0, 1, 2]
    again = 1.1 * sum(one.seconds for one in own)
    assert bag_size(own, 1, aside - again) >= POLICY.time.bag
    assert END.reserve(1000.0, took(candidate("RankSVM", 1.0))) < END.reserve(
        1000.0, took(candidate("LambdaMART", 1.0))
    )


def test_boosting_is_refitted_without_the_rounds_that_did_not_help() -> None:
    trial = candidate("LambdaMART", 8.0)
    short = replace(trial, repeated=0.25)
    assert END.reserve(1000.0, took(short)) < END.reserve(1000.0, took(trial))
    assert bag_size([short], 1, REPORTING + 4.5) == 4 * bag_size([trial], 1, REPORTING + 4.5)
    assert END.refit(short.fit_seconds) == 0.25 * END.refit(trial.fit_seconds)


@pytest.mark.parametrize("total", [1.0, 10.0, 30.0, 100.0, 1000.0])
def test_the_end_has_the_fullest_form_that_takes_a_share_of_the_time(total: float) -> None:
    known = took(FOUND[0], FOUND[2], FOUND[3])
    aside = END.reserve(total, known) - REPORTING
    best, most = 1.1 * 8.0 * 1.25 / 5, POLICY.time.end_share * total
    assert -1e-9 <= aside <= most + 1e-9
    assert aside <= END.reserve(2.0 * total, known) - REPORTING + 1e-9
    assert (aside >= best - 1e-9) == (most >= best)
    growing = END.reserve(total, known, growing=True) - REPORTING
    assert growing == pytest.approx(best if most >= best else 0.0), "the refit of the best alone, or nothing"


@pytest.mark.parametrize("count", [40, POLICY.few_queries])
def test_a_study_whose_time_is_over_reserves_only_blending_and_the_report(count: int) -> None:
    end = replace(END, queries=count)
    for total in (0.0, -5.0):
        assert end.reserve(total, took(FOUND[0], FOUND[1])) == pytest.approx(end.reporting() + end.blending(2))


def test_blending_and_the_report_take_time_for_each_model() -> None:
    end = replace(END, policy=POLICY)
    alone, both = (end.reserve(0.0, took(*found)) for found in (FOUND[:1], FOUND[:2]))
    a_model = POLICY.time.a_query * end.queries
    assert both - alone == pytest.approx(3.0 * a_model)  # a single model is not blended
    assert end.free(9.0, 2, models=1) - end.free(9.0, 2, models=2) == pytest.approx(2.0 * a_model)


def test_parts_are_refitted_while_there_is_time_and_else_used_as_their_trials_left_them() -> None:
    plain = [FOUND[0], FOUND[1], FOUND[3]]
    cost = [1.1 * 1.25 / 5 * one.seconds for one in plain]

    def chosen(left: float, *, kept: bool = True) -> tuple[list[int], list[int]]:
        bag = END.after_blending(plain, 2, [kept] * 3, 1, left + REPORTING + 1e-9)
        return [*bag.places], [*bag.as_left]

    assert chosen(0.0, kept=False) == ([0, 1], [])  # without models the parts of the chosen are refitted in any case
    assert chosen(0.0) == ([], [0, 1, 2])
    assert chosen(cost[1] / 1.1) == ([1], [0, 2])  # if it takes longer, its trial's model is used
    assert chosen(cost[1] / 1.1 - 0.01) == ([], [0, 1, 2])
    assert chosen(sum(cost[:2])) == ([0, 1], [2])
    assert chosen(sum(cost)) == ([0, 1, 2], [])
    worse = replace(plain[2], vali=np.full(40, 0.1) + np.linspace(0.0, 0.01, 40))
    assert END.after_blending([*plain[:2], worse], 2, [True] * 3, 1, np.inf).as_left == [2]
    assert END.after_blending([*plain[:2], worse], 2, [True, True, False], 1, np.inf).places == [0, 1, 2]


def test_bags_of_seeds_are_of_trees_that_are_parts_of_the_chosen_or_as_good() -> None:
    worse = replace(FOUND[0], vali=np.full(40, 0.1) + np.linspace(0.0, 0.01, 40))
    bag = END.after_blending([FOUND[0], FOUND[1], FOUND[0], worse], 1, [False] * 4, 1, 1e6)
    assert bag == Bag([0, 1, 2, 3], {0: POLICY.time.max_bag, 2: POLICY.time.max_bag}, [])
    assert set(END.after_blending([FOUND[1], worse], 2, [True] * 2, 1, 1e6).seeds) == {1}


def test_finalists_are_rescored_where_a_deadline_leaves_time_for_two() -> None:
    worse = replace(FOUND[3], vali=np.full(40, 0.1) + np.linspace(0.0, 0.01, 40))
    candidates = [*FOUND[:3], worse]
    assert END.after_search(candidates, 0, 1, 1e6) == Rescore([0, 1, 2])
    for end, left in ((END, np.inf), (END, 1.0), (replace(END, fresh_parts=0), 1e6)):
        assert end.after_search(candidates, 0, 1, left) == BlendTrials([0, 1, 3, 2])
    assert END.after_search(candidates[:1], 0, 1, 1e6) == BlendTrials([0])


def test_bags_are_of_trees_of_few_queries() -> None:
    assert END.is_bagged("LambdaMART")
    assert not replace(END, queries=POLICY.few_queries).is_bagged("LambdaMART")
    assert not END.is_bagged("RankSVM")


def test_the_time_is_a_small_share_of_that_of_the_study() -> None:
    assert explaining(1.0, np.inf) == 0.5
    assert explaining(100.0, np.inf) == pytest.approx(3.0)
    assert explaining(1e6, np.inf) == 20.0
    assert explaining(100.0, 4.0) == 1.0
    assert explaining(100.0, -1.0) == 0.0
