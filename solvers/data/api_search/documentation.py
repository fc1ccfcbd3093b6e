"""Finding the documented public functions and classes of installed packages.

The walk runs in a process of its own: it imports nearly every public module of the packages, which would fill the
caller's process, and is independent of what the caller imported, patched or set before (python -OO strips
docstrings, for instance). Output and warnings of the modules stay in that process.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from types import ModuleType

from ranktune.solvers.core.errors import DataError

_NOT_DOCUMENTATION = frozenset(
    {
        # tests and their helpers
        *("test", "tests", "testing", "testutils", "conftest", "estimator_checks"),
        # build tools, command lines, vendored code; modules that change others when imported
        *("setup", "distutils", "f2py", "cli", "mypy_plugin", "externals", "backports", "experimental"),
        # deprecated modules of names that are public elsewhere; modules that need optional packages
        *("core", "matlib", "misc", "version", "integration", "matplotlib"),
        "cython_special",  # one line each, "See the documentation for ..."
    }
)
_WALK_SECONDS = 300


@dataclass(frozen=True)
class Documented:
    """A public function or class: its shortest public name, its other public names, and its docstring.

    home is the module that defines it, which is often a private one.
    """

    name: str
    aliases: tuple[str, ...]
    is_class: bool
    home: str
    docstring: str


def installed(packages: Sequence[str]) -> list[Documented]:
    """Return the documented objects of the packages, sorted by name, from another process. Takes seconds.

    Raises DataError where that process fails.
    """
    if not sys.executable:
        raise DataError("the documentation of packages is read by another Python process, and sys.executable is empty.")
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONINSPECT")
    }
    environment |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "MPLBACKEND": "Agg"}
    environment["PYTHONHASHSEED"] = "0"  # some docstrings are generated at import from sets
    command = [sys.executable, "-P", "-m", "ranktune.solvers.data.api_search.documentation", *packages]
    try:
        walk = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WALK_SECONDS, check=True
        )
        return [Documented(**{**item, "aliases": tuple(item["aliases"])}) for item in json.loads(walk.stdout)]
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {error.returncode}"]
        raise DataError(f"reading the documentation of {', '.join(packages)} failed: {last[0]}") from error
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise DataError(f"reading the documentation of {', '.join(packages)} failed: {error}") from error


def find(packages: Sequence[str]) -> list[Documented]:
    """Return the documented objects of the packages, sorted by name, importing the packages into this process."""
    found: dict[int, _Found] = {}
    for package in packages:
        for module in _modules(package):
            for name, value in _members(module):
                found.setdefault(id(value), _Found(value)).names.add(f"{module.__name__}.{name}")
    named = [documented for entry in found.values() if (documented := entry.documented(packages)) is not None]
    return _without_copies(sorted(named, key=lambda documented: _preference(documented.name)))


@dataclass
class _Found:
    """An object and all its public names. The reference keeps its id unique."""

    value: object
    names: set[str] = field(default_factory=set)

    def documented(self, packages: Sequence[str]) -> Documented | None:
        """Return the object under its best name, or None where it belongs to none of the packages."""
        home = getattr(self.value, "__module__", None) or min(self.names, key=_preference).rpartition(".")[0]
        root = home.partition(".")[0]
        own = [name for name in self.names if name.partition(".")[0] == root]
        if root not in packages or not own:
            return None
        called = getattr(self.value, "__name__", "")
        best = min(own, key=lambda name: (name.count("."), name.rpartition(".")[2] != called, name))
        others = tuple(sorted(self.names - {best}))
        return Documented(best, others, inspect.isclass(self.value), home, inspect.cleandoc(self.value.__doc__ or ""))


def _preference(name: str) -> tuple[int, str]:
    return name.count("."), name


def _without_copies(found: list[Documented]) -> list[Documented]:
    """Return found, sorted by name, with objects of equal docstring and equal last name merged into one.

    Objects such as numpy.sin and numpy.ma.sin have equal texts: as two queries they could be in two parts of a split.
    """
    first: dict[tuple[str, str], Documented] = {}
    for each in found:
        key = (each.name.rpartition(".")[2], each.docstring)
        kept = first.setdefault(key, each)
        if kept is not each:
            aliases = tuple(sorted({*kept.aliases, each.name, *each.aliases}))
            first[key] = Documented(kept.name, aliases, kept.is_class, kept.home, kept.docstring)
    return sorted(first.values(), key=lambda each: each.name)


def _modules(name: str) -> Iterator[ModuleType]:
    """Yield the public modules of a package, in the order of their names; without those that fail or are deprecated."""
    module = _imported(name)
    if module is None:
        return
    yield module
    inside = sorted(each.name for each in pkgutil.iter_modules(vars(module).get("__path__", [])))
    for each in inside:
        if not each.startswith("_") and each not in _NOT_DOCUMENTATION:
            yield from _modules(f"{name}.{each}")


def _imported(name: str) -> ModuleType | None:
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = importlib.import_module(name)
    except (Exception, SystemExit):  # a module may fail in any way: missing package, unsupported platform
        return None
    deprecated = any(issubclass(each.category, (DeprecationWarning, FutureWarning)) for each in caught)
    return None if deprecated and "." in name else module


def _members(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the public documented functions and classes of a module; without names that warn on access."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declared = vars(module).get("__all__")
        for name in sorted({str(name) for name in (vars(module) if declared is None else declared)}):
            if name.startswith("_"):
                continue
            try:
                value: object = getattr(module, name)
                # without __all__, what a module merely imports would look like its own
                if _is_documented(value) and (declared is not None or value.__module__ == module.__name__):
                    yield name, value
            except Exception:  # a lazy or deprecated attribute
                continue


def _is_documented(value: object) -> bool:
    """Return whether value is a function or class with a docstring of its own."""
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or not text.strip():
        return False
    if inspect.isclass(value) or inspect.isroutine(value):
        return True
    return hasattr(value, "nin") and hasattr(value, "nout") and text != type(value).__doc__  # a ufunc


def main() -> None:
    """Write the documented objects of the packages in sys.argv to standard output, as JSON."""
    result = os.dup(1)
    os.dup2(2, 1)  # keeps output of imported modules out of the result
    with os.fdopen(result, "w", encoding="utf-8") as file:
        json.dump([asdict(each) for each in find(sys.argv[1:])], file)


if __name__ == "__main__":
    main()
