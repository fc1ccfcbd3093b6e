"""Softmax cross entropy against scipy, written out, and the laws of a listwise loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_softmax, softmax

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy

LOSSES = [SoftmaxCrossEntropy(), SoftmaxCrossEntropy("exp2", 2.0), SoftmaxCrossEntropy(temperature=0.05)]


def written_out(loss: SoftmaxCrossEntropy, scores: Floats, queries: Queries) -> float:
    total = count = 0.0
    for a, b, weight in zip(queries.starts[:-1], queries.starts[1:], queries.weight_of_query, strict=True):
        y = queries.grades[a:b]
        if len(set(y)) > 1:
            gain = (y if loss.gain == "linear" else 2**y - 1) / loss.temperature
            total -= weight * softmax(gain) @ log_softmax(scores[a:b])
            count += weight
    return float(total / count) if count else 0.0


def drawn(queries: Queries, seed: int = 0) -> Floats:
    return 2.0 * np.random.default_rng(seed).normal(size=queries.n_documents)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestSoftmax:
    """What each of them keeps."""

    def test_value_is_the_cross_entropy(self, loss: SoftmaxCrossEntropy, hard_queries: Queries) -> None:
        weighted = replace(hard_queries, query_weights=np.random.default_rng(1).uniform(0.5, 3.0, 8))
        for queries in (hard_queries, weighted):
            value, _ = loss.value_and_gradient(drawn(queries), queries)
            assert value == pytest.approx(written_out(loss, drawn(queries), queries), rel=1e-12)

    def test_gradient(self, loss: SoftmaxCrossEntropy, hard_queries: Queries) -> None:
        part = [lambda s, k=k: loss.value_and_gradient(s, hard_queries)[k] for k in (0, 1)]
        assert check_grad(*part, drawn(hard_queries)) < 1e-6
        assert np.abs(part[1](drawn(hard_queries))).max() > 1e-2

    def test_a_shift_of_a_querys_scores_changes_nothing(self, loss: SoftmaxCrossEntropy, hard_queries: Queries) -> None:
        scores, shift = drawn(hard_queries), 100.0 * np.random.default_rng(4).normal(size=8)
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        moved, same = loss.value_and_gradient(scores + shift[hard_queries.query_of_document], hard_queries)
        assert moved == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(same, gradient, atol=1e-13)
        np.testing.assert_allclose(np.add.reduceat(gradient, hard_queries.starts[:-1]), 0.0, atol=1e-15)

    def test_a_query_of_weight_two_is_one_that_stands_there_twice(
        self, loss: SoftmaxCrossEntropy, hard_queries: Queries
    ) -> None:
        weighted = replace(hard_queries, query_weights=np.array([1.0, 2, 1, 1, 1, 1, 1, 1]))
        twice = hard_queries.select(np.array([0, 1, 1, 2, 3, 4, 5, 6, 7]))
        w = np.linspace(-1, 1, 6)
        value, _ = loss.value_and_gradient(weighted.features @ w, weighted)
        assert value == pytest.approx(loss.value_and_gradient(twice.features @ w, twice)[0], rel=1e-13)
        assert value != pytest.approx(loss.value_and_gradient(hard_queries.features @ w, hard_queries)[0], rel=1e-6)

    def test_queries_of_one_document_or_grade_do_not_count(
        self, loss: SoftmaxCrossEntropy, hard_queries: Queries
    ) -> None:
        scores = drawn(hard_queries)
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        useful = hard_queries.select(np.array([1, 2, 3, 6, 7]))
        rows = np.isin(hard_queries.query_of_document, [1, 2, 3, 6, 7])
        assert value == pytest.approx(loss.value_and_gradient(scores[rows], useful)[0], rel=1e-14)
        assert not gradient[~rows].any()

    def test_the_order_of_documents_does_not_matter(self, loss: SoftmaxCrossEntropy, hard_queries: Queries) -> None:
        scores = drawn(hard_queries)
        order = np.lexsort((np.random.default_rng(2).random(len(scores)), hard_queries.query_of_document))
        shuffled = replace(hard_queries, features=hard_queries.features[order], grades=hard_queries.grades[order])
        value, gradient = loss.value_and_gradient(scores, hard_queries)
        other, permuted = loss.value_and_gradient(scores[order], shuffled)
        assert other == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(permuted, gradient[order], atol=1e-15)

    def test_large_scores_neither_overflow_nor_warn(self, loss: SoftmaxCrossEntropy) -> None:
        queries = Queries.from_arrays(np.zeros((3, 1)), [2.0, 0.0, 1.0])
        value, gradient = loss.value_and_gradient(np.array([-2e4, 0.0, 3e4]), queries)
        assert np.isfinite(value)
        assert value > 1e3
        assert np.abs(gradient).max() <= 1.0


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_any_grade_has_a_gain(hard_queries: Queries, gain: str) -> None:
    odd = replace(hard_queries, grades=1e3 * hard_queries.grades - 0.5)
    assert SoftmaxCrossEntropy(gain).value_and_gradient(drawn(odd), odd)[0] > 0.0


@pytest.mark.parametrize("highest", [0.4, 30.0, 950.0, 1e5])
def test_doubled_grades_by_their_definition(highest: float) -> None:
    grades = np.array([0.0, 0.25, 1.0]) * highest
    queries = Queries.from_arrays(np.eye(3), grades)
    behind = (2.0 ** (grades - highest) - 1.0) * 2.0 ** min(highest, 1000.0)
    exact = np.exp(behind / 0.3)
    _, gradient = SoftmaxCrossEntropy("exp2", 0.3).value_and_gradient(np.zeros(3), queries)
    np.testing.assert_allclose(gradient, 1.0 / 3.0 - exact / exact.sum(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gain": "exp"}, "Did you mean 'exp2'"),
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": "1"}, "'1'"),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SoftmaxCrossEntropy(**parameters)
