"""The one way a kernel is compiled: numba, cached on disk, IEEE arithmetic kept, when it is first used.

fastmath stays off: it would let the compiler assume that no NaN or infinity exists and reorder sums, so that
results would differ between machines. Kernels are serial, because joblib already fills the cores with trials.

Declaring a kernel imports nothing: a process that only talks of solvers, as the command line's does while workers
learn, never loads numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = f"{__name__.partition('.')[0]}."


class Kernel:
    """A function that runs as machine code; numba takes it, by _numba_type_, for what it makes of the function."""

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(self, function)
        self.function = function

    @cached_property
    def machine(self) -> Any:
        """What numba makes of the function: it loads or compiles a signature's machine code when called with it."""
        import numba

        made = numba.njit(cache=True, nogil=True)(self.function)
        _stamp(made, files_of(self))
        return made

    @property
    def _numba_type_(self) -> Any:
        return self.machine._numba_type_

    __call__ = property(attrgetter("machine"))
    """Calling the kernel calls its machine, without a Python function between them."""


class Instruction:
    """What kernels call and only they: a function of this name in a module of numba's intrinsics."""

    def __init__(self, function: FunctionType, module: str) -> None:
        self.function = function
        self.module = module

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        intrinsic = getattr(import_module(self.module), self.function.__name__)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(intrinsic)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return function compiled on first call, releasing the interpreter lock while it runs."""
    return cast(Callable[P, R], Kernel(cast(FunctionType, function)))


def instruction(module: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function stands, in kernels, for numba's intrinsic of its name in module."""

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], Instruction(cast(FunctionType, function), module))

    return declared


@contextmanager
def compiling() -> Iterator[list[float]]:
    """Yield a list that holds, after the block, the seconds spent on compiling in it, if any; loading is not."""
    from numba.core.event import install_timer

    spent: list[float] = []
    with install_timer("numba:compile", spent.append):
        yield spent


def files_of(kernel: Kernel) -> frozenset[str]:
    """Return the files that the machine code of kernel comes from: its own, and those of the kernels it may call."""
    found: set[str] = set()
    waiting: list[Kernel | Instruction] = [kernel]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Instruction):
            found |= {one.function.__code__.co_filename, str(import_module(one.module).__file__)}
        elif one.function.__code__.co_filename not in found:
            found.add(one.function.__code__.co_filename)
            waiting += _named(one.function)
    return frozenset(found)


def _named(function: FunctionType) -> Iterator[Kernel | Instruction]:
    """Yield the kernels that the module of function holds or imports, by name or as module.name.

    Only modules of this package are looked into: others hold none, and looking at parts that wait for their first use
    would load them.
    """
    for value in list(function.__globals__.values()):
        ours = isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE)
        inner = list(vars(value).values()) if ours else [value]
        yield from (one for one in inner if isinstance(one, Kernel | Instruction))


def _stamp(made: Any, files: frozenset[str]) -> None:
    """Have the cached machine code depend on all of its files.

    Numba looks at the file of the kernel alone, and would run what it made of another file's kernel before that changed
    (an upgrade in place leaves the caches where they are).
    """
    cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        stats = ((name, Path(name).stat()) for name in sorted(files))
        cache_file._source_stamp = tuple((Path(name).name, stat.st_mtime, stat.st_size) for name, stat in stats)
