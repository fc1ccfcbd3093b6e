"""Where time is given, solvers share the seconds; each is searched on its own, and nobody waits for trees."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from ranktune.solvers.core.space import Value
from ranktune.solvers.names import COMPOSED
from ranktune.tuner.policy.next_trial import most_in_vain
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.search.search_scheduler import SearchScheduler
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.study.declaration import Study
from tests.support.policies import begun

STUDY = Study(solvers=("RankSVM", "RidgeRanker", "BestFeature"), trials=60, sampler="random", seed=4)
GROWING = ("RidgeRanker", "GBDTRanker", "LambdaMART")
SECONDS = {"RankSVM": 8.0, "RidgeRanker": 1.0, "BestFeature": 1.0}
ALIKE = np.random.default_rng(0).random(50)


def standing() -> float:
    """A clock by which suggestions take no time."""
    return 0.0


def finished(params: dict[str, Value], value: float | None = 0.5, **attributes: object) -> FrozenTrial:
    known = replace(STUDY, solvers=(*STUDY.solvers, *GROWING, COMPOSED)).union_space().distributions
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    by_name = {name: known[name] for name in params}
    return create_trial(state=state, value=value, params=params, distributions=by_name, user_attrs=attributes)


def taken(scheduler: SearchScheduler, count: int, left: float = float("inf"), first: int = 0) -> list[dict[str, Value]]:
    """Suggestions one after the other, each run in the seconds that its solver takes."""
    results = []
    for number in range(first, first + count):
        params = begun(scheduler, number, left)
        if params is None:
            break
        results.append(params)
        scheduler.tell(number, finished(params), SECONDS[str(params["solver"])], ALIKE)
    return results


def solvers(found: list[dict[str, Value]]) -> list[object]:
    return [params["solver"] for params in found]


def test_solvers_share_the_time_not_the_trials() -> None:
    scheduler = SearchScheduler(STUDY, STUDY.union_space(), timed=True, clock=standing)
    result = taken(scheduler, 21)
    counts = Counter(solvers(result))
    assert result[:3] == STUDY.union_space().defaults()
    assert counts["BestFeature"] == 1  # there is nothing to tune
    assert abs(counts["RankSVM"] * 8.0 - counts["RidgeRanker"]) <= 8.0


def test_what_takes_too_long_is_left_to_what_fits() -> None:
    scheduler = SearchScheduler(STUDY, STUDY.union_space(), timed=True, clock=standing)
    taken(scheduler, 3)
    assert set(solvers(taken(scheduler, 5, left=4.0, first=3))) == {"RidgeRanker"}
    assert begun(scheduler, 8, 0.5) is None


def test_no_search_has_more_than_its_part_of_the_trials() -> None:
    study = replace(STUDY, trials=9)
    scheduler = SearchScheduler(study, study.union_space(), timed=True, clock=standing)
    assert Counter(solvers(taken(scheduler, 30))) == {"RankSVM": 3, "RidgeRanker": 3, "BestFeature": 1}


def test_running_trials_count_as_long_as_is_usual() -> None:
    scheduler = SearchScheduler(STUDY, STUDY.union_space(), timed=True, clock=standing)
    taken(scheduler, 5)
    running = [begun(scheduler, number, float("inf")) for number in range(5, 21)]
    assert [one["solver"] for one in running if one] == ["RidgeRanker"] * 14 + ["RankSVM", "RidgeRanker"]


@pytest.mark.parametrize("sampler", ["random", "thompson", "tpe"])
def test_remembered_trials_are_those_of_their_solver(sampler: str) -> None:
    """A search that remembers suggests what it would have suggested, had it run the trials itself."""
    study = replace(STUDY, sampler=sampler)
    space = study.union_space()
    whole = SearchScheduler(study, space, timed=True, clock=standing)
    past = [finished(params, seconds=SECONDS[str(params["solver"])]) for params in taken(whole, 9)]
    again = SearchScheduler(study, space, timed=True, clock=standing)
    again.remember((trial, ALIKE) for trial in past)
    one, other = (begun(scheduler, 9, float("inf")) for scheduler in (whole, again))
    assert one == other and one is not None


def test_together_the_sampler_chooses_the_solver() -> None:
    scheduler = SearchScheduler(STUDY, STUDY.union_space(), clock=standing)
    result = taken(scheduler, 40)
    assert len(result) == 40
    assert result[:3] == STUDY.union_space().defaults()
    assert Counter(solvers(result))["BestFeature"] > 1


@pytest.mark.parametrize("composed_leads", [False, True])
def test_compositions_have_a_search_of_their_own(composed_leads: bool) -> None:
    """Ten of them while another solver leads, one for each other trial while they lead; only then they are in vain."""
    study, most = replace(STUDY, solvers=(*STUDY.solvers, COMPOSED), trials=None), POLICY.search.compositions
    scheduler, number, found = SearchScheduler(study, study.union_space(), clock=standing), 0, list[object]()
    while (params := begun(scheduler, number, float("inf"))) is not None and number < 200:
        better = (params["solver"] == COMPOSED) == composed_leads
        scheduler.tell(number, finished(params), 1.0, ALIKE + 0.1 * better)
        found.append(params["solver"])
        number += 1
    counts, others = Counter(found), len(found) - found.count(COMPOSED)
    assert counts[COMPOSED] in ((others, others - 1) if composed_leads else (min(most, others),))
    assert min(counts.values()) >= 1 and number < 200
    assert all(abs(2 * found[:end].count(COMPOSED) - end) <= 4 for end in range(4, 2 * min(most, others)))
    assert scheduler.state.in_vain == POLICY.search.most_in_vain
    assert (others > POLICY.search.most_in_vain) != composed_leads
    few = replace(study, trials=9)  # too few to give some away
    assert SearchScheduler(few, few.union_space()).state.compositions == 0
    assert SearchScheduler(study, study.union_space(), timed=True).state.compositions == 0


def shared() -> SearchScheduler:
    study, options = replace(STUDY, solvers=GROWING), SearchOptions(one_part=True, fit_seconds=1.0)
    return SearchScheduler(study, study.union_space(), options, timed=True, clock=standing)


def grown(params: dict[str, Value], rounds: int, value: float, **unfinished: bool) -> FrozenTrial:
    return finished({**params, f"{params['solver']}.trees": rounds}, value, seconds=6.0, **unfinished)


def test_of_the_unfinished_models_the_best_continues_before_others_begin() -> None:
    scheduler, again = shared(), shared()
    linear, squared, pairs = (dict(begun(scheduler, number, 60.0) or {}) for number in range(3))
    assert [params["solver"] for params in (linear, squared, pairs)] == ["RidgeRanker", "GBDTRanker", "LambdaMART"]
    trials = [
        grown(squared, 40, 0.4, unfinished=True),
        grown(pairs, 30, 0.5, unfinished=True),
        grown(pairs, 70, 0.6),
    ]
    again.remember((trial, None) for trial in trials[:2])
    assert begun(again, 2, 60.0) == linear
    assert begun(again, 3, 60.0) == trials[1].params  # with the rounds that it has
    assert begun(again, 4, 60.0) == trials[0].params
    assert begun(again, 5, 60.0) not in [trial.params for trial in trials]
    finished = shared()
    finished.remember((trial, None) for trial in trials)
    begun(finished, 3, 60.0)
    assert begun(finished, 4, 60.0) == trials[0].params
    assert finished.state.to_grow == 4  # others of both solvers have not begun


def test_rounds_outside_of_the_space_are_continued_as_they_are() -> None:
    scheduler = shared()
    _, squared = begun(scheduler, 0, 60.0), begun(scheduler, 1, 60.0)
    assert squared is not None
    again = shared()
    params = {**squared, "GBDTRanker.trees": 4_321}
    again.resume(7, params)
    assert again.resume(8, {**params, "GBDTRanker.trees": 3}) == {**params, "GBDTRanker.trees": 3}


def test_what_was_tried_first_is_not_tried_again_after_an_interruption() -> None:
    result = taken_of(shared(), 6)
    scheduler = shared()
    scheduler.remember((finished(params, None), None) for params in result[:4])
    assert taken_of(scheduler, 2) == result[4:]


def taken_of(scheduler: SearchScheduler, count: int) -> list[dict[str, Value]]:
    results = [begun(scheduler, number, float("inf")) for number in range(count)]
    return [params for params in results if params is not None]


def test_another_maker_of_samplers_makes_the_suggestions() -> None:
    """A sampler of the same seed for each trial suggests the same values again; it is made as the study says."""
    study, wanted = replace(STUDY, sampler="thompson", acquisition="ei"), set[object]()

    def alike(name: str, **given: object) -> BaseSampler:
        wanted.add((name, given["acquisition"], given["seed"]))
        return RandomSampler(seed=3)

    space = study.union_space()
    for maker, many in ((alike, False), (make_sampler, True)):
        found = taken(SearchScheduler(study, space, clock=standing, sampler=maker), 40)[5:]
        assert (len({params["RankSVM.C"] for params in found if params["solver"] == "RankSVM"}) > 1) == many
    assert wanted == {("thompson", "ei", 4)}


def test_a_search_that_ends_by_gain_ends_after_trials_in_vain() -> None:
    """A trial that is ahead of the best of its solver begins the count anew, as the first of a solver does."""
    study = replace(STUDY, trials=None)
    scheduler, better = SearchScheduler(study, study.union_space(), clock=standing), ALIKE + 0.1
    number = 0
    while (params := begun(scheduler, number, float("inf"))) is not None and number < 60:
        scheduler.tell(number, finished(params), 1.0, better if number >= 5 else ALIKE)
        number += 1
    ahead, most = len(STUDY.solvers), POLICY.search.most_in_vain
    assert scheduler.state.in_vain == most and ahead + most < number < 60
    counted = SearchScheduler(STUDY, STUDY.union_space(), clock=standing)
    assert len(taken(counted, 40)) == 40 and counted.state.in_vain > most


@pytest.mark.parametrize(("seconds", "most"), [(1e-9, POLICY.search.most_in_vain), (5.0, 6), (1e9, POLICY.search.poor)])
def test_the_shorter_a_trial_the_more_may_be_in_vain(seconds: float, most: int) -> None:
    assert most_in_vain(seconds) == most
