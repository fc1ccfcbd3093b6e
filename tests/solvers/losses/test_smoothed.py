"""Pairs weighted in noisy rankings, against plain Python and the whole metrics."""

import tracemalloc
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.boosting.objectives import SmoothedPairs
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.smoothed import draws, kernels
from ranktune.solvers.losses.smoothed.weights import PairWeights, changes, neighbours
from ranktune.solvers.metrics.metrics import parse_metric

METRICS = [
    *("ndcg@3", "ndcg@3:gain=linear,discount=letor", "dcg@4", "ndcg", "map", "map@3", "mrr", "mrr@2", "err", "err@4"),
    *("precision@3", "recall@2", "rbp", "wta"),
]


def graded(lengths: list[int], seed: int = 0, grades: str = "whole") -> Queries:
    generator = np.random.default_rng(seed)
    n = sum(lengths)
    values = generator.integers(0, 5, n) if grades == "whole" else generator.uniform(0.0, 3.0, n)
    return Queries.from_arrays(np.zeros((n, 1)), values.astype(float), group=lengths)


def weights_of(name: str, queries: Queries) -> PairWeights:
    if name == "neighbours":
        return neighbours(queries, queries.grades, 4, 0.8)
    metric = parse_metric(name)
    exponential = metric.gain in ("auto", "exp2")
    return changes(queries, metric, 2.0**queries.grades - 1.0 if exponential else queries.grades, 3)


def noise(seed: int, key: int, number: int, sample: int, n: int) -> Floats:
    drawn = np.empty(n)
    draws.draw(draws.table_of(seed), np.uint64(draws.stream(key, number)), sample, np.ones(n), drawn)
    return drawn


def derived(
    weights: PairWeights, queries: Queries, scores: Floats, *, samples: int = 5, seed: int = 3, number: int = 2
) -> tuple[float, Floats, Floats]:
    slope, bend = np.full_like(scores, np.nan), np.full_like(scores, np.nan)
    rule, lists = weights.rule(samples, seed, valued=True), weights.lists(queries)
    value, _ = kernels.derivatives(rule, lists, number, 0, queries.n_queries, scores, slope, bend)
    return value, slope, bend


def by_metric(name: str, order: Any, queries: Queries) -> float:
    """The metric of a query whose documents are in this order; without a cutoff of its first three ranks."""
    metric = parse_metric(name)
    places = np.empty(len(order))
    places[np.asarray(order)] = -np.arange(len(order))
    if name in ("ndcg", "map", "mrr", "err", "rbp"):
        metric = parse_metric(f"{name}@3" if name != "map" else "map@3:norm=all")
    value = metric.per_query(places, queries)[0]
    return 0.0 if np.isnan(value) else float(value)


def pair_weights(name: str, order: Ints, queries: Queries) -> Floats:
    """The weight of each pair (better, worse) of one query in one ranking, by swapping the two."""
    n, grades = len(order), queries.grades
    result = np.zeros((n, n))
    if name == "neighbours":
        for r, (i, j) in enumerate(pairwise(order[:5])):
            better, worse = (i, j) if grades[i] > grades[j] else (j, i)
            result[better, worse] = 0.8**r * abs(grades[i] - grades[j])
        return result
    before = by_metric(name, order, queries)
    for r in range(n):
        for t in range(r + 1, n):
            swapped = order.copy()
            swapped[r], swapped[t] = order[t], order[r]
            i, j = (order[r], order[t]) if grades[order[r]] > grades[order[t]] else (order[t], order[r])
            if grades[i] != grades[j]:
                result[i, j] = abs(by_metric(name, swapped, queries) - before)
    return result


def naive(weights: Floats, scores: Floats) -> tuple[float, Floats, Floats]:
    """The loss and its derivatives with these weights of pairs."""
    loss, slope, bend = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
    for i, j in zip(*np.nonzero(weights), strict=True):
        lead, weight = scores[i] - scores[j], weights[i, j]
        loss += weight * np.logaddexp(0.0, -lead)
        wrong = 1.0 / (1.0 + np.exp(lead))
        slope[[i, j]] += np.array([-1.0, 1.0]) * weight * wrong
        bend[[i, j]] += weight * wrong * (1.0 - wrong)
    return loss, slope, bend


@pytest.mark.parametrize("name", ["neighbours", *METRICS])
def test_the_kernel_does_what_plain_python_does_with_the_same_noise(name: str) -> None:
    lengths = [7, 1, 12, 2, 30, 3]
    queries, generator = graded(lengths), np.random.default_rng(1)
    queries.grades[queries.starts[4] : queries.starts[4] + 15] = 0.0
    scores = np.round(generator.normal(size=queries.n_documents), 1)  # some are equal
    weights = weights_of(name, queries)
    value, slope, bend = derived(weights, queries, scores)
    total = 0.0
    for q, (a, b) in enumerate(pairwise(queries.starts)):
        part, s = queries.select(np.array([q])), scores[a:b]
        mean = np.zeros((b - a, b - a))
        for sample in range(5):
            times = noise(3, q, 2, sample, b - a) * np.exp(-s)
            mean += pair_weights(name, np.argsort(times, kind="stable"), part) / 5
        if name.startswith("dcg"):
            mean *= weights.share[q]
        loss, expected, curved = naive(mean, s)
        total += loss
        assert np.allclose(slope[a:b], expected, rtol=0.0, atol=1e-10)
        assert np.allclose(bend[a:b], curved, rtol=0.0, atol=1e-10)
    assert value == pytest.approx(total, abs=1e-10)
    assert value > 0.1


def test_weights_are_means_over_all_rankings_by_their_probability() -> None:
    queries, scores = graded([5]), np.arange(5) / 3
    mean = np.zeros((5, 5))
    for order in permutations(range(5)):
        odds = np.exp(scores[list(order)])
        mean += (odds / np.cumsum(odds[::-1])[::-1]).prod() * pair_weights("neighbours", np.array(order), queries)
    slope = derived(weights_of("neighbours", queries), queries, scores, samples=50000)[1]
    assert np.allclose(slope, naive(mean, scores)[1], atol=0.02 * np.abs(slope).max())


def test_noise_is_exponential_independent_and_a_hash_of_what_it_belongs_to() -> None:
    table = draws.table_of(1)
    assert np.allclose(np.sort(np.exp(-table)), (np.arange(len(table)) + 0.5) / len(table), rtol=1e-12)
    uniform = np.exp([[[-noise(1, q, r, s, 50) for s in range(20)] for r in range(20)] for q in range(20)]) - 0.5
    assert abs(uniform.mean()) < 0.002  # four standard deviations, as below
    for axis in range(4):
        assert abs((uniform * np.roll(uniform, 1, axis)).mean()) < 4.0 / 12.0 / np.sqrt(uniform.size)
    assert not np.array_equal(table, draws.table_of(2))
    masked, golden = 2**64 - 1, 0x9E3779B97F4A7C15

    def mixed(z: int) -> int:
        z = ((z & masked) ^ ((z & masked) >> 30)) * 0xBF58476D1CE4E5B9 & masked
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & masked
        return z ^ (z >> 31)

    stream = mixed(mixed(2 + golden) ^ (3 + golden))
    for begin, end in ((0, 1024), (1024, 2000)):
        first = mixed(stream + ((4 << 32) + begin) * golden) >> 48
        assert np.array_equal(noise(1, 2, 3, 4, 2000)[begin:end], table[first : first + end - begin])


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e200])
def test_the_first_documents_are_those_of_a_stable_sort_from_any_guess(scale: float) -> None:
    generator = np.random.default_rng(9)
    for n, k, guess in ((1, 1, 1.0), (60, 60, 1.0), (60, 3, 1e-9), (60, 10, 1e9), (300, 5, 1.0)):
        drawn = generator.exponential(scale, n)
        for times in (drawn, np.floor(drawn)):
            orders, numbers = np.full((2, k), -1), np.empty((3, n), dtype=np.int64)
            ones, room = np.ones(draws.BEGINNINGS + draws.BLOCK), np.empty((2, n))
            draws.rankings(ones, np.uint64(0), times, guess, room, numbers, k, orders)
            assert np.array_equal(orders, [np.argsort(times, kind="stable")[:k]] * 2)


@pytest.mark.parametrize("name", ["neighbours", "ndcg@3"])
def test_scores_beyond_exponentials_and_long_queries_of_real_grades(name: str) -> None:
    queries = graded([8])
    scores = np.array([0.0, 900.0, -900.0, 5.0, 0.0, -3000.0, 30.0, 1.0])
    _, slope, bend = derived(weights_of(name, queries), queries, scores, samples=50)
    assert np.isfinite(slope).all() and (bend >= 0.0).all()
    assert abs(slope.sum()) < 1e-12
    long = graded([10_000], grades="real")
    pairs, scores = SmoothedPairs(long, weights_of(name, long), 10, 3), np.random.default_rng(8).normal(size=10_000)
    pairs.derivatives(scores, 0)
    tracemalloc.start()
    slope, _ = pairs.derivatives(scores, 1)
    assert tracemalloc.get_traced_memory()[1] < 5e6  # 50 numbers a document
    tracemalloc.stop()
    assert abs(slope.sum()) < 1e-9 < np.abs(slope).max()
