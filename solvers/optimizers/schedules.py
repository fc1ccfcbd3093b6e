"""How far a one-pass optimizer moves at its t-th list: eta_t, for all weights or for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.optimizers import one_pass_kernels as kernels


class Schedule(Protocol):
    """A rate that the one-pass kernels know by its code."""

    code: ClassVar[int]

    @property
    def eta0(self) -> float:
        """The rate of the first list, or of a gradient of size one."""


@dataclass(frozen=True)
class InverseRoot:
    """eta0 / sqrt(t): the rate under which the average loss of a convex problem converges."""

    eta0: float = 1.0
    code: ClassVar[int] = kernels.INVERSE_ROOT

    def __post_init__(self) -> None:
        """Check the rate."""
        check_positive("eta0", self.eta0)


@dataclass(frozen=True)
class Constant:
    """eta0 at every list: follows data that change."""

    eta0: float = 1.0
    code: ClassVar[int] = kernels.CONSTANT

    def __post_init__(self) -> None:
        """Check the rate."""
        check_positive("eta0", self.eta0)


@dataclass(frozen=True)
class AdaGrad:
    """eta0 / sqrt(sum of the weight's squared gradients so far, this one included): rare features move further.

    Source: Duchi, Hazan & Singer 2011, "Adaptive Subgradient Methods for Online Learning", JMLR 12.
    """

    eta0: float = 0.1
    code: ClassVar[int] = kernels.ADAGRAD

    def __post_init__(self) -> None:
        """Check the rate."""
        check_positive("eta0", self.eta0)
