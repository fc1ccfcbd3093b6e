"""Blends: no worse than their members where these err apart, honest about what they score, indifferent to scale."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.tuner.policy.blends import (
    Blend,
    Blends,
    equal_shares,
    family_shares,
    first_elsewhere,
    first_unless_better,
    nested_choice,
    scale,
)
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.splits.plans import Fold, query_folds
from ranktune.tuner.statistics.intervals import z_score

METRIC = parse_metric("ndcg@10")


def graded(count: int = 60, length: int = 15) -> tuple[Queries, Floats]:
    generator = np.random.default_rng(0)
    truth = generator.normal(size=count * length)
    grades = np.digitize(truth, [0.5, 1.2, 2.0]).astype(float)
    queries = Queries.from_arrays(np.zeros((len(truth), 1)), grades, qid=np.repeat(np.arange(count), length))
    return queries, truth


QUERIES, TRUTH = graded()
FOLDS = query_folds(QUERIES, 5, 0)
APART = tuple(("linear", solver) for solver in "ABCD")  # a solver each


def noisy(seed: int, noise: float = 1.0) -> Floats:
    return np.asarray(TRUTH + noise * np.random.default_rng(100 + seed).normal(size=len(TRUTH)))


def scaled(*scores: Floats) -> Floats:
    return np.stack([score / scale(score, QUERIES) for score in scores])


def choose_blend(
    models: Floats, groups: Sequence[tuple[str, str]], queries: Queries, metric: Metric, folds: Sequence[Fold]
) -> Blend:
    return Blends(models, groups, queries, metric, folds).of(range(len(models)))


def test_scale_is_the_spread_within_queries() -> None:
    within = [TRUTH[a:b].var() for a, b in zip(QUERIES.starts[:-1], QUERIES.starts[1:], strict=True)]
    assert scale(TRUTH, QUERIES) == pytest.approx(np.sqrt(np.mean(within)))
    assert scale(3 * TRUTH + 100, QUERIES) == pytest.approx(3 * scale(TRUTH, QUERIES))
    offsets = np.repeat(np.random.default_rng(1).normal(size=QUERIES.n_queries), QUERIES.lengths)
    assert scale(TRUTH + offsets, QUERIES) == pytest.approx(scale(TRUTH, QUERIES))


def test_a_blend_of_some_models_is_as_if_there_were_no_others() -> None:
    models, groups = scaled(*(noisy(k) for k in range(5))), (*APART, ("trees", "E"))
    every = Blends(models, groups, QUERIES, METRIC, FOLDS)
    for some in ([0, 1, 2, 3], [1, 4], [0, 1, 2, 3, 4]):
        alone = choose_blend(models[some], [groups[k] for k in some], QUERIES, METRIC, FOLDS)
        blend = every.of(some)
        np.testing.assert_array_equal(blend.shares[some], alone.shares)
        np.testing.assert_array_equal(blend.per_query, alone.per_query)
        assert blend.shares.sum() == pytest.approx(1.0) and not np.delete(blend.shares, some).any()


def test_the_perfect_model_takes_all() -> None:
    own = [TRUTH, *(np.random.default_rng(100 + seed).normal(size=len(TRUTH)) for seed in range(3))]
    blend = choose_blend(scaled(*own), APART, QUERIES, METRIC, FOLDS)
    np.testing.assert_array_equal(blend.shares, [1.0, 0.0, 0.0, 0.0])
    assert np.nanmean(blend.per_query) == pytest.approx(1.0)


@pytest.mark.parametrize("copies", [1, 20])
def test_with_few_queries_the_best_of_the_first_configurations_keeps_its_share(copies: int) -> None:
    """The score of the blend is that with the share. A default that is significantly worse than a model has none."""
    queries = QUERIES.select(np.tile(np.arange(QUERIES.n_queries), copies))
    models = np.tile(scaled(noisy(3), noisy(0, 1.15), noisy(1, 3.0), TRUTH), copies)
    tried = {k: METRIC.per_query(models[k], queries) for k in (1, 2)}
    folds, kept = query_folds(queries, 5, 0), POLICY.blend.default if queries.n_queries < POLICY.few_queries else 0.0
    mean = replace(POLICY, blend=replace(POLICY.blend, equal=(0.5,)))
    blends, plain = (Blends(models, APART, queries, METRIC, folds, mean, first) for first in (tried, {}))
    blend, without = blends.of([0, 1]), plain.of([0, 1])
    default = np.array([0.0, kept, 0.0, 0.0])
    np.testing.assert_allclose(blend.shares, (1.0 - kept) * without.shares + default)
    np.testing.assert_allclose(blends.of(range(4)).shares, [0.0, 0.0, 0.0, 1.0])
    lucky = Blends(models, APART, queries, METRIC, folds, mean, {0: tried[1] - 0.9, 1: tried[1]})
    np.testing.assert_allclose(lucky.of([0, 1]).shares, blend.shares)


def test_the_default_is_chosen_without_the_queries_that_it_is_scored_on() -> None:
    """A blend of which it is the whole scores what a nested choice does, also by weights."""
    models, alone = (
        scaled(*(noisy(k, 3.0) for k in range(4))),
        replace(POLICY, blend=replace(POLICY.blend, default=1.0)),
    )
    heavy = QUERIES.weighted_by(np.random.default_rng(0).exponential(size=QUERIES.n_queries))
    for own in (QUERIES, heavy):
        tried = np.stack([METRIC.per_query(model, own) for model in models[:3]])
        blends = Blends(models, APART, own, METRIC, FOLDS, alone, dict(enumerate(tried)))
        expected = nested_choice(tried, FOLDS, own.query_weights)
        blend, means = blends.of(range(4)), [mean_or_zero(values, own.query_weights) for values in tried]
        np.testing.assert_allclose(blend.per_query, expected)
        np.testing.assert_array_equal(np.flatnonzero(blend.shares), [np.argmax(means)])


def test_what_a_blend_of_noise_scores_is_no_better_than_noise() -> None:
    own = [np.random.default_rng(100 + seed).normal(size=len(TRUTH)) for seed in range(12)]
    typical = np.mean([METRIC.mean(one, QUERIES) for one in own])
    blend = choose_blend(scaled(*own), [("linear", f"S{k}") for k in range(12)], QUERIES, METRIC, FOLDS)
    assert float(np.nanmean(blend.per_query)) < typical + 0.05  # the best of them by luck scores more


def test_choosing_on_other_queries_is_what_is_valued() -> None:
    per_query = np.random.default_rng(0).random((5, QUERIES.n_queries))
    expected = np.zeros(QUERIES.n_queries)
    for fold in FOLDS:
        best = max(range(5), key=lambda k: per_query[k, fold.train].mean())
        expected[fold.vali] = per_query[best, fold.vali]
    np.testing.assert_array_equal(nested_choice(per_query, FOLDS), expected)


def test_solvers_share_equally_then_their_models() -> None:
    alike = np.tile(np.random.default_rng(0).random(50), (4, 1))
    solvers = ["B", "C", "D", "D"]
    np.testing.assert_allclose(equal_shares(alike, solvers), [1 / 3, 1 / 3, 1 / 6, 1 / 6])
    np.testing.assert_allclose(equal_shares(np.vstack([alike[:1], alike[1:] - 0.5]), solvers), [1.0, 0.0, 0.0, 0.0])


def test_a_family_has_the_probability_that_it_is_better() -> None:
    """The share is that of the differences' posterior with a flat prior, by simulation."""
    generator = np.random.default_rng(0)
    trees = generator.random(40)
    difference = generator.normal(0.0, 0.4, 40)
    difference -= difference.mean() + 0.05
    linear = trees + difference
    error = difference.std(ddof=1) / np.sqrt(40)
    expected = np.mean(generator.normal(difference.mean(), error, 400_000) > 0.0)
    assert 0.1 < expected < 0.45
    np.testing.assert_allclose(family_shares([trees, linear]), [1.0 - expected, expected], atol=0.01)
    np.testing.assert_allclose(family_shares([linear, trees]), [expected, 1.0 - expected], atol=0.01)
    np.testing.assert_array_equal(family_shares([trees, trees]), [0.5, 0.5])
    np.testing.assert_array_equal(family_shares([trees]), [1.0])
    np.testing.assert_array_equal(family_shares([trees, trees - 1.0]), [1.0, 0.0])


@pytest.mark.parametrize("better", ["trees", "linear"])
def test_a_family_that_is_worse_gets_little_however_many_solvers_it_has(better: str) -> None:
    other = {"trees": "linear", "linear": "trees"}[better]
    groups = [(better, "A"), (better, "B"), *((other, solver) for solver in "CDEFG")]
    models = scaled(noisy(0, 0.5), noisy(1, 0.5), *(noisy(seed, 3.0) for seed in range(2, 7)))
    blend = choose_blend(models, groups, QUERIES, METRIC, FOLDS)
    assert blend.shares.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(blend.shares[2:], 0.0)  # probabilities of almost 0 are left out
    alike = choose_blend(models[[0, 0]], [groups[0], (other, "C")], QUERIES, METRIC, FOLDS)
    np.testing.assert_allclose(alike.shares, 0.5)


def test_few_queries_do_not_choose_among_alike_models() -> None:
    """Models that err apart and are as good as each other all keep a share, and a bad one has nearly none."""
    numbers = np.arange(20)
    rows = np.concatenate([np.arange(QUERIES.starts[q], QUERIES.starts[q + 1]) for q in numbers])
    few = QUERIES.select(numbers)
    own = np.stack([noisy(seed)[rows] for seed in range(4)] + [noisy(5, noise=9.0)[rows]])
    own /= np.array([scale(one, few) for one in own])[:, None]
    blend = choose_blend(own, (*APART, ("linear", "D")), few, METRIC, query_folds(few, 5, 0))
    assert blend.shares[:4].min() >= 0.5 * 0.25 and blend.shares[4] < 0.05  # half of the shares are equal


def test_what_is_told_beyond_doubt_takes_the_place_of_what_is_simpler() -> None:
    generator = np.random.default_rng(0)
    simple = generator.random(400)
    noise = generator.normal(size=400)
    noise -= noise.mean()
    error = noise.std() / np.sqrt(400)
    assert z_score(simple + noise + 1.4 * error, simple) == pytest.approx(1.4)
    assert first_unless_better([simple, simple + noise + 1.4 * error]) == 0
    assert first_unless_better([simple, simple + noise + 1.6 * error]) == 1
    assert first_unless_better([simple, simple + noise - 9.0 * error]) == 0
    assert first_unless_better([simple, simple, simple + 0.1]) == 2
    assert first_unless_better([simple, simple + noise + 1.6 * error], better=3.0) == 0
    assert first_unless_better([simple, simple + noise + 3.1 * error], better=3.0) == 1
    many = [np.tile(values, 3) for values in (simple, simple + noise + 0.4 * error)]  # of 1,200 queries: .7 errors
    assert first_unless_better(many) == 1


def test_integer_weights_choose_as_repeated_queries() -> None:
    models = scaled(noisy(0), noisy(1, 2.0), noisy(2, 1.5))
    weights = np.random.default_rng(2).integers(1, 4, QUERIES.n_queries)
    numbers = np.repeat(np.arange(QUERIES.n_queries), weights)
    rows = np.concatenate([np.arange(QUERIES.starts[q], QUERIES.starts[q + 1]) for q in numbers])
    repeated = QUERIES.select(numbers)
    results = []
    for own, scores in ((QUERIES.weighted_by(weights.astype(float)), models), (repeated, models[:, rows])):
        everything = np.arange(own.n_queries)
        blend = choose_blend(scores, APART[:3], own, METRIC, [Fold(everything, everything)])
        results.append((blend.shares, mean_or_zero(blend.per_query, own.query_weights)))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-12)
    assert results[0][1] == pytest.approx(results[1][1], abs=1e-12)


def test_the_earliest_block_of_forward_folds_has_no_queries_to_choose_by() -> None:
    numbers, models = np.arange(QUERIES.n_queries), scaled(noisy(0), noisy(1, 2.0), noisy(2, 1.5))
    forward = [Fold(numbers[: 12 * k], numbers[12 * k : 12 * k + 12]) for k in range(5)]
    plain, weighted = (
        choose_blend(models, APART[:3], own, METRIC, forward)
        for own in (QUERIES, QUERIES.weighted_by(numbers * 0 + 2.0))
    )
    np.testing.assert_allclose(plain.shares, weighted.shares, atol=1e-12)
    assert plain.per_query == pytest.approx(weighted.per_query, abs=1e-12)


def test_a_choice_among_options_is_scored_on_queries_that_did_not_choose() -> None:
    """The other option is better on the queries of the first fold alone, which therefore does not choose it."""
    plain, first = np.random.default_rng(0).random(QUERIES.n_queries), FOLDS[0].vali
    other = plain - 0.1
    other[first] += 1.1
    expected = other.copy()
    expected[first] = plain[first]
    np.testing.assert_array_equal(first_elsewhere([plain, other], FOLDS), expected)
