"""How far values of configurations moved: laws, and the variance against simulation."""

import math

import numpy as np
import pytest

from ranktune.tuner.statistics.comparisons import PRIOR_DEGREES, movement, sampling_variance

OLD = np.array([0.70, 0.66, 0.61, 0.58, 0.40])


def test_the_same_values_count_in_full() -> None:
    moved = movement(OLD, OLD, 0.0)
    assert (moved.shift, moved.variance, moved.carried) == (0.0, 0.0, True)


def test_a_common_shift_is_no_noise() -> None:
    moved = movement(OLD, OLD + 0.05, 0.0)
    assert moved.shift == pytest.approx(0.05) and moved.variance == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("new", [OLD[::-1], np.full(5, 0.5), OLD[[2, 4, 0, 1, 3]]])
def test_another_ranking_does_not_carry_over(new: np.ndarray) -> None:
    assert not movement(OLD, new, 1e-4).carried
    assert movement(OLD, new, 1e-4).as_dict()["variance"] is None


def test_few_configurations_say_nothing() -> None:
    assert not movement(OLD[:2], OLD[:2], 0.0).carried
    assert movement(OLD[:0], OLD[:0], 0.0).shift == 0.0


def test_unrelated_values_are_dropped_but_for_the_level_of_the_test() -> None:
    generator = np.random.default_rng(0)
    pairs = generator.normal(size=(4000, 2, 5))
    kept = [movement(old, new, 0.0).carried for old, new in pairs]
    assert np.mean(kept) == pytest.approx(0.05, abs=0.01)


def test_the_variance_is_that_of_what_moved() -> None:
    generator, sd = np.random.default_rng(1), 0.02
    found = [movement(OLD, OLD + generator.normal(0.1, sd, 5), sd**2) for _ in range(2000)]
    assert all(moved.carried for moved in found)
    assert np.mean([moved.shift for moved in found]) == pytest.approx(0.1, abs=0.001)
    assert np.mean([moved.variance for moved in found]) == pytest.approx(sd**2, rel=0.03)
    single = movement(OLD, OLD + 0.05 * (OLD == OLD[4]), 0.0)
    assert single.variance == pytest.approx(0.05**2 * 0.8 / (PRIOR_DEGREES + 4)), "4/5 of a square is left by the mean"


def test_other_queries_alone_give_the_sampling_variance() -> None:
    generator, truth, moved = np.random.default_rng(2), OLD[:, None], list[float]()
    expected = list[float]()
    for _ in range(400):
        old, new = (truth + generator.normal(size=n) + 0.2 * generator.normal(size=(5, n)) for n in (60, 90))
        moved.append(float(np.var(new.mean(axis=1) - old.mean(axis=1), ddof=1)))
        expected.append(sampling_variance(list(old), list(new)))
    assert np.mean(expected) == pytest.approx(np.mean(moved), rel=0.1), "how hard queries are counts for nothing"
    assert sampling_variance(list(old), list(old)) == 0.0
    skipped = [np.append(values, math.nan) for values in old]
    assert sampling_variance(skipped, list(new)) == pytest.approx(sampling_variance(list(old), list(new)))
