"""Parts of libraries that others load by the way: they are put off until somebody uses them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

PARTS = ("numpy.f2py", "numpy.testing", "yaml", "mako.exceptions")
"""scipy looks at every name of numpy when it is loaded, numba has a settings file that nobody writes, and what alembic
writes revisions with loads a highlighter of source code: about 90 ms and 8 MB of each process.

Only what no thread of ours ever uses: a part that two threads use first at the same moment may look half made to one.
"""


class PutOff:
    """Finds each of the parts once, so that it is loaded at its first use, and leaves the import system when done."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.waiting = {part for part in parts if part not in sys.modules}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return what Python would find, with a loader that waits; None for anything else, which others then find."""
        if name not in self.waiting:
            return None
        self.waiting.remove(name)
        if not self.waiting:
            sys.meta_path.remove(self)
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found


def put_off() -> None:
    """Put off the parts that are not loaded yet. They work as ever; nothing else is touched."""
    finder = PutOff(PARTS)
    if finder.waiting:
        sys.meta_path.insert(0, finder)
