"""Objects of a module by their import path, module:Name."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from typing import Any

from ranktune.solvers.core.errors import ParameterError

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


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
