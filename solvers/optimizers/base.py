"""What every optimizer offers, what it needs of a loss and a penalty, and the check that the parts compose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.blocks.blocked import Data
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import IncompatibleParts
from ranktune.solvers.core.parameters import Range
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.penalties import Penalty


@dataclass(frozen=True)
class Needs:
    """Names of the attributes of a loss and of a penalty that an optimizer uses, and the scalings that it supports."""

    loss: tuple[str, ...] = ()
    penalty: tuple[str, ...] = ()
    scalings: tuple[str, ...] = ("none", "list", "standard", "minmax")


class Searched:
    """What a search combines an optimizer with.

    losses     "pairwise" ones, whose weights may follow the ranking; "smooth" ones; "named": those that name it
    penalties  names of penalties
    searched   what is tried of a parameter where that is not the usual range
    """

    losses: ClassVar[str] = "smooth"
    penalties: ClassVar[tuple[str, ...]] = ("none", "l1", "l2", "elastic_net")
    searched: ClassVar[Mapping[str, Range]] = {}


class Optimizer(Protocol):
    """What one-pass and batch optimizers have in common."""

    needs: ClassVar[Needs]


class BatchOptimizer(Optimizer, Protocol):
    """An optimizer that evaluates all lists at every step."""

    planned: ClassVar[bool]
    """Whether max_iterations is the planned number of steps, so that reaching it is no failure to converge."""

    @property
    def tol(self) -> float:
        """Stop when the violation is at most this."""

    def follow(
        self, loss: Loss, penalties: Iterable[Penalty], data: Data, *, multiplier: Floats | None = None
    ) -> Iterator[Iterator[tuple[Floats, Step]]]:
        """Yield for each penalty an iterator of weights, (n_features,), and steps; exhaust it before the next one."""


def check_parts(loss: object, penalty: object, optimizer: Optimizer, known: Sequence[type[Optimizer]]) -> None:
    """Raise IncompatibleParts if loss or penalty lacks what optimizer needs; the message names those of known that fit.

    known are the optimizers that the caller supports.
    """
    for kind, part, names in (("Loss", loss, optimizer.needs.loss), ("Penalty", penalty, optimizer.needs.penalty)):
        for name in names:
            if not hasattr(part, name):
                fit = [o.__name__ for o in known if all(hasattr(part, n) for n in getattr(o.needs, kind.lower()))]
                works = f"Optimizers that work with {type(part).__name__}: {', '.join(fit)}."
                none = f"None of {', '.join(o.__name__ for o in known)} works with such a {kind.lower()}."
                raise IncompatibleParts(
                    f"{type(optimizer).__name__} needs {kind}.{name}, and {type(part).__name__} has none. "
                    f"{works if fit else none}"
                )
