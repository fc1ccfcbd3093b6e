"""Resolution of names to documented objects: in a See Also section, in a sentence, or in a command."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ranktune.solvers.core.errors import DataError, listed
from ranktune.solvers.data.api_search.documentation import Documented

_NICKNAMES = {"np": "numpy", "sp": "scipy", "skl": "sklearn"}
_SHOWN = 8


def last_part(name: str) -> str:
    """Return the part of a dotted name after its last dot."""
    return name.rpartition(".")[2]


@dataclass(frozen=True)
class PublicNames:
    """Names of the documented objects, and the object's number for every public name, aliases included."""

    names: tuple[str, ...]
    number: dict[str, int]
    by_last_part: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Sequence[str], aliases: Sequence[tuple[str, int]]) -> Self:
        """Return the index of names and aliases; a name takes precedence over an equal alias."""
        number = {alias: at for alias, at in reversed(aliases)} | {name: at for at, name in enumerate(names)}
        last: dict[str, list[str]] = {}
        for name in names:
            last.setdefault(last_part(name), []).append(name)
        return cls(tuple(names), number, {part: tuple(sorted(full)) for part, full in last.items()})

    @classmethod
    def of_documents(cls, documents: Sequence[Documented]) -> Self:
        """Return the index of documents."""
        aliases = [(alias, at) for at, each in enumerate(documents) for alias in each.aliases]
        return cls.of([each.name for each in documents], aliases)

    def exactly(self, name: str) -> int | None:
        """Return the number of the object with this public name, or None; np.argsort is numpy.argsort."""
        first, dot, rest = name.partition(".")
        return self.number.get(f"{_NICKNAMES[first]}.{rest}" if dot and first in _NICKNAMES else name)

    def resolve(self, document: Documented, name: str) -> int | None:
        """Return the number of the object to which name refers in document, or None.

        A relative name is looked up in the modules of document's own names, then in their parents; what
        is not found there is looked up in the whole package, and must be the only object of that name.
        """
        found = self.exactly(name)
        if found is not None:
            return found
        for start in (document.name, *document.aliases, f"{document.home}."):
            module = start.rpartition(".")[0]
            while module:
                found = self.number.get(f"{module}.{name}")
                if found is not None:
                    return found
                module = module.rpartition(".")[0]
        package = document.name.partition(".")[0] + "."
        anywhere = [full for full in self.by_last_part.get(name, ()) if full.startswith(package)]
        return self.number[anywhere[0]] if len(anywhere) == 1 else None

    def find(self, name: str) -> int:
        """Return the number of the object called name, a public name or the end of one.

        Raises DataError, with names to choose from, where no object or several have that name.
        """
        name = name.strip().removesuffix("()")
        found = self.exactly(name)
        if found is not None:
            return found
        matches = self._ending_with(name)
        if len(matches) > 1:
            raise DataError(f"'{name}' is the end of several names: {listed(matches, _SHOWN)}. Write one in full.")
        if not matches:
            raise DataError(f"nothing documented is called '{name}'. {self._nearest(name)}")
        return self.number[matches[0]]

    def _ending_with(self, name: str) -> list[str]:
        """Return the names of objects with a public name that ends with name, ignoring letter case if there is none."""
        if not name:
            return []
        for fold in (str, str.lower):
            ending = "." + fold(name)
            matches = {self.names[at] for known, at in self.number.items() if fold(known).endswith(ending)}
            if matches:
                return sorted(matches, key=lambda full: (full.count("."), full))
        return []

    def _nearest(self, name: str) -> str:
        wanted = last_part(name).lower()
        lower = sorted({part.lower() for part in self.by_last_part})
        parts = set(difflib.get_close_matches(wanted, lower, n=3, cutoff=0.6))
        near = sorted(full for part, names in self.by_last_part.items() if part.lower() in parts for full in names)
        near.sort(key=lambda full: -difflib.SequenceMatcher(None, name.lower(), full.lower()).ratio())
        if near:
            return f"Nearest: {', '.join(near[:_SHOWN])}."
        packages = sorted({full.partition(".")[0] for full in self.names})
        return f"Known are the public functions and classes of {', '.join(packages)}, such as {self.names[0]}."
