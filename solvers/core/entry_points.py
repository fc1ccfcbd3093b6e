"""Names in code: what installed packages offer by entry points, and objects by their import path, module:Name."""

from __future__ import annotations

import re
from functools import lru_cache, reduce
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ranktune.solvers.core.errors import ParameterError

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@lru_cache
def offered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name. Nothing is imported."""
    return {point.name: point for point in entry_points(group=group)}


def loaded(group: str, name: str) -> Any:
    """Return what the entry point of that name stands for, whatever the case of its letters; None if there is none.

    Raises ParameterError where it cannot be imported.
    """
    found = {known.lower().replace("_", "-"): point for known, point in offered(group).items()}
    point = found.get(name.lower().replace("_", "-"))
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:  # importing a module runs anything
        package = "" if point.dist is None else f" of the package '{point.dist.name}'"
        raise ParameterError(
            f"'{point.name}'{package} cannot be imported from {point.value} ({type(error).__name__}: {error}). "
            "Install what it needs, or remove the package."
        ) from None


def is_path(text: str) -> bool:
    """Return whether text is an import path: module:Name."""
    return _PATH.fullmatch(text) is not None


def named(path: str) -> Any:
    """Return the object at an import path, module:Name. Raises ParameterError where there is none."""
    module, _, name = path.partition(":")
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except Exception as error:  # importing a module runs anything
        raise ParameterError(
            f"'{path}' cannot be imported ({type(error).__name__}: {error}). Give module:Name of a module that Python "
            "finds here, such as one in the current folder or in PYTHONPATH."
        ) from None


def path_of(value: Any) -> str:
    """Return the import path of a class or function, empty where another process cannot import it by one."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    path = f"{module}:{name}"
    if module in (None, "__main__") or not is_path(path):
        return ""
    try:
        return path if named(path) == value else ""  # a method is another object each time
    except ParameterError:
        return ""
