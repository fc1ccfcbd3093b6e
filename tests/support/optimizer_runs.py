"""One run of an optimizer from zero weights, as rankers start it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.optimizers.base import Optimizer, Parts, Visits
from ranktune.solvers.optimizers.one_pass import OnePass


def batch_run(
    optimizer: Optimizer, loss: Loss, penalty: Penalty, queries: Queries, multiplier: Floats | None = None
) -> Iterator[tuple[Floats, Step]]:
    for progress in optimizer.fit(Parts(loss, penalty, optimizer, multiplier=multiplier), queries):
        yield progress.weights, progress.step


def one_pass_run(
    optimizer: OnePass,
    loss: Loss,
    penalty: Penalty,
    queries: Queries,
    *,
    passes: int = 1,
    scaled: bool = False,
    generator: np.random.Generator | None = None,
) -> Iterator[tuple[Floats, Step]]:
    visits = Visits(passes, generator, scaled)
    for progress in optimizer.fit(Parts(loss, penalty, optimizer, visits=visits), queries):
        yield progress.weights, progress.step
