"""Intervals and tests over queries: laws, brute force, and coverage by simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.statistics.intervals import randomisation_test, stratified_interval, z_score


@pytest.mark.parametrize("weighted", [False, True])
def test_limits_on_many_queries_are_those_of_draws(weighted: bool) -> None:
    generator = np.random.default_rng(0)
    values, weights = generator.exponential(size=1_500) ** 2, generator.random(1_500) ** weighted
    theirs = stats.bootstrap(
        (weights * values, weights), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True, method="percentile",
        n_resamples=40_000, batch=1_000, rng=generator,
    )  # fmt: skip
    found = stratified_interval([values], generator, weights=[weights] if weighted else None)
    normal = found.mean + theirs.standard_error * stats.norm.ppf([0.025, 0.975])
    errors = np.abs(np.array([(found.low, found.high), normal]) - theirs.confidence_interval)
    assert errors[0].max() < 0.05 * theirs.standard_error < errors[1].min()


def test_skipped_queries_do_not_count() -> None:
    values = np.array([0.2, np.nan, 0.6, np.nan])
    assert stratified_interval([values], np.random.default_rng(0)).mean == pytest.approx(0.4)
    none = stratified_interval([np.full(3, np.nan)], np.random.default_rng(0))
    assert np.isnan([none.mean, none.low, none.high]).all()


def test_one_query_gives_an_interval_without_width() -> None:
    interval = stratified_interval([np.array([0.3])], np.random.default_rng(0))
    assert (interval.low, interval.mean, interval.high) == (0.3, 0.3, 0.3)


def test_strata_count_equally_whatever_their_sizes() -> None:
    strata = [np.array([1.0, 0.0]), np.full(1_000, 0.25)]
    interval = stratified_interval(strata, np.random.default_rng(0))
    assert interval.mean == pytest.approx((0.5 + 0.25) / 2)
    assert (interval.low, interval.high) == pytest.approx(((0 + 0.25) / 2, (1 + 0.25) / 2))


def test_few_queries_are_tested_exactly() -> None:
    a, b = np.array([0.9, 0.5, 0.7, 0.2]), np.array([0.4, 0.6, 0.1, 0.2])
    difference = (a - b)[:3]  # the last query does not differ
    sums = [abs(np.dot(signs, difference)) for signs in itertools.product((-1, 1), repeat=3)]
    expected = np.mean(np.array(sums) >= abs(difference.sum()) - 1e-12)
    assert randomisation_test(a, b, np.random.default_rng(0)) == expected


def test_many_queries_agree_with_an_independent_implementation() -> None:
    generator = np.random.default_rng(3)
    a = generator.normal(0.50, 0.1, 80)
    b = a - generator.normal(0.02, 0.1, 80)
    theirs = stats.permutation_test(
        (a, b), lambda x, y: (x - y).mean(), permutation_type="samples", n_resamples=20_000, rng=generator
    ).pvalue
    ours = randomisation_test(a, b, generator, resamples=20_000)
    assert 0.001 < theirs < 0.5
    assert ours == pytest.approx(theirs, abs=4 * np.sqrt(2 * theirs * (1 - theirs) / 20_000))


def test_queries_that_a_metric_skips_do_not_count() -> None:
    values = np.array([1.0, np.nan, 0.5, 0.75])
    assert mean_or_zero(values) == pytest.approx(0.75)
    assert mean_or_zero(np.array([np.nan])) == 0.0
    assert z_score(values, values) == 0.0
    assert z_score(values, values - 0.25) == np.inf


def test_equal_weights_change_no_test_and_queries_of_large_weight_decide() -> None:
    first, second = np.random.default_rng(3).random((2, 40))
    second[7] = np.nan
    assert z_score(first, second, np.full(40, 4.0)) == pytest.approx(z_score(first, second), rel=1e-12)
    same = [randomisation_test(first, second, np.random.default_rng(0), weights=w) for w in (None, np.ones(40))]
    assert same[0] == same[1]
    weights = np.where(first > second, 50.0, 1.0)
    assert z_score(first, second, weights) > 3.0 > -3.0 > z_score(first, second, 1.0 / weights)


def test_the_z_score_of_weighted_queries_is_that_of_a_ratio() -> None:
    generator = np.random.default_rng(4)
    difference, w = generator.normal(size=50), generator.random(50)
    mean = np.average(difference, weights=w)
    error = np.sqrt((w**2 * (difference - mean) ** 2).sum()) / w.sum()
    assert z_score(difference, np.zeros(50), w) == pytest.approx(mean / error)
