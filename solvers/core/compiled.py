"""Compiling of kernels by numba: at the first call, with IEEE arithmetic, cached on disk.

The machine code is kept in the user's cache folder (`ranktune.solvers.core.files`), by version and processor, or where
NUMBA_CACHE_DIR says. Where that cannot be written, each process compiles what it needs.

fastmath stays off: it would let the compiler assume that no NaN or infinity exists and reorder sums, so that
results would differ between machines. Kernels are serial, because joblib already fills the cores with trials.

Declaring a kernel does not import numba: the process of the command line, which only starts workers, never loads it.
"""

from __future__ import annotations

import os
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.core.files import cache_folder, is_writable, private_folder
from ranktune.solvers.core.numba_internals import stamp, type_of_dispatcher, type_of_intrinsic

P = ParamSpec("P")
R = TypeVar("R")

_CONFIGURATION = threading.Lock()
_kernels: list[Kernel] = []
_warned = _ignores_cache = False
_WARNING = (
    "compiled code cannot be kept, so that each process compiles what it uses: set RANKTUNE_CACHE to a folder that can "
    "be written."
)
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

        _kernels.append(self)
        folder = None if _ignores_cache else code_folder()
        if folder is None:
            if line := remark_on_cache():
                warnings.warn(line, RankTuneWarning, stacklevel=3)
            return numba.njit(nogil=True)(self.function)
        with _CONFIGURATION:  # numba takes the folder from its configuration when it makes the dispatcher
            config: Any = numba.config  # whose settings have no types
            before, config.CACHE_DIR = config.CACHE_DIR, folder
            try:
                dispatcher = numba.njit(cache=True, nogil=True)(self.function)
            finally:
                config.CACHE_DIR = before
        # Numba checks the file of the kernel alone, and would run what it compiled before another kernel's file changed
        # (an upgrade in place leaves the caches where they are).
        files = [Path(name) for name in sorted(files_of(self))]
        stamp(dispatcher, tuple((file.name, file.stat().st_mtime, file.stat().st_size) for file in files))
        return dispatcher

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


@cache
def code_folder() -> str | None:
    """Return the folder of the machine code, made if it is missing, None if none can be written.

    Each release has a folder: numba reads the cached code before it compares the source files, and fails where an
    earlier release cached a type whose module was removed.
    """
    import numba
    from llvmlite import binding

    chosen = os.environ.get("NUMBA_CACHE_DIR")
    try:
        if chosen:
            return chosen if is_writable(Path(chosen)) else None
        cpu = f"{binding.get_host_cpu_name()}-{zlib.crc32(str(binding.get_host_cpu_features()).encode()):08x}"
        return str(private_folder("kernels", f"ranktune-{_release()}-numba-{numba.__version__}-{cpu}"))
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


def _release() -> str:
    try:
        return metadata.version("ranktune")
    except metadata.PackageNotFoundError:  # run from a folder, without an installation
        return "0"


def remark_on_cache() -> str:
    """Return the line to show where machine code cannot be kept, "" where it can, or where it was returned before.

    It does not load numba. A worker calls it too and ignores the line, which its coordinator has shown.
    """
    global _warned
    if _warned:
        return ""
    _warned = True
    try:
        chosen = os.environ.get("NUMBA_CACHE_DIR")
        keeps = is_writable(Path(chosen) if chosen else cache_folder() / "kernels")
    except RuntimeError:  # no home folder
        keeps = False
    return "" if keeps else _WARNING


def compile_anew() -> None:
    """Forget all machine code of this process, and compile from now on without what is kept, which may be damaged."""
    global _ignores_cache, _warned
    _ignores_cache = _warned = True
    while _kernels:
        _kernels.pop().__dict__.pop("machine", None)


def is_compiling_error(error: BaseException) -> bool:
    """Return whether an error was raised inside the compiler, and not by what it compiles."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return raised_in.partition(".")[0] in ("numba", "llvmlite")


def files_of(kernel: Kernel) -> frozenset[str]:
    """Return the source files of the machine code of kernel: of the kernel, and of the kernels that it may call."""
    files: set[str] = set()
    waiting: list[Kernel | Instruction] = [kernel]
    while waiting:
        source = waiting.pop()
        if source.function.__code__.co_filename not in files:
            files.add(source.function.__code__.co_filename)
            waiting += _named(source.function)
    return frozenset(files)


def _named(function: FunctionType) -> Iterator[Kernel | Instruction]:
    """Yield the kernels that the module of function holds or imports, by name or as module.name.

    Only modules of this package are searched: others hold none, and reading their attributes could load lazy ones.
    """
    for value in list(function.__globals__.values()):
        of_package = isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE)
        inner = list(vars(value).values()) if of_package else [value]
        yield from (value for value in inner if isinstance(value, Kernel | Instruction))
