"""Which documented object a name means: in a See Also section, in a sentence, or typed by a person."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ranktune.solvers.core.errors import DataError
from ranktune.studies.api_search.documentation import Documented

_NICKNAMES = {"np": "numpy", "sp": "scipy", "skl": "sklearn"}
_SHOWN = 8


def last_part(name: str) -> str:
    """Return the part of a dotted name after its last dot."""
    return name.rpartition(".")[2]


@dataclass(frozen=True)
class PublicNames:
    """names of the documented objects, and for every public name, other names included, the object's number."""

    names: tuple[str, ...]
    number: dict[str, int]
    by_last_part: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Sequence[str], aliases: Sequence[tuple[str, int]]) -> Self:
        """Return the index of names and aliases; where a name and an alias agree, the name wins."""
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

    def seen_from(self, document: Documented, name: str) -> int | None:
        """Return the number of the object that document means by name, or None.

        A relative name is looked up in the modules of document's own names, then in the modules around them; what
        is found nowhere there is looked up in the whole package, and counts if it is one object only.
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

    def asked_for(self, name: str) -> int:
        """Return the number of the object that a person means by name: a public name or the end of one.

        Raises DataError where several objects or none are meant, with the names to choose from.
        """
        name = name.strip().removesuffix("()")
        found = self.exactly(name)
        if found is not None:
            return found
        meant = self._ending_with(name)
        if len(meant) > 1:
            listed = ", ".join(meant[:_SHOWN]) + (f" and {len(meant) - _SHOWN} more" if len(meant) > _SHOWN else "")
            raise DataError(f"'{name}' is the end of several names: {listed}. Write one of them in full.")
        if not meant:
            raise DataError(f"nothing documented is called '{name}'. {self._nearest(name)}")
        return self.number[meant[0]]

    def _ending_with(self, name: str) -> list[str]:
        """Return the names of the objects of which a public name ends with name; letter case as the last resort."""
        if not name:
            return []
        for fold in (str, str.lower):
            ending = "." + fold(name)
            meant = {self.names[at] for known, at in self.number.items() if fold(known).endswith(ending)}
            if meant:
                return sorted(meant, key=lambda full: (full.count("."), full))
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
