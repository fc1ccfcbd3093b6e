"""Softmax cross entropy against scipy, written out, and the laws of a listwise loss."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
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
        weighted = hard_queries.replaced(query_weights=np.random.default_rng(1).uniform(0.5, 3.0, 8))
        for queries in (hard_queries, weighted):
            value, _ = loss.value_and_gradient(drawn(queries), queries)
            assert value == pytest.approx(written_out(loss, drawn(queries), queries), rel=1e-12)


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_any_grade_has_a_gain(hard_queries: Queries, gain: str) -> None:
    odd = replace(hard_queries, grades=1e3 * hard_queries.grades - 0.5)
    value, gradient = SoftmaxCrossEntropy(gain).value_and_gradient(drawn(odd), odd)
    assert 0.0 < value < np.inf and np.isfinite(gradient).all() and gradient.any()


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
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": "1"}, "'1'"),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SoftmaxCrossEntropy(**parameters)
