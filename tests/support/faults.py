"""Faults on purpose: the k-th operation on files or the database fails, as on a full or broken disk.

with Faults(at=k, folder=folder) as faults: ...
faults.what then names the operation that failed, None where there were fewer than k.
"""

import builtins
import errno
import io
import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

from sqlalchemy.engine.default import DefaultDialect

_SQLITE = {errno.ENOSPC: "database or disk is full", errno.EIO: "disk I/O error"}
_FILES = ("open", "write", "fsync", "replace", "rename", "mkdir")
_SQL = ("do_execute", "do_executemany", "do_execute_no_params", "do_commit")
ALL = (*_FILES, *_SQL)


class Faults:
    """Within it, operation number at (from 1) fails, and all after it where the fault lasts.

    Counted are: opening files to write, writing, fsync, replace, rename and mkdir below folder, and statements and
    commits of every database. error is ENOSPC or EIO. With answer_lost the operation is done all the same; says is
    what the database then says instead.
    """

    def __init__(
        self,
        at: int,
        folder: Path,
        error: int = errno.ENOSPC,
        *,
        kinds: tuple[str, ...] = ALL,
        lasts: bool = True,
        answer_lost: bool = False,
        says: str | None = None,
    ) -> None:
        self.at, self.folder, self.error, self.kinds = at, os.path.realpath(folder), error, kinds
        self.lasts, self.answer_lost, self.says = lasts, answer_lost, says or _SQLITE[error]
        self.count = 0
        self.what: str | None = None
        self._patches = ExitStack()

    def __enter__(self) -> Self:
        for name in _FILES[2:]:
            self._patch(os, name, self._on_path)
        for name in _SQL:
            self._patch(DefaultDialect, name, self._on_database)
        plain = builtins.open
        for module in (builtins, io):
            self._patches.enter_context(mock.patch.object(module, "open", self._opening(plain)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patches.close()

    def _patch(self, owner: Any, name: str, how: Callable[[str, Any], Any]) -> None:
        if name in self.kinds:
            self._patches.enter_context(mock.patch.object(owner, name, how(name, getattr(owner, name))))

    def _due(self, what: str) -> bool:
        """Count an operation; return whether it is to fail."""
        self.count += 1
        if self.count == self.at:
            self.what = what
        return self.count == self.at or (self.lasts and self.count > self.at)

    def check(self, kind: str, path: Any) -> None:
        """Count an operation on a file; raise OSError where it is to fail."""
        if self._is_below(path) and self._due(f"{kind} {path}"):
            raise OSError(self.error, os.strerror(self.error), str(path))

    def _is_below(self, path: Any) -> bool:
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        return os.path.realpath(os.fsdecode(path)).startswith(self.folder)

    def _on_path(self, name: str, plain: Any) -> Any:
        def called(path: Any, *arguments: Any, **named: Any) -> Any:
            self.check(name, path)
            return plain(path, *arguments, **named)

        return called

    def _on_database(self, name: str, plain: Any) -> Any:
        def called(dialect: Any, *arguments: Any, **named: Any) -> Any:
            statement = arguments[1] if name != "do_commit" else ""
            due = self._due(f"{name} {statement}")
            if due and not self.answer_lost:
                raise sqlite3.OperationalError(self.says)
            result = plain(dialect, *arguments, **named)
            if due:
                raise sqlite3.OperationalError(self.says)
            return result

        return called

    def _opening(self, plain: Any) -> Any:
        def opened(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            writes = any(sign in mode for sign in "wax+") and not isinstance(file, int) and self._is_below(file)
            if writes and "open" in self.kinds:
                self.check("open", file)
            made = plain(file, mode, *arguments, **named)
            return _Writing(made, file, self) if writes and "write" in self.kinds else made

        return opened


class _Writing:
    """A file whose writes are counted, and fail when they are due."""

    def __init__(self, file: Any, path: Any, faults: Faults) -> None:
        self._file, self._path, self._faults = file, path, faults

    def write(self, data: Any) -> Any:
        self._faults.check("write", self._path)
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: Any) -> None:
        self._file.close()
