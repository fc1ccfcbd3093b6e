"""Rounds of trees: what is shown of them, what is kept, and what a grade is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.boosting.base import (
    ONE_BY_ONE,
    BoostedRanker,
    check_penalty,
    check_range,
    check_share,
    check_single,
    gains_of,
    rows_of,
)
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import Trees, joined, one_tree


class Scripted:
    """A library whose round n answers x <= n with -1 and else with 1, and that ends after some rounds."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.asked: list[tuple[Any, int]] = []

    def rounds(self, queries: Ints | None, seed: int, sizes: Iterable[int] = ONE_BY_ONE) -> Iterator[Trees]:
        self.asked.append((None if queries is None else queries.tolist(), seed))
        done = 0
        for size in sizes:
            numbers = range(done, min(done + size, self.last))
            if not numbers:
                return
            yield joined([one_tree([0], [float(n)], [-1], [-2], [-1.0, 1.0]) for n in numbers])
            done += size


class Ranker(BoostedRanker):
    def __init__(
        self, trees: int = 50, *, last: int = 10**6, seeds: int = 1, validation: float = 0.0, patience: int = 5,
        metric: str = "pairwise", random_state: Any = None,
    ) -> None:  # fmt: skip
        self.trees, self.last, self.seeds, self.validation = trees, last, seeds, validation
        self.patience, self.metric, self.random_state = patience, metric, random_state

    def _source(self, queries: Queries) -> Scripted:
        self.source_ = Scripted(self.last)
        return self.source_


def rising(highest: int, queries: int = 6) -> Queries:
    """Every query has documents 0 to highest, the better the higher: all are separated after so many rounds."""
    x = np.tile(np.arange(highest + 1.0), queries)
    return Queries.from_arrays(x[:, None], x, qid=np.repeat(np.arange(queries), highest + 1))


@pytest.mark.parametrize(("trees", "last", "kept"), [(1, 99, 1), (2, 99, 2), (50, 99, 50), (50, 1, 1), (50, 13, 13)])
def test_every_model_that_is_shown_has_more_trees_and_the_last_has_all(trees: int, last: int, kept: int) -> None:
    ranker = Ranker(trees, last=last)
    shown = []
    for step in ranker.fit_steps(rising(5)):
        shown.append(ranker.trees_.n_trees)
        assert np.isnan(step.objective)
    assert shown == sorted(set(shown)) and shown[-1] == kept
    assert len(shown) <= 5 + 4 * np.log(kept) + 1  # joining at every round would be quadratic
    assert ranker.rounds_ == (kept,)
    assert ranker.trees_.threshold.tolist() == list(range(kept))


def test_the_steps_show_the_best_so_far_on_validation_queries() -> None:
    ranker = Ranker(patience=3)
    steps = []
    for step in ranker.fit_steps(rising(9), vali=rising(7)):
        steps.append((ranker.trees_.n_trees, step.objective))
    assert steps == sorted(steps, key=lambda step: (step[0], -step[1]))
    assert steps[-1] == (7, -1.0)  # document 7 is above document 6 from round 7 on, the tree of threshold 6
    assert ranker.rounds_ == (7,)


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
    again = Ranker(trees=4, seeds=3, random_state=5).fit(rising(5))
    assert [seed for _, seed in again.source_.asked] == seeds
    assert [seed for _, seed in Ranker(trees=4, random_state=6).fit(rising(5)).source_.asked] != seeds[:1]


def test_gains() -> None:
    grades = np.array([0.0, 2.0, 1.0, 30.0])
    assert gains_of(grades, "auto").tolist() == gains_of(grades, "exponential").tolist() == [0.0, 3.0, 1.0, 2.0**30 - 1]
    assert gains_of(grades, "linear").tolist() == grades.tolist()
    assert gains_of(np.array([-1.0, 0.5]), "auto").tolist() == [0.0, 1.5]
    assert gains_of(np.array([31.0, 33.0]), "auto").tolist() == [0.0, 2.0]
    with pytest.raises(DataError, match="gain='exponential' "):
        gains_of(np.array([0.5]), "exponential")


def test_rows_of_queries() -> None:
    queries = Queries.from_arrays(np.eye(6), np.arange(6), qid=[1, 1, 2, 3, 3, 3])
    assert rows_of(queries, np.array([0, 2])).tolist() == [0, 1, 3, 4, 5]


def test_values_beyond_single_precision_are_reported() -> None:
    check_single(np.array([0.0, 3.4e38, -1.2e-38]), "a grade")
    for value in (1e39, -1e39, 1e-39):
        with pytest.raises(DataError, match=r"a grade of .* beyond single precision"):
            check_single(np.array([0.0, value]), "a grade")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (check_share, [1e-9, 1, np.float32(0.5)], [0, -0.1, 1.001, np.nan, True, "1", None]),
        (check_penalty, [0, 1e30], [-1, 1.1e30, np.inf, np.nan, "1"]),
        (lambda name, value: check_range(name, value, 2, 5), [2, 5, np.int64(3)], [1, 6, 3.0, True, "3", None]),
    ],
)
def test_checks(check: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        check("it", value)
    for value in bad:
        with pytest.raises(ParameterError, match=r"^it="):
            check("it", value)
