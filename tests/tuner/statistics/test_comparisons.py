"""Paired comparisons: checked with scipy, every sign pattern by brute force, laws of both, and Holm by definition."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ranktune.solvers.core.errors import DataError
from ranktune.tuner.statistics.comparisons import (
    MAX_EXACT,
    compare,
    compare_splits,
    holm,
    paired_t,
    pairwise,
    signed_rank,
)
from ranktune.tuner.statistics.intervals import stratified_interval


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def untied(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.3, 1.0, n)


@pytest.mark.parametrize("n", [2, 3, 10, 50, 51, 400])
def test_t_and_signed_ranks_agree_with_scipy(n: int) -> None:
    difference = untied(n)
    method = "exact" if n <= MAX_EXACT else "asymptotic"
    assert paired_t(difference) == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, rel=1e-10)
    assert signed_rank(difference) == pytest.approx(stats.wilcoxon(difference, method=method).pvalue, rel=1e-10)


def test_ties_and_zeros_of_many_queries_agree_with_scipy() -> None:
    difference = np.round(untied(300), 1)
    assert len(np.unique(np.abs(difference))) < 40 and (difference == 0).any()
    theirs = stats.wilcoxon(difference, zero_method="wilcox", method="asymptotic").pvalue
    assert 1e-12 < theirs < 0.5
    assert signed_rank(difference) == pytest.approx(theirs, rel=1e-10)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_ties_of_few_queries_are_counted_pattern_by_pattern(values: list[int]) -> None:
    difference = np.array(values, dtype=float)
    ranks = stats.rankdata(np.abs(difference[difference != 0]))
    observed = abs(np.dot(ranks, np.sign(difference[difference != 0])))
    reached = [abs(np.dot(ranks, signs)) >= observed for signs in itertools.product((-1, 1), repeat=len(ranks))]
    assert signed_rank(difference) == pytest.approx(np.mean(reached), rel=1e-12)


@pytest.mark.parametrize(
    "difference", [np.zeros(0), np.zeros(5), np.array([0.4])], ids=["no query", "no difference", "one query"]
)
def test_without_information_the_p_value_is_one(difference: np.ndarray) -> None:
    comparison = compare(difference, np.zeros_like(difference), generator())
    assert (comparison.p_randomisation, comparison.p_t, comparison.p_wilcoxon) == (1.0, 1.0, 1.0)


def test_the_same_difference_everywhere_is_certain_and_without_effect_size() -> None:
    comparison = compare(np.full(30, 0.1) + np.linspace(0, 1, 30), np.linspace(0, 1, 30), generator())
    assert comparison.p_t == 0.0 and comparison.p_wilcoxon < 1e-8 and comparison.p_randomisation < 1e-3
    assert math.isnan(comparison.effect)  # in standard deviations of zero


def test_parts_of_a_comparison_add_up() -> None:
    a = np.array([0.5, 0.2, np.nan, 0.9, 0.4, 0.1])
    b = np.array([0.1, 0.2, 0.3, np.nan, 0.6, 0.0])  # counted differences 0.4, 0, -0.2, 0.1
    comparison = compare(a, b, generator())
    assert (comparison.wins, comparison.ties, comparison.losses) == (2, 1, 1)
    assert comparison.difference == pytest.approx(0.3 / 4)
    assert comparison.effect == pytest.approx((0.3 / 4) / np.std([0.4, 0.0, -0.2, 0.1], ddof=1))
    interval = stratified_interval([a - b], generator())
    assert (comparison.low, comparison.high) == (interval.low, interval.high)
    assert comparison.low < comparison.difference < comparison.high
    assert (comparison.mean_a, comparison.mean_b, comparison.queries) == pytest.approx((1.2 / 4, 0.9 / 4, 4))


def test_swapping_sides_mirrors() -> None:
    a, b = generator().random((2, 60))
    forward, backward = compare(a, b, generator()), compare(b, a, generator())
    assert (forward.difference, forward.effect) == pytest.approx((-backward.difference, -backward.effect), rel=1e-12)
    assert (forward.wins, forward.losses) == (backward.losses, backward.wins)
    for name in ("p_randomisation", "p_t", "p_wilcoxon"):
        assert getattr(forward, name) == pytest.approx(getattr(backward, name), rel=1e-12)


def test_a_higher_level_is_a_wider_interval() -> None:
    a, b = generator().random((2, 40))
    narrow, wide = compare(a, b, generator(), level=0.8), compare(a, b, generator(), level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert (narrow.level, wide.level) == (0.8, 0.99)


def test_splits_count_equally_in_the_difference_and_by_query_in_the_tests() -> None:
    large = generator().random((2, 100))
    a, b = [np.array([1.0, 0.5]), large[0]], [np.zeros(2), large[1]]
    comparison = compare_splits(a, b, generator())
    assert comparison.difference == pytest.approx((0.75 + large[0].mean() - large[1].mean()) / 2)
    pooled = np.concatenate(a) - np.concatenate(b)
    assert comparison.p_t == paired_t(pooled) and comparison.p_wilcoxon == signed_rank(pooled)
    assert comparison.wins + comparison.ties + comparison.losses == 102
    assert compare_splits([a[1]], [b[1]], generator()) == compare(a[1], b[1], generator())


@pytest.mark.parametrize(("a", "b"), [([2], [3]), ([2, 3], [3, 2]), ([2], [2, 2]), ([], [])])
def test_unequal_sides_are_refused_with_their_shapes(a: list[int], b: list[int]) -> None:
    with pytest.raises(DataError, match="same queries"):
        compare_splits([np.zeros(n) for n in a], [np.zeros(n) for n in b], generator())


P_VALUES = st.lists(st.one_of(st.none(), st.just(math.nan), st.floats(0, 1)), max_size=6)


@given(P_VALUES)
def test_holm_is_the_closure_of_bonferroni(p_values: list[float | None]) -> None:
    """An hypothesis' adjusted p is the largest Bonferroni p over all sets of hypotheses that it is in."""
    known = {k: p for k, p in enumerate(p_values) if p is not None and not math.isnan(p)}
    adjusted = holm(p_values)
    for k, result in enumerate(adjusted):
        if k not in known:
            assert result is p_values[k]
            continue
        others = [j for j in known if j != k]
        sets = [{k, *more} for size in range(len(others) + 1) for more in itertools.combinations(others, size)]
        expected = max(min(1.0, len(chosen) * min(known[j] for j in chosen)) for chosen in sets)
        assert result == pytest.approx(expected, rel=1e-12, abs=0)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=8))
def test_weighted_queries_are_tested_sign_by_sign(drawn: list[tuple[int, int]]) -> None:
    difference = np.array([value for value, _ in drawn], dtype=float)
    weights = np.array([weight for _, weight in drawn], dtype=float)
    observed = abs(np.dot(weights, difference))
    sums = [abs(np.dot(weights * difference, signs)) for signs in itertools.product((-1, 1), repeat=len(drawn))]
    comparison = compare(difference, np.zeros_like(difference), generator(), weights=weights)
    assert comparison.p_randomisation == pytest.approx(np.mean([total >= observed - 1e-9 for total in sums]), rel=1e-12)
    assert comparison.difference == pytest.approx(np.repeat(difference, weights.astype(int)).mean(), abs=1e-12)
    assert comparison.mean_a == comparison.difference and comparison.mean_b == 0.0


def test_it_prints_in_a_line_and_becomes_plain_json() -> None:
    a, b = generator().random((2, 30))
    comparison = compare(a, b, generator())
    assert len(repr(comparison)) < 150 and f"{comparison.difference:+.4f}" in repr(comparison)
    plain = json.loads(json.dumps(comparison.as_dict()))
    assert plain["interval"] == [comparison.low, comparison.high] and plain["queries"] == 30
    nothing = compare(np.array([np.nan]), np.array([0.5]), generator())
    assert nothing.as_dict()["difference"] is None and nothing.queries == 0


def test_the_scale_of_the_weights_of_a_split_changes_nothing() -> None:
    a, b = generator().random((2, 60))
    w = np.random.default_rng(1).random(60) + 0.1
    splits = [a[:25], a[25:]], [b[:25], b[25:]]
    for own in (None, [w[:25], w[25:]]):
        one, other = own or (np.ones(25), np.ones(35))
        plain = compare_splits(*splits, generator(), weights=own)
        scaled = compare_splits(*splits, generator(), weights=[0.3 * one, 7.0 * other])
        numbers = vars(plain).keys() - {"metric"}
        assert [vars(scaled)[each] for each in numbers] == pytest.approx([vars(plain)[each] for each in numbers])


def test_the_t_test_of_weighted_differences_is_that_of_a_ratio() -> None:
    difference, w = untied(40), np.random.default_rng(2).random(40) + 0.1
    mean = np.average(difference, weights=w)
    error = np.sqrt(40 / 39 * (w**2 * (difference - mean) ** 2).sum()) / w.sum()
    comparison = compare(difference, np.zeros(40), generator(), weights=w)
    assert comparison.p_t == pytest.approx(2.0 * stats.t.sf(abs(mean) / error, 39), rel=1e-9)
    assert comparison.p_wilcoxon == pytest.approx(stats.wilcoxon(w * difference, method="exact").pvalue, rel=1e-9)


def test_a_split_may_have_no_weights() -> None:
    a, b = [np.array([0.5, 0.1]), np.array([0.9, 0.4])], [np.zeros(2), np.zeros(2)]
    comparison = compare_splits(a, b, generator(), weights=[None, np.array([1.0, 4.0])])
    assert comparison.difference == pytest.approx((0.3 + 0.5) / 2)


def splits_of(models: int, *sizes: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    results = [np.round(generator.random((models, n)) - 0.08 * np.arange(models)[:, None], 1) for n in sizes]
    for values in results:
        values[:, 1] = np.nan
    return results


@pytest.mark.parametrize(("sizes", "is_weighted"), [((30,), False), ((20, 35), False), ((20, 35), True)])
def test_pairs_are_what_comparing_them_alone_gives(sizes: tuple[int, ...], is_weighted: bool) -> None:
    splits = splits_of(4, *sizes)
    weights = [np.linspace(0.1, 2.0, values.shape[1]) for values in splits] if is_weighted else None
    result = pairwise(splits, np.random.default_rng(1), weights)
    assert [(pair.a, pair.b) for pair in result] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for pair in result:
        sides = [v[pair.a] for v in splits], [v[pair.b] for v in splits]
        expected = compare_splits(*sides, np.random.default_rng(2), weights=weights)
        assert pair.difference == pytest.approx(expected.difference)
        assert (pair.wins, pair.ties, pair.losses) == (expected.wins, expected.ties, expected.losses)
        assert pair.p == pytest.approx(expected.p_randomisation, abs=0.025)
    assert [pair.p_holm for pair in result] == holm([pair.p for pair in result])


def test_equal_models_are_never_told_apart_and_clear_ones_always_are() -> None:
    base = np.random.default_rng(0).random(40)
    same, better = pairwise([np.stack([base, base])], np.random.default_rng(0))[0], None
    better = pairwise([np.stack([base + 0.5, base])], np.random.default_rng(0))[0]
    assert same.p == same.p_holm == 1.0
    assert (same.wins, same.ties, same.losses) == (0, 40, 0)
    assert better.p_holm is not None
    assert better.p_holm < 0.001
    assert better.difference == pytest.approx(0.5)


def test_one_model_has_no_pair_and_skipped_queries_tell_nothing() -> None:
    assert pairwise([np.ones((1, 5))], np.random.default_rng(0)) == []
    nothing = pairwise([np.full((2, 5), np.nan)], np.random.default_rng(0))[0]
    assert np.isnan(nothing.difference)
    assert nothing.p is None
    assert nothing.p_holm is None
