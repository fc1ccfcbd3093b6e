"""Divisions forward in time: laws on random times, and equality with scikit-learn's on distinct ones."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit

from ranktune import LambdaMART
from ranktune.solvers.boosting.growth import held_out_numbers
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.deployment import engines
from ranktune.tuner.splits.forward import blocks, forward_folds
from ranktune.tuner.splits.gaps import check_gap, gap_of
from ranktune.tuner.splits.split import Development, validation_plan, with_test


def timed(times: Floats, first: int = 0) -> Queries:
    """Return queries of two documents at these times, the first a little earlier; a feature numbers the queries."""
    numbers = np.repeat(np.arange(len(times)) + first, 2)
    X = np.column_stack([numbers, np.tile([0.0, 1.0], len(times))])
    of_documents = np.repeat(times, 2) - np.tile([0.25, 0.0], len(times))
    return Queries.from_arrays(X, np.tile([0, 1], len(times)), qid=numbers, times=of_documents)


def random_times(seed: int) -> tuple[Floats, np.random.Generator]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, generator.integers(12, 400), generator.integers(60, 200)).astype(float), generator


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_learnt_from_the_future(seed: int) -> None:
    times, generator = random_times(seed)
    gap, queries = float(generator.integers(0, 3)), timed(times)
    folds = forward_folds(queries, int(generator.integers(1, 6)), gap)
    for fold in folds:
        assert times[fold.train].max() < times[fold.vali].min() - gap
        assert len(fold.train) == np.count_nonzero(times < times[fold.vali].min() - gap)  # expanding: all of them
    scored = np.concatenate([fold.vali for fold in folds])
    assert len(np.unique(scored)) == len(scored)
    for a, b in pairwise(folds):  # queries of one time stay together
        assert times[a.vali].max() < times[b.vali].min()
    every = blocks(queries, 5, gap)
    assert not len(every[0].train) and sorted(np.concatenate([f.vali for f in every])) == list(range(len(times)))


@pytest.mark.parametrize(("count", "folds", "gap"), [(60, 5, 0), (61, 4, 3), (17, 2, 1), (100, 9, 0)])
def test_distinct_times_are_divided_as_scikit_learn_does(count: int, folds: int, gap: int) -> None:
    order = np.random.default_rng(count).permutation(count)
    queries = timed(order.astype(float))
    expected = TimeSeriesSplit(folds, gap=gap).split(np.zeros(count))
    for fold, (train, vali) in zip(forward_folds(queries, folds, gap), expected, strict=True):
        assert sorted(order[fold.train]) == train.tolist() and sorted(order[fold.vali]) == vali.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_last_part_is_the_test(seed: int) -> None:
    times, _ = random_times(seed)
    split = with_test(QuerySplit("s", timed(times)), 0, gap="2")
    assert split.test is not None
    start = split.test.time_of_query.min()
    assert split.train.time_of_query.max() < start - 2
    assert split.test.n_queries == np.count_nonzero(times >= start) >= int(0.2 * len(times))
    assert split.train.n_queries == np.count_nonzero(times < start - 2)


def test_copies_and_first_stages_are_judged_on_later_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is made from earlier queries than those that it is scored on, and no time is both."""
    generator = np.random.default_rng(0)
    X, times = generator.normal(size=(240, 3)), generator.integers(0, 12, 40).astype(float)
    X[:, 2] = np.maximum(X[:, 0], X[:, 1])
    queries = Queries.from_arrays(X, X[:, 2] > 0.5, group=[6] * 40, times=np.repeat(times, 6))
    model = LambdaMART(trees=5).fit(queries).as_model(metric="ndcg@10")
    fitted: list[float] = []

    def noting(make: Callable[..., Any], place: int) -> Callable[..., Any]:
        def noted(*given: Any) -> Any:
            fitted.append(given[place].time_of_query.max())
            return make(*given)

        return noted

    monkeypatch.setattr(engines, "copy_of", noting(engines.copy_of, 1))
    loss = engines.copy_loss(model, queries, ["solr"], "ndcg@10", 0)
    scored = ~np.isnan(loss)
    assert len(fitted) == 2 and max(fitted) < times.max() and times[scored].min() > min(fitted)
    assert np.all(times[~scored & with_pairs(queries)] <= min(fitted)), "the earliest third is scored by none"


def test_queries_that_are_not_before_a_given_test_are_left_out() -> None:
    late = timed(np.array([20.0, 25.0]), 100)
    with pytest.warns(RankTuneWarning, match="11 of 30 training queries are not before the test"):
        split = with_test(QuerySplit("s", timed(np.arange(30.0)), test=late), 0, gap="1")
    assert split.train.n_queries == 19 and split.test is late
    with pytest.raises(DataError, match="nothing is left"):
        with_test(QuerySplit("s", timed(np.arange(30.0, 40.0)), test=late), 0)
    untimed = Queries.from_arrays([[1.0], [2.0]], [0, 1])
    with pytest.raises(DataError, match="or some have none"):
        with_test(QuerySplit("s", timed(np.arange(30.0)), test=untimed), 0)


def test_a_query_that_comes_again_is_not_learnt_from_before() -> None:
    again = timed(np.arange(12.0))
    again = Queries.from_arrays(again.features % 6, again.grades, qid=again.query_of_document, times=again.times)
    for fold in blocks(again, 3):
        assert not set(fold.train % 6) & set(fold.vali % 6)


def test_too_few_times_for_the_folds_are_refused() -> None:
    queries = timed(np.repeat([1.0, 2.0, 3.0], 10))
    assert len(forward_folds(queries, 5)) == 2  # by default as many as there can be
    with pytest.raises(DataError, match="30 queries of 3 different times give 2 of 5 folds"):
        forward_folds(queries, 5, exactly=True)
    with pytest.raises(DataError, match="smaller gap"):
        forward_folds(queries, 5, 10.0)
    with pytest.raises(DataError, match="before the validation queries"):
        validation_plan(Development(queries, 0), None, 0, strict=True, gap="2")


def test_boosting_holds_out_its_latest_queries() -> None:
    times, generator = random_times(3)
    kept, aside = held_out_numbers(timed(times), 0.2, generator)
    assert times[kept].max() < times[aside].min() and len(kept) + len(aside) == len(times)


def test_gaps_are_in_the_units_of_the_times() -> None:
    numbers = timed(np.arange(3.0))
    dates = np.repeat(np.array(["2026-01-01", "2026-01-09"], dtype="datetime64[D]"), 2)
    dated = Queries.from_arrays(np.eye(4), [0, 1, 0, 1], qid=[1, 1, 2, 2], times=dates)
    assert gap_of("7", numbers) == 7 and np.diff(dated.time_of_query) == gap_of("8d", dated)
    assert gap_of("1w", dated) == gap_of("168h", dated) == gap_of("10080m", dated) == gap_of("604800s", dated)
    assert gap_of("0", numbers) == gap_of("0", dated) == 0
    for gap, queries in (("7d", numbers), ("7", dated)):
        with pytest.raises(ParameterError, match="and the times are"):
            gap_of(gap, queries)
    for wrong in ("-1", "week", "1e400", "7 days", ""):
        with pytest.raises(ParameterError, match="is no gap"):
            check_gap(wrong)
