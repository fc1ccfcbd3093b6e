"""The private parts of numba that are used, all in this module.

Dispatcher._numba_type_                       the type of a function that kernels call
registry.cpu_target.typing_context            the types of intrinsics; refresh makes it take notice of new ones
registry.cpu_target.target_context            the code of intrinsics, likewise
Dispatcher._cache, Cache._cache_file          what reads and writes the files of a kernel

A test checks that they exist in the installed numba, and do what they are used for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ranktune.solvers.core.machine_code.folders import loaded


def type_of_dispatcher(dispatcher: Any) -> Any:
    """Return numba's type of a compiled function."""
    return dispatcher._numba_type_


def check_files(dispatcher: Any) -> None:
    """Let the cache of a compiled function believe no files but those that it wrote."""
    from ranktune.solvers.core.machine_code.kernel_files import KernelFiles

    dispatcher._cache._cache_file.__class__ = KernelFiles


def type_of_intrinsic(code: Callable[..., object]) -> Any:
    """Return numba's type of a function that code describes to numba.extending.intrinsic."""
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic

    made = intrinsic(code)
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(made)


def load_types() -> None:
    """Load what numba loads before it compiles or calls its first function."""
    loaded()
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
