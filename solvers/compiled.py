"""The one way a kernel is compiled: numba, cached on disk, IEEE arithmetic kept.

fastmath stays off: it would let the compiler assume that no NaN or infinity exists and reorder sums, so that
results would differ between machines. Kernels are serial, because joblib already fills the cores with trials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return function compiled on first call, releasing the interpreter lock while it runs."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))
