"""Finished trials straight from a record's file, without ever writing to it.

The record has Optuna's SQLite schema. Optuna's own storage opens it for writing and builds an object for every row,
which takes seconds at 10,000 trials; a page looks often while the study needs the processor. A record only ever
grows, so what was read before is kept, and only what is new is read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from optuna.distributions import BaseDistribution, json_to_distribution

from ranktune.solvers.core.errors import StudyError


@dataclass(frozen=True)
class Finished:
    """A trial as it was written: params by flat name, value None where it failed, begun and ended since 1970.

    The value of one that was stopped is an estimate.
    """

    params: Mapping[str, Any]
    value: float | None
    user_attrs: Mapping[str, Any]
    begun: float | None
    ended: float | None


class Reader(Protocol):
    """The finished trials of a record."""

    def trials(self) -> list[Finished]:
        """Return every finished trial in the order of finishing."""
        ...


@dataclass
class RecordReader:
    """The trials of one record.db, read as they come."""

    path: Path
    _known: list[Finished] = field(default_factory=list)
    _last: int = 0
    _file: tuple[int, int] | None = None

    def trials(self) -> list[Finished]:
        """Return every finished trial in the order of finishing; none while there is no record.

        Raises StudyError where the file is no record.
        """
        try:
            stat = self.path.stat()
        except OSError:
            self._known, self._last, self._file = [], 0, None
            return []
        if self._file != (stat.st_dev, stat.st_ino):  # another study of that name
            self._known, self._last, self._file = [], 0, (stat.st_dev, stat.st_ino)
        try:
            with closing(_connected(self.path)) as connection:
                self._read_new(connection)
        except (sqlite3.Error, ValueError, KeyError) as error:
            raise StudyError(f"cannot read the record {self.path}: {error}.") from None
        return list(self._known)

    def _read_new(self, connection: sqlite3.Connection) -> None:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
            return  # just being made
        connection.execute("BEGIN")  # one moment of the record, however many tables
        found, self._last = finished_since(lambda query: connection.execute(query, (self._last,)), self._last)
        self._known += found


def finished_since(
    run: Callable[[str], Iterable[Sequence[Any]]], last: int, since: str = "trial_id > ?"
) -> tuple[list[Finished], int]:
    """Return the trials after the id last, and the id of the last of them.

    since is which trials those are, in SQL; run returns the rows of a query.
    """
    params: dict[int, dict[str, Any]] = {}
    for trial, name, value, distribution in run(_PARAMS.format(since)):
        params.setdefault(trial, {})[name] = _distribution(distribution).to_external_repr(value)
    attrs: dict[int, dict[str, Any]] = {}
    for trial, name, text in run(_ATTRS.format(since)):
        attrs.setdefault(trial, {})[name] = json.loads(text)
    found = []
    for trial, state, begun, ended, value in run(_TRIALS.format(since)):
        if state not in ("COMPLETE", "PRUNED", "FAIL"):
            break  # not ours: whatever follows is read when this one has ended
        told = None if state == "FAIL" else value
        found.append(Finished(params.get(trial, {}), told, attrs.get(trial, {}), _seconds(begun), _seconds(ended)))
        last = trial
    return found, last


_PARAMS = "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params WHERE {}"
_ATTRS = "SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {}"
_TRIALS = (
    "SELECT trial_id, state, datetime_start, datetime_complete, "
    "(SELECT v.value FROM trial_values v WHERE v.trial_id = trials.trial_id) "
    "FROM trials WHERE {} ORDER BY trial_id"
)


def read_record(path: Path) -> list[Finished]:
    """Return the finished trials of a record.db."""
    return RecordReader(path).trials()


def changes(files: Iterator[Path]) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what tells that files have changed: when, how long, which."""
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            stat = file.stat()
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)


def _connected(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write; a record that nobody has open is read as a file that does not change."""
    open_elsewhere = Path(f"{path}-wal").exists()
    mode = "mode=ro" if open_elsewhere else "mode=ro&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?{mode}", uri=True, timeout=5, isolation_level=None)


@lru_cache(maxsize=4096)
def _distribution(text: str) -> BaseDistribution:
    found: BaseDistribution = json_to_distribution(text)
    return found


def _seconds(moment: str | datetime | None) -> float | None:
    """Return the seconds since 1970 of a moment as Optuna keeps it: in UTC, and without saying so."""
    if moment is None:
        return None
    known = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return known.replace(tzinfo=UTC).timestamp()
