"""A loss as a function of the weights of a linear model, for documents in memory or in blocks.

In blocks each evaluation sends the weights to the workers, and gets a value and a gradient a block: 16 bytes a feature
and block. The intercept of a pointwise loss takes some further rounds, of a few numbers each; scores are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import IncompatibleParts
from ranktune.solvers.data import products
from ranktune.solvers.data.blocked import BlockedQueries, Data, OpenBlock
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import DivisibleLoss, Loss, prepared
from ranktune.solvers.losses.pointwise import PointwiseLoss, best_intercept
from ranktune.solvers.metrics.judgements import deciding

T = TypeVar("T")

OfWeights: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Weights of the raw features, (n_features,), to the loss and its gradient by weight."""


def of_weights(loss: Loss, data: Data) -> OfWeights:
    """Return the loss as a function of weights.

    Raises DataError for grades that the loss cannot use, and IncompatibleParts where it cannot be computed by blocks.
    """
    return _in_memory(loss, data) if isinstance(data, Queries) else _in_blocks(loss, data)


def _in_memory(loss: Loss, queries: Queries) -> OfWeights:
    evaluate, features = prepared(loss, queries), queries.features

    def at(weights: Floats) -> tuple[float, Floats]:
        value, by_score = evaluate(products.scores(features, weights))
        return value, products.transposed(features, by_score)

    return at


def _in_blocks(loss: Loss, data: BlockedQueries) -> OfWeights:
    if not hasattr(loss, "weight_of"):
        raise IncompatibleParts(
            f"{type(loss).__name__} looks at all documents at once: data in blocks need a loss that is a mean or a sum "
            "over blocks, as the pairwise, listwise and pointwise losses are."
        )
    divisible = cast(DivisibleLoss, loss)
    workers, overviews = data.workers, data.workers.map(_overview, divisible)
    others = deciding(np.concatenate([grades for _, grades in overviews]))
    counts = [1.0 if weight is None else weight for weight, _ in overviews]
    total = 1.0 if overviews[0][0] is None else sum(counts)

    def mean(parts: list[Any]) -> Any:
        return np.sum([count * np.asarray(part) for count, part in zip(counts, parts, strict=True)], axis=0) / total

    def best(weights: Floats) -> float:
        levelled = cast(PointwiseLoss, loss)
        start = levelled.start(*mean(workers.map(_means, levelled, others, weights)))
        return best_intercept(lambda b: tuple(mean(workers.map(_by_intercept, levelled, others, weights, b))), start)

    def at(weights: Floats) -> tuple[float, Floats]:
        intercept = best(weights) if hasattr(loss, "at_intercept") else None
        values, gradients = zip(*workers.map(_evaluated, divisible, others, weights, intercept), strict=True)
        return float(mean(list(values))), mean(list(gradients))

    return at


def _overview(block: OpenBlock, loss: DivisibleLoss) -> tuple[float | None, Floats]:
    """Return the weight of a block, and its grades, which decide conventions."""
    return loss.weight_of(block.queries), deciding(block.queries.grades)


def _means(block: OpenBlock, loss: PointwiseLoss, others: Floats, weights: Floats) -> tuple[float, float]:
    return _prepared(block, loss, others, loss.at_intercept).means(block.scores(weights))


def _by_intercept(block: OpenBlock, loss: PointwiseLoss, others: Floats, weights: Floats, intercept: float) -> Any:
    return _prepared(block, loss, others, loss.at_intercept).by_intercept(block.scores(weights), intercept)


def _evaluated(
    block: OpenBlock, loss: Any, others: Floats, weights: Floats, intercept: float | None
) -> tuple[float, Floats]:
    """Return the loss on a block, and its gradient by weight."""
    scores = block.scores(weights)
    if intercept is None:
        value, by_score = _prepared(block, loss, others, loss.prepared)(scores)
    else:
        value, by_score = _prepared(block, loss, others, loss.at_intercept).value_and_gradient(scores, intercept)
    return value, products.transposed(block.queries.features, by_score)


def _prepared(block: OpenBlock, loss: Any, others: Floats, prepare: Callable[[Queries, Floats], T]) -> T:
    """Return the prepared block, computed once for a loss and others."""
    name, (key, result) = "loss of weights", block.cache.get("loss of weights", (None, None))
    if key != (loss, others.tobytes()):
        key, result = (loss, others.tobytes()), prepare(block.queries, others)
        block.cache[name] = key, result
    return cast(T, result)
