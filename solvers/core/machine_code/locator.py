"""Where numba keeps the machine code of a kernel, and of which sources it is.

Numba's own locators stamp a kernel with its own file and its place on the disk. This one stamps it with the content of
all files that it is compiled from, wherever they are, so that code that was compiled elsewhere is found, and code of
other sources is not. Numba calls it by the name in its setting CACHE_LOCATOR_CLASSES.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from numba.core.caching import UserProvidedCacheLocator

from ranktune.solvers.core.compiled import files_of
from ranktune.solvers.core.machine_code.folders import folder_of


class KernelLocator(UserProvidedCacheLocator):
    """The place and the stamp of a kernel."""

    def __init__(self, function: FunctionType, file: str) -> None:
        cast(Any, super()).__init__(function, file)
        self.stamp = _stamp(files_of(function))
        self.folder = folder_of(f"{function.__module__}-{self.stamp[:16]}")

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> KernelLocator:
        """Return the locator of a function in a file."""
        return cls(function, file)

    def get_cache_path(self) -> str:
        """Return the folder of the machine code: that of its module with these sources."""
        return str(self.folder)

    def ensure_cache_path(self) -> None:
        """Make the folder, for the user alone; what cannot be written in it is left out."""
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)

    def get_source_stamp(self) -> str:
        """Return the digest of the sources."""
        return self.stamp


@cache
def _stamp(files: frozenset[str]) -> str:
    content = [hashlib.sha256(Path(name).read_bytes()).digest() for name in files]
    return hashlib.sha256(b"".join(sorted(content))).hexdigest()
