"""Pairs weighted in noisy rankings, against plain Python, the whole metrics, and all orders of short lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.smoothed import kernels
from ranktune.solvers.losses.smoothed.weights import PairWeights, changes, neighbours
from ranktune.solvers.metrics.metrics import parse_metric

METRICS = [
    *("ndcg@3", "ndcg@3:gain=linear,discount=letor", "dcg@4", "ndcg", "map", "map@3", "mrr", "mrr@2", "err", "err@4"),
    *("precision@3", "recall@2", "rbp", "wta"),
]


def judged(lengths: list[int], seed: int = 0, grades: str = "whole") -> Queries:
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
    kernels.draw(seed, key, number, sample, np.empty(n), drawn)
    return drawn


def derived(
    weights: PairWeights, queries: Queries, scores: Floats, *, samples: int = 5, seed: int = 3, number: int = 2
) -> tuple[float, Floats, Floats]:
    slope, bend = np.full_like(scores, np.nan), np.full_like(scores, np.nan)
    rule, lists = weights.rule(samples, seed, valued=True), weights.lists(queries)
    value = kernels.derivatives(rule, lists, number, 0, queries.n_queries, scores, slope, bend)
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
    found = np.zeros((n, n))
    if name == "neighbours":
        shares = 0.8 ** np.arange(min(4, n - 1))
        for r, (i, j) in enumerate(pairwise(order[:5])):
            better, worse = (i, j) if grades[i] > grades[j] else (j, i)
            found[better, worse] = shares[r] / shares.sum() * abs(grades[i] - grades[j])
        return found
    before = by_metric(name, order, queries)
    for r in range(n):
        for t in range(r + 1, n):
            swapped = order.copy()
            swapped[r], swapped[t] = order[t], order[r]
            i, j = (order[r], order[t]) if grades[order[r]] > grades[order[t]] else (order[t], order[r])
            if grades[i] != grades[j]:
                found[i, j] = abs(by_metric(name, swapped, queries) - before)
    return found


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
    queries, generator = judged(lengths), np.random.default_rng(1)
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
        if name == "neighbours":
            mean *= sum(0.8 ** np.arange(min(4, b - a - 1))) / sum(0.8 ** np.arange(4))  # v is of the longest list
        if name.startswith("dcg"):
            mean *= weights.share[q]
        loss, expected, curved = naive(mean, s)
        total += loss
        assert np.allclose(slope[a:b], expected, rtol=0.0, atol=1e-10)
        assert np.allclose(bend[a:b], curved, rtol=0.0, atol=1e-10)
    assert value == pytest.approx(total, abs=1e-10)
    assert value > 0.1
