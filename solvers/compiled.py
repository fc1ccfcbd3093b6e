"""The one way a kernel is compiled: numba, cached on disk, IEEE arithmetic kept.

fastmath stays off: it would let the compiler assume that no NaN or infinity exists and reorder sums, so that
results would differ between machines. Kernels are serial, because joblib already fills the cores with trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARIES = (numba, np)
"""Modules that are not searched for kernels: they hold none of ours."""

_files: dict[Any, frozenset[str]] = {}
"""Kernel -> the files that its machine code comes from."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return function compiled on first call, releasing the interpreter lock while it runs."""
    kernel = numba.njit(cache=True, nogil=True)(function)
    _files[kernel] = frozenset(_sources(cast(FunctionType, function)))
    _stamp(kernel, _files[kernel])
    return cast(Callable[P, R], kernel)


def _stamp(kernel: Any, files: frozenset[str]) -> None:
    """Have the cached machine code of kernel depend on all of its files.

    Numba looks at the file of the kernel alone, and would run what it made of another file's kernel before that changed
    (an upgrade in place leaves the caches where they are).
    """
    cache_file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        stats = ((name, Path(name).stat()) for name in sorted(files))
        cache_file._source_stamp = tuple((Path(name).name, stat.st_mtime, stat.st_size) for name, stat in stats)


def _sources(function: FunctionType) -> Iterator[str]:
    """Yield the file of function and those of the kernels that its module imports, by name or as module.name."""
    yield function.__code__.co_filename
    for value in list(function.__globals__.values()):
        yield from _kernel_files(value)
        if isinstance(value, ModuleType) and value not in _LIBRARIES:
            for inner in list(vars(value).values()):
                yield from _kernel_files(inner)


def _kernel_files(value: Any) -> Iterator[str]:
    if isinstance(value, numba.core.dispatcher.Dispatcher):
        yield from _files.get(value, ())
    elif isinstance(value, numba.core.extending._Intrinsic):
        yield value._defn.__code__.co_filename
