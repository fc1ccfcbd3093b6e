"""The one way a kernel is compiled: numba, cached on disk, IEEE arithmetic kept, at the first call.

fastmath stays off: it would let the compiler assume that no NaN or infinity exists and reorder sums, so that
results would differ between machines. Kernels are serial, because joblib already fills the cores with trials.

Declaring a kernel does not import numba: the command line's own process, which only starts workers, never loads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = f"{__name__.partition('.')[0]}."


class Kernel:
    """A function that runs as machine code. To numba it has the type of the dispatcher that it holds."""

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(self, function)
        self.function = function

    @cached_property
    def machine(self) -> Any:
        """Numba's dispatcher: it loads or compiles the machine code of a signature when called with it."""
        import numba

        dispatcher = numba.njit(cache=True, nogil=True)(self.function)
        _stamp(dispatcher, files_of(self))
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self.machine._numba_type_

    __call__ = property(attrgetter("machine"))
    """Calling the kernel calls its machine, without a Python function between them."""


class Instruction:
    """A function that kernels run as LLVM code of its own; called from Python, it runs as written."""

    def __init__(self, function: FunctionType, code: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self.function, self.code = function, code

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        made = intrinsic(self.code)
        cpu_target.typing_context.refresh()  # which makes numba take notice of it
        return cpu_target.typing_context.resolve_value_type(made)

    __call__ = property(attrgetter("function"))


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return function compiled on first call, releasing the interpreter lock while it runs."""
    return cast(Callable[P, R], Kernel(cast(FunctionType, function)))


def instruction(code: Callable[..., object]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: kernels run, in place of the function, what code gives to numba.extending.intrinsic."""

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], Instruction(cast(FunctionType, function), code))

    return declared


@contextmanager
def compiling() -> Iterator[list[float]]:
    """Yield a list that holds, after the block, the seconds spent on compiling in it; loading does not count."""
    from numba.core.event import install_timer

    spent: list[float] = []
    with install_timer("numba:compile", spent.append):
        yield spent


def cache_folder(kernel: object) -> str:
    """Return the folder that holds the machine code: NUMBA_CACHE_DIR, or where numba keeps that of kernel."""
    assert isinstance(kernel, Kernel)
    return os.environ.get("NUMBA_CACHE_DIR") or str(kernel.machine.stats.cache_path)


def files_of(kernel: Kernel) -> frozenset[str]:
    """Return the files that the machine code of kernel comes from: its own, and those of the kernels it may call."""
    found: set[str] = set()
    waiting: list[Kernel | Instruction] = [kernel]
    while waiting:
        one = waiting.pop()
        if one.function.__code__.co_filename not in found:
            found.add(one.function.__code__.co_filename)
            waiting += _named(one.function)
    return frozenset(found)


def _named(function: FunctionType) -> Iterator[Kernel | Instruction]:
    """Yield the kernels that the module of function holds or imports, by name or as module.name.

    Only modules of this package are searched: others hold none, and reading their attributes could load lazy ones.
    """
    for value in list(function.__globals__.values()):
        ours = isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE)
        inner = list(vars(value).values()) if ours else [value]
        yield from (one for one in inner if isinstance(one, Kernel | Instruction))


def _stamp(dispatcher: object, files: frozenset[str]) -> None:
    """Make the cached machine code depend on all of its files.

    Numba checks the file of the kernel alone, and would run what it compiled before another kernel's file changed
    (an upgrade in place leaves the caches where they are).
    """
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        stats = ((name, Path(name).stat()) for name in sorted(files))
        cache_file._source_stamp = tuple((Path(name).name, stat.st_mtime, stat.st_size) for name, stat in stats)
