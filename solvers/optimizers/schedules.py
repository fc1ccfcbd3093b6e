"""The rate at which a one-pass optimizer moves at its t-th list: eta_t, for all weights or for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

from ranktune.solvers.core.parameters import Param, part
from ranktune.solvers.optimizers import one_pass_kernels as kernels


@part
class Schedule:
    """A rate that the one-pass kernels know by its code; eta0 is that of the first list, or of a gradient of one."""

    eta0: Annotated[float, Param("The rate of the first list.")] = 1.0
    code: ClassVar[int]


@part
class InverseRoot(Schedule):
    """The rate eta0 / sqrt(t), under which the average loss of a convex problem converges.

    {parameters}

    Examples
    --------
    >>> from ranktune.solvers import FOBOS
    >>> from ranktune.solvers.optimizers.schedules import InverseRoot
    >>> FOBOS(InverseRoot(0.5)).schedule
    InverseRoot(eta0=0.5)
    """

    code: ClassVar[int] = kernels.INVERSE_ROOT


@part
class Constant(Schedule):
    """The rate eta0 at every list, for data whose distribution changes.

    {parameters}

    Examples
    --------
    >>> from ranktune.solvers import FOBOS
    >>> from ranktune.solvers.optimizers.schedules import Constant
    >>> FOBOS(Constant(0.1)).schedule
    Constant(eta0=0.1)
    """

    eta0: Annotated[float, Param("The rate.")] = 1.0
    code: ClassVar[int] = kernels.CONSTANT


@part
class AdaGrad(Schedule):
    """The rate eta0 / sqrt(sum of the weight's squared gradients so far, this one included).

    Weights of rare features move further than those of frequent ones.

    {parameters}

    References
    ----------
    Duchi, Hazan & Singer 2011, "Adaptive Subgradient Methods for Online Learning", JMLR 12.

    Examples
    --------
    >>> from ranktune.solvers import FOBOS
    >>> from ranktune.solvers.optimizers.schedules import AdaGrad
    >>> FOBOS(AdaGrad(0.3)).schedule
    AdaGrad(eta0=0.3)
    """

    eta0: Annotated[float, Param("The size of the first step of every weight.")] = 0.1
    code: ClassVar[int] = kernels.ADAGRAD


SCHEDULES: Mapping[str, Callable[[float], Schedule]] = {
    "sqrt": InverseRoot,
    "constant": Constant,
    "adagrad": AdaGrad,
}
"""The schedules by the names that solvers give them."""
