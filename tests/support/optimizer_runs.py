"""One run of an optimizer from zero weights, as rankers start it."""

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.optimizers.base import Optimizer, Parts, Visits


def optimizer_run(
    optimizer: Optimizer,
    loss: Loss,
    penalty: Penalty,
    queries: Queries,
    multiplier: Floats | None = None,
    *,
    passes: int = 1,
    scaled: bool = False,
    generator: np.random.Generator | None = None,
) -> Iterator[tuple[Floats, Step]]:
    visits = Visits(passes, generator, scaled)
    for progress in optimizer.fit(Parts(loss, penalty, optimizer, 1.0, multiplier, visits), queries):
        yield progress.weights, progress.step
