"""The race: its looks, its test, and that it keeps what is best on average."""

import numpy as np
import pytest
from scipy import stats

from ranktune.tuner.one_pass import result
from ranktune.tuner.policy.policy import POLICY


def test_looks_double_the_queries_and_halve_the_places() -> None:
    looks = result.looks(10_000, 64, 16)
    assert [look.after for look in looks] == [156, 312, 625, 1250, 2500, 5000, 10_000]
    assert [look.places for look in looks] == [32, 16, 16, 16, 16, 16, 16]
    assert [look.counted for look in looks] == [78, 78, 157, 313, 625, 1250, 2500]
    assert [look.fresh for look in looks] == [True] * 5 + [False] * 2
    assert looks[0].survivors == 24 and looks[-1].survivors == 16


@pytest.mark.parametrize(
    ("n_queries", "configurations", "survivors"), [(1, 1, 1), (64, 3, 16), (65, 64, 1), (500, 5, 2)]
)
def test_looks_end_with_the_queries_and_never_leave_no_place(
    n_queries: int, configurations: int, survivors: int
) -> None:
    looks = result.looks(n_queries, configurations, survivors)
    assert looks[-1].after == n_queries and not looks[-1].fresh
    assert all(0 < look.survivors <= look.places <= configurations for look in looks)
    assert [look.after for look in looks] == sorted({look.after for look in looks})


def test_the_test_is_students_paired_one() -> None:
    values = np.random.default_rng(0).normal(size=(5, 60)) + np.array([[0.0], [-0.1], [-0.4], [-0.7], [-2.0]])
    values[:, ::7] = np.nan
    known = values[:, ~np.isnan(values[0])]
    best = int(known.mean(axis=1).argmax())
    expected = [
        k != best and stats.ttest_rel(known[k], known[best], alternative="less").pvalue < POLICY.race.level / (3 * 4)
        for k in range(5)
    ]
    assert result.Standing.of(values, 3).worse.tolist() == expected
    assert 0 < sum(expected) < 4


def test_the_best_wins_where_it_is_best() -> None:
    generator, won = np.random.default_rng(2), 0
    gaps = np.linspace(0.0, 0.3, 32)
    for _ in range(50):
        rows = np.arange(32)
        for n, places in ((80, 16), (160, 8), (320, 8), (640, 8)):
            hard = generator.normal(0.5, 0.3, size=n)
            values = hard - gaps[rows, None] + generator.normal(0.0, 0.1, size=(len(rows), n))
            rows = rows[result.Standing.of(values, 4).going_on(places)]
        won += int(rows[0] == 0)
    assert won >= 45


def test_queries_that_are_skipped_or_never_differ_drop_nobody() -> None:
    equal, skipped = np.ones((3, 50)), np.full((3, 50), np.nan)
    for values in (equal, skipped):
        standing = result.Standing.of(values, 5)
        assert not standing.worse.any() and standing.going_on(3).tolist() == [0, 1, 2]
