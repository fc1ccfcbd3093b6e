"""Queries and validation plans on disk, written once and mapped into the memory of every worker.

A folder of a problem holds the development queries (see `solvers.data.disk.stored`) and an npz file for each plan.
Parts of the queries, such as the training queries of a fold, are a view of them where they are consecutive. Others have
to be gathered: few into memory, many into a file, once for all trials and workers, so that no process holds a copy.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.files.atomic import atomic_folder
from ranktune.solvers.core.files.private import is_own_folder, private_folder
from ranktune.solvers.core.memory import format_size, free_memory
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.gathering import MIN_BYTES, gathered, is_run, n_bytes
from ranktune.solvers.data.origins import note_selection
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits.memory import left, uncounted
from ranktune.tuner.splits.plans import PLAN, StoredPlan, load_plan, save_plan

_elsewhere: dict[str, Path] = {}
"""Folder of a problem -> where this process reads it instead."""


def write_problem(development: Queries, plans: Mapping[str, StoredPlan], folder: Path) -> None:
    """Write the development queries and the validation plans where every worker can map them."""
    write_queries(development, folder)
    for name, plan in plans.items():
        save_plan(plan, folder / f"{name}.npz")


def located(folder: str) -> Path:
    """Return where this host has the problem of a folder: there, or unpacked. Raises StudyError if it has none.

    An unpacked problem is where `use_instead` set it, or in the cache under the folder's name, which identifies it.
    """
    path = Path(folder)
    if path.is_dir():
        return path
    with suppress(OSError):
        if (other := _elsewhere.get(folder)) is not None and other.is_dir():
            return other
        if is_own_folder(other := store() / path.name):
            return other
    raise StudyError(f"the data of the study are not on this host: not in {path}, nor in the cache (RANKTUNE_CACHE).")


def use_instead(folder: str, path: Path) -> None:
    """Let this process read the problem of a folder that does not exist here from path."""
    _elsewhere[folder] = path


def store() -> Path:
    """Return the folder of unpacked problems. Raises OSError if it cannot be written, or others can."""
    return private_folder("problems")


@lru_cache(maxsize=2)
def read_development(folder: str) -> Queries:
    """Return the development queries of a problem, mapped once a process."""
    with uncounted():
        return read_queries(located(folder))


def read_plan(folder: str, name: str) -> StoredPlan:
    """Return a plan of a problem, an empty one if it has none of that name; another process may have replaced it."""
    path = located(folder) / f"{name}.npz"
    try:
        about = path.stat()
    except FileNotFoundError:
        return ()
    return _plan(path, (about.st_ino, about.st_mtime_ns))


@lru_cache(maxsize=4)
def _plan(path: Path, version: tuple[int, int]) -> StoredPlan:
    with uncounted():
        return load_plan(path)


PARTS = "parts"
"""Subfolder of a problem's folder."""
MAX_MAPPED = 2
"""Parts that a process keeps mapped: those of a fold."""

_mapped: OrderedDict[Path, Queries] = OrderedDict()


def training_numbers(folder: str) -> Ints:
    """Return the numbers of the training queries of a problem's given split, or of its first fold."""
    plan = read_plan(folder, PLAN)
    assert isinstance(plan, tuple)
    return plan[0].train


def read_part(folder: str, numbers: Ints) -> Queries:
    """Return the development queries of these numbers, as Queries.select does; large features are mapped."""
    development = read_development(folder)
    if len(numbers) == development.n_queries and is_run(numbers):
        return development
    is_view = not development.is_sparse and is_run(numbers)
    if is_view or n_bytes(development, numbers) < MIN_BYTES:
        return development.select(numbers)
    name = hashlib.blake2b(numbers.tobytes(), digest_size=16).hexdigest()
    path = located(folder) / PARTS / name
    if path in _mapped:
        _mapped.move_to_end(path)
        return _mapped[path]
    try:
        with uncounted():
            if not path.is_dir():
                _write(path, development, numbers)
            part = _mapped[path] = read_queries(path)
            while len(_mapped) > MAX_MAPPED:
                _mapped.popitem(last=False)
    except OSError as error:  # such as a full disk: then this process has a copy of its own, if there is room
        size, allowed = n_bytes(development, numbers), left()
        if size > (free_memory() if allowed is None else allowed):
            raise StudyError(
                f"{path.parent}: a part of the data of {format_size(size)} cannot be written ({error.strerror}), and "
                "is too large for the memory. Free as much on the disk, or choose a folder on another (RANKTUNE_HOME)."
            ) from None
        return development.select(numbers)
    note_selection(part, development, numbers)
    return part


def remove_parts(folder: Path) -> None:
    """Remove the parts that lie in the folder of a problem; processes that have mapped one can go on."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def _write(path: Path, development: Queries, numbers: Ints) -> None:
    """Write the queries of these numbers into a new folder, as a whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    with suppress(FileExistsError), atomic_folder(path) as fresh:  # which another process has written meanwhile
        write_queries(gathered([(development, numbers)], fresh), fresh, described=True)
