"""Queries and validation plans on disk, written once and mapped into the memory of every worker.

A folder of a problem holds the development queries (see `solvers.data.disk.stored`) and an npz file for each plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits.archive import located
from ranktune.tuner.splits.memory import uncounted
from ranktune.tuner.splits.plans import StoredPlan, load_plan, save_plan


def write_problem(development: Queries, plans: Mapping[str, StoredPlan], folder: Path) -> None:
    """Write the development queries and the validation plans where every worker can map them."""
    write_queries(development, folder)
    for name, plan in plans.items():
        save_plan(plan, folder / f"{name}.npz")


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
