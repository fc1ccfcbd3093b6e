"""Splits and validation plans: nothing leaks, nothing is lost, nothing is split inside a query."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits import plans
from ranktune.tuner.splits.plans import (
    Fold,
    Progressive,
    StoredPlan,
    fresh_plan,
    load_plan,
    query_folds,
    random_orders,
    save_plan,
)
from ranktune.tuner.splits.split import Development, by_time, validation_plan, with_test


def queries(count: int, first: int = 0, grades: tuple[float, ...] = (0.0, 1.0, 2.0)) -> Queries:
    """Queries whose documents carry the number of their query as a feature."""
    ids = np.repeat(np.arange(first, first + count), len(grades))
    return Queries.from_arrays(ids[:, None].astype(float), np.tile(grades, count), qid=ids)


@pytest.mark.parametrize("folds", [2, 3, 5, 11])
def test_folds_partition_the_queries(folds: int) -> None:
    plan = query_folds(queries(11), folds, seed=3)
    assert sorted(np.concatenate([fold.vali for fold in plan])) == list(range(11))
    for fold in plan:
        assert sorted(np.concatenate([fold.train, fold.vali])) == list(range(11))
        assert max(len(f.vali) for f in plan) - min(len(f.vali) for f in plan) <= 1


def planned(split: QuerySplit, folds: int | None, seed: int, **more: Any) -> tuple[Queries, StoredPlan]:
    development = Development.of(split)
    return development.queries, validation_plan(development, folds, seed, **more)


def folds_of(plan: StoredPlan) -> tuple[Fold, ...]:
    assert not isinstance(plan, Progressive)
    return plan


def test_folds_depend_on_the_seed_only() -> None:
    same = [np.concatenate([f.vali for f in query_folds(queries(40), 4, seed)]).tolist() for seed in (1, 1, 2)]
    assert same[0] == same[1]
    assert same[0] != same[2]


def test_given_validation_queries_are_scored_and_never_learnt_from() -> None:
    development, plan = planned(QuerySplit("s", queries(6), queries(3, first=6)), None, 0, strict=True)
    (fold,) = folds_of(plan)
    assert set(development.select(fold.train).features[:, 0]) == set(range(6))
    assert set(development.select(fold.vali).features[:, 0]) == {6, 7, 8}


def test_asking_for_folds_uses_training_and_validation_queries() -> None:
    development, plan = planned(QuerySplit("s", queries(6), queries(3, first=6)), 3, 0)
    assert development.n_queries == 9
    assert len(folds_of(plan)) == 3


def test_of_large_data_one_fold_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "LARGE_BYTES", 1)
    monkeypatch.setattr(plans, "LARGE_QUERIES", 40)
    development, plan = planned(QuerySplit("s", queries(40)), None, 0)
    (fold,) = folds_of(plan)
    assert (len(fold.train), len(fold.vali)) == (32, 8)
    assert fresh_plan(plan, development, 0) == ()
    assert len(folds_of(planned(QuerySplit("s", queries(40)), 5, 0)[1])) == 5
    assert len(folds_of(planned(QuerySplit("s", queries(39)), None, 0)[1])) == 5


def test_a_test_set_is_set_aside_once_and_kept_apart() -> None:
    split = with_test(QuerySplit("s", queries(50)), seed=0)
    assert split.test is not None
    aside, kept = set(split.test.features[:, 0]), set(split.train.features[:, 0])
    assert len(aside) == 10
    assert aside | kept == set(range(50))
    assert not aside & kept


def test_a_given_test_set_stays_and_tiny_data_keeps_its_queries() -> None:
    data = queries(2)
    assert with_test(QuerySplit("s", queries(50), test=data), seed=0).test is data
    assert with_test(QuerySplit("s", queries(8)), seed=0).test is None


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        (queries(1), {}, "is the query id missing"),
        (queries(5), {"folds": 1}, "at least 2 folds"),
        (queries(20, grades=(1.0, 1.0)), {}, "all grades are 1"),
        (queries(6), {"strict": True}, "keeps to given validation queries"),
    ],
)
def test_what_cannot_be_planned_is_refused(data: Queries, more: dict[str, Any], said: str) -> None:
    with pytest.raises((DataError, ParameterError), match=said):
        planned(QuerySplit("s", data), **{"folds": None, "seed": 0, **more})


def test_orders_are_permutations_and_fresh_ones_are_others() -> None:
    development, plan = planned(QuerySplit("s", queries(20)), None, 0, permutations=3)
    assert isinstance(plan, Progressive)
    fresh = fresh_plan(plan, development, 0)
    assert isinstance(fresh, Progressive)
    orders = [tuple(order) for order in (*plan.orders, *fresh.orders)]
    assert len(set(orders)) == 6
    assert all(sorted(order) == list(range(20)) for order in orders)


@pytest.mark.parametrize("kind", ["folds", "orders"])
def test_plans_are_read_as_they_were_written(kind: str, tmp_path: Path) -> None:
    data = queries(20)
    plan = query_folds(data, 3, 0) if kind == "folds" else random_orders(data, 12, 0)
    save_plan(plan, tmp_path / "plan.npz")
    loaded = load_plan(tmp_path / "plan.npz")
    if isinstance(plan, Progressive):
        assert isinstance(loaded, Progressive)
        assert [a.tolist() for a in loaded.orders] == [a.tolist() for a in plan.orders]
    else:
        assert isinstance(loaded, tuple)
        assert [(f.train.tolist(), f.vali.tolist()) for f in loaded] == [
            (f.train.tolist(), f.vali.tolist()) for f in plan
        ]
    assert load_plan(tmp_path / "none.npz") == ()


def test_the_same_query_twice_comes_into_one_fold() -> None:
    ids = np.concatenate([np.arange(30), np.arange(12)])
    X = np.repeat(ids, 3)[:, None].astype(float)
    doubled = Queries.from_arrays(X, np.tile([0.0, 1.0, 2.0], 42), qid=np.repeat(np.arange(42), 3))
    for fold in query_folds(doubled, 5, seed=1):
        assert not set(ids[fold.train]) & set(ids[fold.vali])
    with pytest.raises(DataError, match="only 2 of 4 queries differ"):
        query_folds(doubled.select(np.array([0, 1, 30, 31])), 3, seed=1)


def test_every_fold_gets_its_part_of_each_highest_grade() -> None:
    grades = np.repeat([0.0, 0.0, 1.0, 2.0], [20, 20, 20, 20])  # 40 queries without a relevant document
    ids = np.repeat(np.arange(80), 2)
    mixed = Queries.from_arrays(np.arange(160.0)[:, None], np.ravel(np.column_stack([grades, grades * 0])), qid=ids)
    for fold in query_folds(mixed, 5, seed=2):
        assert np.bincount(grades[fold.vali].astype(int)).tolist() == [8, 4, 4]


def test_repeats_deal_all_queries_anew() -> None:
    plan = query_folds(queries(20), 4, seed=0, repeats=3)
    dealt = [frozenset(frozenset(fold.vali.tolist()) for fold in plan[4 * k : 4 * k + 4]) for k in range(3)]
    assert len(set(dealt)) == 3
    assert all(set().union(*folds) == set(range(20)) for folds in dealt)


def test_many_given_validation_queries_are_kept_to_and_few_are_not() -> None:
    _, many = planned(QuerySplit("s", queries(6), queries(300, first=6)), None, 0)
    _, few = planned(QuerySplit("s", queries(6), queries(299, first=6)), None, 0)
    assert (len(folds_of(many)), len(folds_of(few))) == (1, 5)


@pytest.mark.parametrize("tested", [True, False])
def test_the_latest_queries_are_set_aside(tested: bool) -> None:
    split = by_time(QuerySplit("x", queries(50)), tested=tested)
    assert split.vali is not None and (split.test is not None) == tested
    parts = [part for part in (split.train, split.vali, split.test) if part is not None]
    assert [part.n_queries for part in parts] == ([32, 8, 10] if tested else [40, 10])
    assert np.concatenate([part.query_ids for part in parts]).tolist() == list(range(50))
    given = by_time(QuerySplit("x", queries(50), vali=queries(20, 100), test=queries(20, 200)), tested=True)
    assert given.train.n_queries == 50
    with pytest.raises(DataError, match="4 queries are too few"):
        by_time(QuerySplit("x", queries(4)), tested=True)
