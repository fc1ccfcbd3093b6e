"""The end of a study in the time that is left: the best first, then as many solvers as fit, bags as large as fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.evaluation.models import keep_model
from ranktune.tuner.selection.blending import FEW_QUERIES
from ranktune.tuner.selection.candidates import Candidate, task_of
from ranktune.tuner.selection.time_reserve import (
    BAG,
    END_SHARE,
    MAX_BAG,
    UNTIMED_BAG,
    bag_size,
    fit_for_use,
    fit_in_time,
    is_bagged,
    reporting,
    reserve,
)
from ranktune.tuner.splits.plans import query_folds
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem
from tests.support.engine_samples import graded

QUERIES = graded(40, 0)
PROBLEM = Problem("", Path(), QUERIES, query_folds(QUERIES, 5, 0), query_folds(QUERIES, 5, 1), None)


def candidate(solver: str, seconds: float) -> Candidate:
    return Candidate(solver, {}, 0.5, np.full(40, 0.5), 1, seconds=seconds)


def within(seconds: float) -> Deadline:
    return Deadline.after(seconds, lambda: 0.0)


FOUND = [candidate(*own) for own in (("LambdaMART", 8.0), ("RankSVM", 1.0), ("RankSVM", 0.1), ("ListNet", 2.0))]


def test_without_a_deadline_everything_is_affordable() -> None:
    assert fit_in_time([0, 1, 3, 2], FOUND, PROBLEM, 1, Deadline()) == [0, 1, 3, 2]
    assert bag_size(FOUND, PROBLEM, 1, Deadline()) == UNTIMED_BAG


def test_where_time_is_short_the_best_of_each_solver_come_first() -> None:
    costs = [1.1 * 1.25 * result.seconds for result in FOUND]  # scored again, and refitted
    fixed = reporting(PROBLEM) + 1e-9
    assert fit_in_time([0, 1, 3, 2], FOUND, PROBLEM, 1, within(fixed + costs[0] + costs[1] + costs[3])) == [0, 1, 3]
    assert fit_in_time([0, 1, 3, 2], FOUND, PROBLEM, 1, within(fixed + sum(costs))) == [0, 1, 3, 2]


def test_unless_the_best_of_each_solver_fit_none_is_scored_again() -> None:
    solvers = sum(1.1 * 1.25 * FOUND[k].seconds for k in (0, 1, 3))
    assert fit_in_time([0, 1, 3, 2], FOUND, PROBLEM, 1, within(reporting(PROBLEM) + solvers - 0.01)) == []
    assert fit_in_time([0, 1, 3, 2], FOUND, PROBLEM, 8, within(5.0)) == [0, 1, 3, 2]  # in eight processes they do


@pytest.mark.parametrize(("left", "seeds"), [(0.0, 1), (5.0, 2), (7.0, 3), (1000.0, MAX_BAG)])
def test_bags_are_as_large_as_there_is_time(left: float, seeds: int) -> None:
    """A seed of these trees takes 2.2 seconds, the others .3."""
    assert bag_size([FOUND[0], FOUND[1]], PROBLEM, 1, within(left + reporting(PROBLEM))) == seeds


@pytest.mark.parametrize(("trees", "seeds"), [(1, 3), (2, 1), (3, 1), (5, 1)])
def test_without_a_deadline_trees_that_are_blended_share_the_seeds(trees: int, seeds: int) -> None:
    assert bag_size([*[FOUND[0]] * trees, FOUND[1]], PROBLEM, 1, Deadline()) == seeds


def test_the_end_fits_into_what_is_put_aside_for_it() -> None:
    """What the trials' seconds put aside is enough to score all solvers again and learn all of them in full bags."""
    seconds = {one.solver: one.seconds for one in (FOUND[0], FOUND[2], FOUND[3])}
    aside = reserve(PROBLEM, 1000.0, seconds)
    own = [candidate(solver, took) for solver, took in seconds.items()]
    assert fit_in_time([0, 1, 2], own, PROBLEM, 1, within(aside)) == [0, 1, 2]
    again = 1.1 * sum(seconds.values())
    assert bag_size(own, PROBLEM, 1, within(aside - again)) >= BAG
    assert reserve(PROBLEM, 1000.0, {"RankSVM": 1.0}) < reserve(PROBLEM, 1000.0, {"LambdaMART": 1.0})


@pytest.mark.parametrize("total", [1.0, 10.0, 30.0, 100.0, 1000.0])
def test_the_end_has_the_fullest_form_that_takes_a_share_of_the_time(total: float) -> None:
    seconds = {one.solver: one.seconds for one in (FOUND[0], FOUND[2], FOUND[3])}
    aside = reserve(PROBLEM, total, seconds) - reporting(PROBLEM)
    assert 0.0 <= aside <= END_SHARE * total
    assert aside <= reserve(PROBLEM, 2.0 * total, seconds) - reporting(PROBLEM)
    best = 1.1 * 8.0 * 1.25 / 5
    assert (aside >= best) == (END_SHARE * total >= best)


@pytest.mark.parametrize("count", [40, FEW_QUERIES])
def test_a_study_whose_time_is_over_before_its_first_trial_reserves_only_the_report(count: int) -> None:
    problem = replace(PROBLEM, development=graded(count, 0))
    for total in (0.0, -5.0):
        assert reserve(problem, total, {"LambdaMART": 8.0, "RankSVM": 1.0}) == pytest.approx(reporting(problem))


def test_parts_are_refitted_while_there_is_time_and_else_used_as_their_trials_left_them(tmp_path: Path) -> None:
    problem = Problem("", tmp_path, QUERIES, PROBLEM.plan, PROBLEM.fresh, None)
    plain = [FOUND[0], FOUND[1], FOUND[3]]
    cost = [1.1 * 1.25 / 5 * one.seconds for one in plain]

    def chosen(left: float) -> tuple[list[Candidate], list[Candidate]]:
        return fit_for_use(plain, 2, Study(), problem, 1, within(left + reporting(problem) + 1e-9))[:2]

    assert chosen(0.0) == (plain[:2], [])  # without models the parts of the chosen are refitted in any case
    for one in plain:
        keep_model(task_of(Study(), problem, one, 0), LinearModel(np.ones(2), solver=one.solver))
    assert chosen(0.0) == ([], plain)
    assert chosen(cost[1]) == ([plain[1]], [plain[0], plain[2]])
    assert chosen(sum(cost[:2])) == (plain[:2], plain[2:])
    assert chosen(sum(cost)) == (plain, [])
    worse = replace(plain[2], vali=np.full(40, 0.1) + np.linspace(0.0, 0.01, 40))
    assert fit_for_use([*plain[:2], worse], 2, Study(), problem, 1, Deadline())[:2] == (plain[:2], [worse])
    unkept = replace(worse, solver="RidgeRanker")
    assert fit_for_use([*plain[:2], unkept], 2, Study(), problem, 1, Deadline())[:2] == ([*plain[:2], unkept], [])


def test_bags_are_of_trees_of_few_queries() -> None:
    many = Problem("", Path(), graded(FEW_QUERIES, 0), PROBLEM.plan, PROBLEM.fresh, None)
    assert is_bagged("LambdaMART", PROBLEM)
    assert not is_bagged("LambdaMART", many)
    assert not is_bagged("RankSVM", PROBLEM)
