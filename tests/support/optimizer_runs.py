"""One run of an optimizer from zero weights, as rankers start it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.base.passes import orders
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.optimizers.base import BatchOptimizer
from ranktune.solvers.optimizers.one_pass import OnePass


def batch_run(
    optimizer: BatchOptimizer, loss: Loss, penalty: Penalty, queries: Queries, multiplier: Floats | None = None
) -> Iterator[tuple[Floats, Step]]:
    yield from next(optimizer.follow(loss, (penalty,), queries, multiplier=multiplier))


def one_pass_run(
    optimizer: OnePass,
    loss: PairwiseLoss,
    penalty: Penalty,
    queries: Queries,
    *,
    passes: int = 1,
    scaled: bool = False,
    generator: np.random.Generator | None = None,
) -> Iterator[tuple[Floats, Step]]:
    state = optimizer.start(queries.n_features)
    for order in orders(queries.n_queries, passes, generator):
        yield from optimizer.learn(state, loss, penalty, queries, order, scaled=scaled)
