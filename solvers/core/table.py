"""Tables of named entries: solvers, losses, metrics, formats, readers, plans, samplers, views.

What a table holds is listed, completed, looked up, documented and tested from it, so that adding an entry takes one
line.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import ParameterError, RankTuneError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

FOLDERS: list[str] = []
"""Where else modules are that a user or a study names: Python looks there from the first of them on, never before."""
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class TableEntry(Generic[T]):
    """What a table knows of a thing before it is imported.

    place    its module, below the package of the table; after a colon its name in the module, where it differs
    help     what it is, in a line; else the first line of its docstring
    library  the optional library that it needs, a name of `libraries.INSTALL`
    """

    place: str
    help: str = ""
    library: str | None = None


class NamedTable(MutableMapping[str, T]):
    """Things of one kind by name, in their order; one of another module is imported when it is first looked up.

    kind     what the things are called in messages: "solver"
    rows     name -> the thing, or the `TableEntry` that says where it is
    package  the package of the places of entries
    group    the entry-point group by which installed packages offer more
    adopt    the place, module:name, of a function(name, object) that returns the thing for an entry point's object
    remedy   the last sentence of the message about an unknown name
    error    the error that is raised for an unknown name

    Iteration leaves out what needs a library that is not installed, and what packages offer until it is looked up;
    `names` has all.
    """

    def __init__(
        self,
        kind: str,
        rows: Mapping[str, T | TableEntry[T]],
        *,
        package: str = "",
        group: str = "",
        adopt: str = "",
        remedy: str = "",
        error: type[RankTuneError] = ParameterError,
    ) -> None:
        self.kind, self.group = kind, group
        self._rows = dict(rows)
        self._package = package
        self._adopt = adopt
        self._remedy = remedy
        self._error = error

    def __getitem__(self, name: str) -> T:
        """Return a thing by its exact name. Raises KeyError where it is unknown or its library is not installed."""
        if not self.is_available(name):
            raise KeyError(name)
        return self.imported(name)

    def __setitem__(self, name: str, value: T | TableEntry[T]) -> None:
        """Add an entry in this process, or replace the entry of that name."""
        self._rows[name] = value

    def __delitem__(self, name: str) -> None:
        """Remove a thing from the table."""
        del self._rows[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names of what can be used here."""
        return (name for name in tuple(self._rows) if self.is_available(name))

    def __len__(self) -> int:
        """Return how many things can be used here."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Return whether a thing of that exact name can be used here. Nothing is imported."""
        return isinstance(name, str) and self.is_available(name)

    def __repr__(self) -> str:
        """Show the names."""
        return f"<{self.kind}s: {', '.join(self._rows)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Every name: those of the table in their order, then those that installed packages offer."""
        return (*self._rows, *(name for name in sorted(offered(self.group)) if name not in self._rows))

    def find(self, name: str) -> T:
        """Return a thing by its name, whatever the case of its letters.

        Raises an error, with the nearest name where there is none, and what to install where its library is missing.
        """
        spelling = self.spelling(name)
        if spelling is None:
            raise self._error(f"there is no {self.kind} '{name[:40]}'. {self.hint(name)}")
        if spelling not in self:
            raise self._error(f"{spelling}: {self.why_not(spelling)}.")
        return self[spelling]

    def hint(self, name: str, *more: str) -> str:
        """Return the end of a message about an unknown name: the nearest name, all names with more, and what to do."""
        return f"{nearest(name[:40], (*self, *more))} {self._remedy}".rstrip()

    def spelling(self, name: str) -> str | None:
        """Return the name as the table has it, whatever the case of its letters, or None where it is unknown.

        What an installed package offers is imported and added. Raises ParameterError where that fails.
        """
        if name in self._rows:
            return name
        wanted = _plain(name)
        spelling = next((spelling for spelling in self._rows if _plain(spelling) == wanted), None)
        point = None
        if spelling is None:
            point = next((point for offer, point in offered(self.group).items() if _plain(offer) == wanted), None)
        if point is None:
            return spelling
        value = _loaded(point)
        thing = named(self._adopt)(point.name, value) if self._adopt else value
        spelling = getattr(thing, "name", point.name)  # some kinds normalise the name
        self[spelling] = thing
        return spelling

    def entry(self, name: str) -> T | TableEntry[T]:
        """Return the row of a name: the thing, or the entry that says where it is."""
        return self._rows[name]

    def imported(self, name: str) -> T:
        """Return a thing by its exact name, whether or not its library is installed."""
        row = self._rows[name]
        if not isinstance(row, TableEntry):
            return row
        module, _, attribute = row.place.partition(":")
        return cast(T, getattr(import_module(f"{self._package}.{module}".lstrip(".")), attribute or name))

    def help(self, name: str) -> str:
        """Return in a line what a thing is: as its entry or the thing itself says it, else its docstring."""
        row = self._rows[name]
        text = row.help if isinstance(row, TableEntry) else getattr(row, "help", "")
        return text or (inspect.getdoc(self.imported(name)) or "").partition("\n")[0]

    def is_available(self, name: str) -> bool:
        """Return whether a thing is in the table and its library is installed. Nothing is imported."""
        library = self.library(name)
        return name in self._rows and (library is None or libraries.is_installed(library))

    def why_not(self, name: str) -> str | None:
        """Return why the library of a thing cannot be loaded and what to install, or None if nothing is missing."""
        library = self.library(name)
        return None if library is None else libraries.why_not(library)

    def library(self, name: str) -> str | None:
        """Return the optional library that a thing needs, or None."""
        row = self._rows.get(name)
        return row.library if isinstance(row, TableEntry) else None

    def completions(self, *more: str) -> Callable[[str], list[str]]:
        """Return the function by which a shell completes a name, or one of `more`."""

        def complete(incomplete: str) -> list[str]:
            return [name for name in (*more, *self._rows) if name.startswith(incomplete)]

        return complete


@lru_cache
def offered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, none of no group. Nothing is imported."""
    from importlib.metadata import entry_points  # reads the folder of every package

    return {point.name: point for point in entry_points(group=group)} if group else {}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _loaded(point: EntryPoint) -> Any:
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
    """Return the object at an import path, module:Name. Raises ParameterError where it cannot be imported."""
    module, _, name = path.partition(":")
    if module not in sys.modules and not module.startswith("ranktune."):
        sys.path += FOLDERS
        FOLDERS.clear()
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except Exception as error:  # importing a module runs anything
        raise ParameterError(
            f"'{path}' cannot be imported ({type(error).__name__}: {error}). Give module:Name of a module that Python "
            "finds here, such as one in the current folder or in PYTHONPATH."
        ) from None


def path_of(value: Any) -> str:
    """Return the import path of a class or function, empty where another process cannot import it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    path = f"{module}:{name}"
    if module in (None, "__main__") or not is_path(path):
        return ""
    try:
        return path if named(path) == value else ""  # a method is another object each time
    except ParameterError:
        return ""
