"""Pair weights that are means over noisy rankings, in the losses that linear rankers minimise."""

from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.parts import weights_of
from ranktune.solvers.losses.pair_weights import NoisyNDCG, NoisyNeighbours
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseLoss, PairwiseSquaredHinge
from tests.solvers.losses.test_pairwise import phi
from tests.solvers.losses.test_smoothed import graded, noise, pair_weights

NAMES = ("smoothed", "yetirank")
WEIGHTS: list[tuple[str, Any, str]] = [
    ("ndcg@3", NoisyNDCG(3, samples=5), "whole"),
    ("ndcg@3:gain=linear,discount=log2", NoisyNDCG(3, "linear", samples=5), "real"),
    ("neighbours", NoisyNeighbours(4, 0.8, samples=5), "whole"),
    ("neighbours", NoisyNeighbours(4, 0.8, samples=5), "real"),
]


def naive(name: str, loss: PairwiseLoss, scores: Floats, queries: Queries) -> float:
    """The mean over queries of the weighted mean over pairs, or their sum, with the weights of five noisy rankings."""
    values = []
    for q, (a, b) in enumerate(pairwise(queries.starts)):
        part, s, key = queries.select(np.array([q])), scores[a:b], crc32(str(queries.query_ids[q]).encode())
        weights = np.zeros((b - a, b - a))
        for sample in range(5):
            order = np.argsort(noise(0, key, 0, sample, b - a) * np.exp(-s), kind="stable")
            weights += pair_weights(name, order, part)
        weights *= np.outer(part.weight_of_document, part.weight_of_document)
        if len(set(part.grades)) > 1:
            total = weights.sum()
            loss_of_query = (weights * phi(loss, s[:, None] - s)).sum()
            values.append(loss_of_query / (total if loss.average == "queries" and total > 0.0 else 5.0))
    return float(np.mean(values) if loss.average == "queries" else np.sum(values))


@pytest.mark.parametrize("average", ["queries", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [PairwiseLogistic, PairwiseHinge, PairwiseSquaredHinge])
@pytest.mark.parametrize(("name", "weight", "grades"), WEIGHTS)
def test_the_loss_is_that_of_plain_python_and_the_gradient_is_its_with_weights_held_constant(
    make: Any, name: str, weight: Any, grades: str, weighted: bool, average: str
) -> None:
    queries, loss = graded([7, 1, 12, 2, 9], grades=grades), make(weight, average=average)
    if weighted:
        queries = queries.given(document_weights=np.random.default_rng(5).uniform(0.2, 3.0, queries.n_documents))
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    value, gradient = loss.value_and_gradient(scores, queries)
    assert value == pytest.approx(naive(name, loss, scores, queries), rel=1e-10)
    width = 1e-6  # which changes no ranking here
    for k in range(queries.n_documents):
        step = np.zeros(queries.n_documents)
        step[k] = width
        high, low = (loss.value_and_gradient(scores + way * step, queries)[0] for way in (1.0, -1.0))
        assert gradient[k] == pytest.approx((high - low) / (2.0 * width), abs=1e-7)
    assert np.abs(gradient).max() > 0.01


def test_they_are_tried_where_weights_may_follow_the_ranking() -> None:
    for optimizer in ("gradient_steps", "fobos", "rda", "psgd", "tgd"):
        assert set(NAMES) < set(weights_of(optimizer))
    assert not set(NAMES) & {*weights_of("lbfgs"), *weights_of("newton"), *weights_of("owlqn")}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused(name: str) -> None:
    weight: Any = NoisyNDCG if name == "smoothed" else NoisyNeighbours
    with pytest.raises(ParameterError, match=r"samples=0"):
        weight(samples=0)
    long = graded([2_000])
    with pytest.raises(DataError, match="pairs that PairwiseLogistic would look at"):
        PairwiseLogistic(weight(2_000, samples=200)).value_and_gradient(np.zeros(2_000), long)
