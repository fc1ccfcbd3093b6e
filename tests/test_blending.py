"""Blends: no worse than their members where these err apart, honest about what they score, indifferent to scale."""

from __future__ import annotations

import numpy as np
import pytest

from ranktune.solvers.arrays import Floats
from ranktune.solvers.metrics import parse_metric
from ranktune.solvers.queries import Queries
from ranktune.tuner.blending import choose_blend, scale, value_of_choosing
from ranktune.tuner.plans import query_folds

METRIC = parse_metric("ndcg@10")


def judged(count: int = 60, length: int = 15) -> tuple[Queries, Floats]:
    generator = np.random.default_rng(0)
    truth = generator.normal(size=count * length)
    grades = np.digitize(truth, [0.5, 1.2, 2.0]).astype(float)
    queries = Queries.from_arrays(np.zeros((len(truth), 1)), grades, qid=np.repeat(np.arange(count), length))
    return queries, truth


QUERIES, TRUTH = judged()
FOLDS = query_folds(QUERIES, 5, 0)
EQUAL = np.full(4, 0.25)


def noisy(seed: int, noise: float = 1.0) -> Floats:
    return np.asarray(TRUTH + noise * np.random.default_rng(100 + seed).normal(size=len(TRUTH)))


def scaled(*scores: Floats) -> Floats:
    return np.stack([own / scale(own, QUERIES) for own in scores])


def test_scale_is_the_spread_within_queries() -> None:
    within = [TRUTH[a:b].var() for a, b in zip(QUERIES.starts[:-1], QUERIES.starts[1:], strict=True)]
    assert scale(TRUTH, QUERIES) == pytest.approx(np.sqrt(np.mean(within)))
    assert scale(3 * TRUTH + 100, QUERIES) == pytest.approx(3 * scale(TRUTH, QUERIES))
    offsets = np.repeat(np.random.default_rng(1).normal(size=QUERIES.n_queries), QUERIES.lengths)
    assert scale(TRUTH + offsets, QUERIES) == pytest.approx(scale(TRUTH, QUERIES))


def test_models_that_err_apart_are_better_together() -> None:
    own = [noisy(seed) for seed in range(4)]
    blend = choose_blend(scaled(*own), EQUAL, QUERIES, METRIC, FOLDS)
    assert float(np.nanmean(blend.per_query)) > max(METRIC.mean(one, QUERIES) for one in own) + 0.02
    assert blend.shares.sum() == pytest.approx(1.0)
    assert (blend.shares > 0.1).all()


def test_a_useless_model_among_good_ones_gets_little() -> None:
    own = [noisy(0), noisy(1), noisy(2), np.random.default_rng(109).normal(size=len(TRUTH))]
    blend = choose_blend(scaled(*own), EQUAL, QUERIES, METRIC, FOLDS)
    assert blend.shares[3] == blend.shares.min()
    assert blend.shares[3] <= 0.125


def test_the_perfect_model_takes_all() -> None:
    own = [TRUTH, *(np.random.default_rng(100 + seed).normal(size=len(TRUTH)) for seed in range(3))]
    blend = choose_blend(scaled(*own), EQUAL, QUERIES, METRIC, FOLDS)
    np.testing.assert_array_equal(blend.shares, [1.0, 0.0, 0.0, 0.0])
    assert np.nanmean(blend.per_query) == pytest.approx(1.0)


def test_what_a_blend_of_noise_scores_is_no_better_than_noise() -> None:
    own = [np.random.default_rng(100 + seed).normal(size=len(TRUTH)) for seed in range(12)]
    typical = np.mean([METRIC.mean(one, QUERIES) for one in own])
    blend = choose_blend(scaled(*own), np.full(12, 1 / 12), QUERIES, METRIC, FOLDS)
    assert float(np.nanmean(blend.per_query)) < typical + 0.05  # the best of them by luck scores more
    assert value_of_choosing(np.stack([METRIC.per_query(one, QUERIES) for one in own]), FOLDS) < typical + 0.05


def test_choosing_is_worth_the_best_where_it_is_plain() -> None:
    values = np.stack([np.full(QUERIES.n_queries, 0.4), np.full(QUERIES.n_queries, 0.6)])
    assert value_of_choosing(values, FOLDS) == pytest.approx(0.6)


def test_choosing_on_other_queries_is_what_is_valued() -> None:
    per_query = np.random.default_rng(0).random((5, QUERIES.n_queries))
    expected = np.zeros(QUERIES.n_queries)
    for fold in FOLDS:
        best = max(range(5), key=lambda k: per_query[k, fold.train].mean())
        expected[fold.vali] = per_query[best, fold.vali]
    assert value_of_choosing(per_query, FOLDS) == pytest.approx(expected.mean())
