"""Compiling of kernels by numba: at the first call, with IEEE arithmetic, cached on disk.

The machine code is kept in the user's cache folder, by version and processor, or where NUMBA_CACHE_DIR says. It begins
as a copy of what the package holds (`ranktune.solvers.core.machine_code`). Where that cannot be written, each process
compiles what it needs.

fastmath stays off: it would let the compiler assume that no NaN or infinity exists and reorder sums, so that
results would differ between machines. Kernels are serial, because joblib already fills the cores with trials.

Declaring a kernel does not import numba: the process of the command line, which only starts workers, never loads it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, update_wrapper
from operator import attrgetter
from types import FunctionType, ModuleType
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

from ranktune.solvers.core.errors import RankTuneWarning, warn
from ranktune.solvers.core.machine_code.folders import code_folder, loaded, remark_on_cache
from ranktune.solvers.core.numba_internals import check_files, type_of_dispatcher, type_of_intrinsic

P = ParamSpec("P")
R = TypeVar("R")

_CONFIGURATION = threading.Lock()
_kernels: list[Kernel] = []
_ignores_cache = False
_LOCATOR = "ranktune.solvers.core.machine_code.locator.KernelLocator"
_PACKAGE = f"{__name__.partition('.')[0]}."


class Kernel:
    """A function that runs as machine code. To numba it has the type of the dispatcher that it holds."""

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(self, function)
        self.function = function

    @cached_property
    def machine(self) -> Any:
        """Numba's dispatcher: it loads or compiles the machine code of a signature when called with it."""
        numba = loaded()
        _kernels.append(self)
        warn_of_cache()
        if _ignores_cache or code_folder() is None:
            return numba.njit(nogil=True)(self.function)
        with _CONFIGURATION:  # numba takes the locator from its configuration when it makes the dispatcher
            before, numba.config.CACHE_LOCATOR_CLASSES = numba.config.CACHE_LOCATOR_CLASSES, _LOCATOR
            try:
                machine = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(self.function)
                check_files(machine)
                return machine
            finally:
                numba.config.CACHE_LOCATOR_CLASSES = before

    @property
    def _numba_type_(self) -> Any:
        return type_of_dispatcher(self.machine)

    __call__ = property(attrgetter("machine"))
    """Calling the kernel calls its machine, without a Python function between them."""


class Instruction:
    """A function that kernels run as given LLVM code; called from Python, it runs as written."""

    def __init__(self, function: FunctionType, code: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self.function, self.code = function, code

    @cached_property
    def _numba_type_(self) -> Any:
        return type_of_intrinsic(self.code)

    __call__ = property(attrgetter("function"))


class Inlined(Kernel):
    """A kernel whose lines other kernels hold in place of a call of it."""

    targetoptions: ClassVar[dict[str, str]] = {"inline": "always"}
    """What numba looks for, here and in py_func, before it gives types to the kernel that calls."""
    py_func = property(attrgetter("function"))


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return function compiled on first call, releasing the interpreter lock while it runs."""
    return cast(Callable[P, R], Kernel(cast(FunctionType, function)))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Return a small function that kernels call: its lines are compiled with theirs, which saves a signature."""
    return cast(Callable[P, R], Inlined(cast(FunctionType, function)))


def instruction(code: Callable[..., object]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: kernels run, in place of the function, what code gives to numba.extending.intrinsic."""

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], Instruction(cast(FunctionType, function), code))

    return declared


SMALL = 1 << 22
"""Numbers that Python handles in less time than numba takes to load."""


def is_worth_loading(size: int) -> bool:
    """Return whether kernels are to handle so many numbers: all of them once numba is loaded."""
    return size > SMALL or "numba" in sys.modules


def as_written(kernel: Callable[P, R]) -> Callable[P, R]:
    """Return the Python function of a kernel, which takes arrays in place of numbers where it is so written."""
    return cast(Callable[P, R], cast(Kernel, kernel).function)


def warn_of_cache() -> None:
    """Warn (RankTuneWarning), once a process, where machine code cannot be kept, or what is kept not believed."""
    if line := remark_on_cache():
        with suppress(RankTuneWarning):  # where warnings are errors: it works nevertheless
            warn(line)


@contextmanager
def compiling() -> Iterator[list[float]]:
    """Yield a list that holds, after the block, the seconds spent on compiling in it; loading does not count."""
    loaded()
    from numba.core.event import install_timer

    spent: list[float] = []
    with install_timer("numba:compile", spent.append):
        yield spent


def compile_anew() -> None:
    """Forget all machine code of this process, and compile from now on without what is kept, which may be damaged."""
    global _ignores_cache
    _ignores_cache = True
    while _kernels:
        _kernels.pop().__dict__.pop("machine", None)


def is_compiling_error(error: BaseException) -> bool:
    """Return whether an error was raised inside the compiler, and not by what it compiles."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return raised_in.partition(".")[0] in ("numba", "llvmlite")


def files_of(kernel: FunctionType) -> frozenset[str]:
    """Return the source files of the machine code of a kernel: its own, and those of the kernels that it may call."""
    files: set[str] = set()
    waiting = [kernel]
    while waiting:
        function = waiting.pop()
        if function.__code__.co_filename not in files:
            files.add(function.__code__.co_filename)
            waiting += (named.function for named in _named(function))
    return frozenset(files)


def _named(function: FunctionType) -> Iterator[Kernel | Instruction]:
    """Yield the kernels that the module of function holds or imports, by name or as module.name.

    Only modules of this package are searched: others hold none, and reading their attributes could load lazy ones.
    """
    for value in list(function.__globals__.values()):
        of_package = isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE)
        inner = list(vars(value).values()) if of_package else [value]
        yield from (value for value in inner if isinstance(value, Kernel | Instruction))
