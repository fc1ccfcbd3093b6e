"""What every optimizer offers, what it is given, what it yields, and the check that the parts compose.

    minimise  F(w) = a loss(X M w) + penalty(w)

w  (n_features,) weights on the scaled features   M  diagonal, what each feature is multiplied by   v = M w is the model
a  weight of the loss
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import RandomState
from ranktune.solvers.core.errors import IncompatibleParts
from ranktune.solvers.core.parameters import Range
from ranktune.solvers.data.blocked import Data
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.penalties import Penalty


@dataclass(frozen=True)
class Needs:
    """Names of the attributes of a loss and of a penalty that an optimizer uses, and the scalings that it supports."""

    loss: tuple[str, ...] = ()
    penalty: tuple[str, ...] = ()
    scalings: tuple[str, ...] = ("none", "list", "standard", "minmax")


@dataclass(frozen=True)
class Visits:
    """How a one-pass optimizer visits the queries.

    passes        how often each query is visited
    random_state  seed of their order in each pass; None keeps their order
    scaled        whether each feature is divided by its range within the query
    """

    passes: int = 1
    random_state: RandomState = None
    scaled: bool = False


@dataclass(frozen=True, eq=False)
class Parts:
    """What is minimised, and by what: see the notation of the module.

    loss_weight  a, of batch optimizers
    multiplier   M, (n_features,); None for 1
    visits       of one-pass optimizers
    start        w that Newton starts from; None for zero
    """

    loss: Loss
    penalty: Penalty
    optimizer: Optimizer
    loss_weight: float = 1.0
    multiplier: Floats | None = None
    visits: Visits = Visits()

    @property
    def strengths(self) -> tuple[float, float]:
        """(l1, l2) of the penalty on the loss of weight 1."""
        l1, l2 = self.penalty.strengths
        return l1 / self.loss_weight, l2 / self.loss_weight


class Progress(NamedTuple):
    """What an optimizer has reached.

    weights  (n_features,), of the raw features
    fitted   fitted attributes of the ranker, by name
    done     the number of iterations, or of passes
    """

    weights: Floats
    step: Step
    fitted: Mapping[str, Any]
    done: int


def minimised(weights: Floats, step: Step, tolerance: float, scale: float = 1.0) -> Progress:
    """Return what a batch optimizer has reached; scale times the objective of step is F."""
    step = Step(step.iteration, scale * step.objective, step.violation)
    fitted = {"objective_": step.objective, "n_iter_": step.iteration, "converged_": step.violation <= tolerance}
    return Progress(weights, step, fitted, step.iteration)


class Optimizer:
    """An optimizer, and what a search combines it with.

    needs      what it needs of the other parts
    planned    whether the number of steps is planned, so that reaching it is no failure to converge
    losses     "pairwise" ones, whose weights may follow the ranking; "smooth" ones; "named": those that name it
    penalties  names of penalties
    searched   what is tried of a parameter where that is not the usual range
    tol        the violation at which it stops
    """

    tol: float = 0.0
    needs: ClassVar[Needs]
    planned: ClassVar[bool] = False
    losses: ClassVar[str] = "smooth"
    penalties: ClassVar[tuple[str, ...]] = ("none", "l1", "l2", "elastic_net")
    searched: ClassVar[Mapping[str, Range]] = {}

    def check(self, loss: Loss, penalty: Penalty) -> None:
        """Raise IncompatibleParts or ParameterError for a loss or a penalty that has what it needs, but is wrong."""

    def shortfall(self, loss: Loss) -> str:
        """Return what the violation of a step is, for messages."""
        return "the gradient is {:.2g} of that at zero"

    def fit(self, parts: Parts, data: Data) -> Iterator[Progress]:
        """Yield what is reached after each step. Raises DataError, ParameterError or IncompatibleParts."""
        yield from next(self.follow([parts], data))

    def follow(self, path: Sequence[Parts], data: Data) -> Iterator[Iterator[Progress]]:
        """Yield for each of path what fit yields; exhaust it before the next one, which may start where it ended.

        The parts of a path differ in the strengths and in the weight of the loss.
        """
        raise NotImplementedError


def check_parts(loss: Any, penalty: Any, optimizer: Optimizer, all_of: Callable[[], Sequence[type[Optimizer]]]) -> None:
    """Raise IncompatibleParts if the parts do not compose; the message names those of all_of that fit.

    all_of returns the optimizers that the caller supports.
    """
    for kind, part, names in (("Loss", loss, optimizer.needs.loss), ("Penalty", penalty, optimizer.needs.penalty)):
        for name in names:
            if not hasattr(part, name):
                fit = [o.__name__ for o in all_of() if all(hasattr(part, n) for n in getattr(o.needs, kind.lower()))]
                works = f"Optimizers that work with {type(part).__name__}: {', '.join(fit)}."
                none = f"None of {', '.join(o.__name__ for o in all_of())} works with such a {kind.lower()}."
                raise IncompatibleParts(
                    f"{type(optimizer).__name__} needs {kind}.{name}, and {type(part).__name__} has none. "
                    f"{works if fit else none}"
                )
    optimizer.check(loss, penalty)
