"""Rounds of trees: what is shown of them, what is kept, and the gain of a grade."""

from __future__ import annotations

import itertools
from dataclasses import KW_ONLY
from typing import Annotated, Any

import numpy as np
import pytest

from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.boosting.training_queries import check_single, gains_of
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import Trees, joined, one_tree


class Scripted:
    """A library whose round n answers x <= n with -1 and else with 1, and that ends after some rounds."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.numbers: list[int] | None = None
        self.asked: list[tuple[Any, int]] = []

    def part(self, numbers: Ints) -> Scripted:
        part = Scripted(self.last)
        part.asked, part.numbers = self.asked, numbers.tolist()
        return part

    def growth(self, seed: int) -> ScriptedGrowth:
        self.asked.append((self.numbers, seed))
        return ScriptedGrowth(self.last)


class ScriptedGrowth:
    def __init__(self, last: int) -> None:
        self.last, self.rounds = last, 0

    def grow(self) -> bool:
        more = self.rounds < self.last
        self.rounds += more
        return more

    def trees(self, first: int, last: int) -> Trees:
        assert 0 <= first < last <= self.rounds
        return joined([one_tree([0], [float(n)], [-1], [-2], [-1.0, 1.0]) for n in range(first, last)])


@with_parameters
class Ranker(BoostedRanker):
    trees = 50
    _: KW_ONLY
    last: Annotated[int, Param("The round after which no split is left.")] = 10**6
    patience = 5
    metric = "pairwise"

    def _source(self, training: Any) -> Any:
        self.source_ = Scripted(self.last)
        return self.source_


def rising(highest: int, queries: int = 6) -> Queries:
    """Every query has documents 0 to highest, the better the higher: all are separated after so many rounds."""
    x = np.tile(np.arange(highest + 1.0), queries)
    return Queries.from_arrays(x[:, None], x, qid=np.repeat(np.arange(queries), highest + 1))


@pytest.mark.parametrize(("trees", "last", "kept"), [(1, 99, 1), (2, 99, 2), (50, 99, 50), (50, 1, 1), (50, 13, 13)])
def test_there_is_a_step_and_a_model_after_every_round_and_the_last_has_all_trees(
    trees: int, last: int, kept: int
) -> None:
    ranker = Ranker(trees, last=last)
    shown = []
    for number, step in enumerate(ranker.fit_steps(rising(5)), start=1):
        shown.append(ranker.trees_.n_trees)
        assert step.iteration == number and np.isnan(step.objective)
        assert ranker.rounds_ == (shown[-1],) and 0.8 * number <= shown[-1] + 1 <= number + 1
    assert len(shown) in (kept, kept + 1)  # the round that found no split is a step
    assert shown == sorted(shown) and shown[-1] == kept
    assert len(set(shown)) <= 5 + 4 * np.log(kept) + 1  # joining at every round would be quadratic
    assert ranker.trees_.threshold.tolist() == list(range(kept))


def test_the_steps_show_the_best_so_far_on_validation_queries() -> None:
    ranker = Ranker(patience=3)
    steps = []
    for step in ranker.fit_steps(rising(9), vali=rising(7)):
        steps.append((ranker.trees_.n_trees, step.objective))
        assert ranker.rounds_ == steps[-1][:1]
    assert steps == sorted(steps, key=lambda step: (step[0], -step[1]))
    assert steps[-1] == (7, -1.0)  # document 7 is above document 6 from round 7 on, the tree of threshold 6
    assert len(steps) == 7 + 3


@pytest.mark.parametrize("last", [20, 61, 10**6])
def test_the_metric_of_later_rounds_is_computed_in_blocks(last: int) -> None:
    """The best of the rounds that are looked at is kept, and where trees stop growing the last of them is one."""
    trees, highest, looks = 120, 60, []
    for step in (ranker := Ranker(trees, last=last, patience=9)).fit_steps(rising(70), vali=rising(highest)):
        looks.append((step.iteration, ranker.trees_.n_trees, -step.objective))
    evaluated = sorted({kept for _, kept, _ in looks})
    assert evaluated[:16] == list(range(1, 17))
    assert all(b - a <= max(1, a // 8) for a, b in itertools.pairwise(evaluated))
    assert ranker.trees_.n_trees == ranker.rounds_[0] == (last if last < highest else looks[-1][1])
    assert looks[-1][1] - highest < highest // 8 or last < highest
    assert (looks[-1][2] == 1.0) == (last >= highest)


def test_the_share_held_out_counts_the_rounds_and_all_are_learnt_from_in_proportion() -> None:
    ranker = Ranker(validation=0.25, patience=3).fit(rising(6, queries=8))
    (learnt, first), (everything, second) = ranker.source_.asked
    assert len(learnt) == 6 and everything is None and first == second
    assert ranker.rounds_ == (8,)  # 6 rounds tell all apart; 6 / (1 - 0.25) = 8
    assert Ranker(trees=7, validation=0.25, patience=3).fit(rising(6, queries=8)).rounds_ == (7,)


def test_a_bag_asks_with_other_seeds_and_averages() -> None:
    ranker = Ranker(trees=4, seeds=3, random_state=5).fit(rising(5))
    seeds = [seed for _, seed in ranker.source_.asked]
    assert len(set(seeds)) == 3 and ranker.rounds_ == (4, 4, 4)
    assert np.allclose(ranker.predict(rising(5)), Ranker(trees=4).fit(rising(5)).predict(rising(5)), rtol=1e-12)
    repeated = Ranker(trees=4, seeds=3, random_state=5).fit(rising(5))
    assert [seed for _, seed in repeated.source_.asked] == seeds
    assert [seed for _, seed in Ranker(trees=4, random_state=6).fit(rising(5)).source_.asked] != seeds[:1]


def test_gains() -> None:
    grades = np.array([0.0, 2.0, 1.0, 30.0])
    assert gains_of(grades, "auto").tolist() == gains_of(grades, "exponential").tolist() == [0.0, 3.0, 1.0, 2.0**30 - 1]
    assert gains_of(grades, "linear").tolist() == grades.tolist()
    assert gains_of(np.array([-1.0, 0.5]), "auto").tolist() == [0.0, 1.5]
    assert gains_of(np.array([0.5]), "exponential").tolist() == [2.0**0.5 - 1.0]
    assert gains_of(np.array([31.0, 33.0]), "auto").tolist() == [0.0, 2.0]
    with pytest.raises(DataError, match="gain='exponential' "):
        gains_of(np.array([31.0]), "exponential")


def test_values_beyond_single_precision_are_reported() -> None:
    check_single(np.array([0.0, 3.4e38, -1.2e-38]), "a grade")
    for value in (1e39, -1e39, 1e-39):
        with pytest.raises(DataError, match=r"a grade of .* beyond single precision"):
            check_single(np.array([0.0, value]), "a grade")
