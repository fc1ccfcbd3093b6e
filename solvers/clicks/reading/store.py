"""The events of a log on the disk, in parts by their searches, with names as numbers.

A search and all its events are in one part, whatever their order in the files, so that they are joined part by part.
"""

from __future__ import annotations

import shutil
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.core.arrays import Array, Ints, Mask
from ranktune.solvers.core.files.atomic import temporary_folder

IMPRESSION, QUERY, RESULT, CLICK = range(4)
"""Numbers of kinds: an impression, a query, a result of a query, a click. Other kinds follow."""
NONE = -1
"""The number of no name, and of no position. A query known by the id of its search is NONE - 1 - number."""
NO_TIME = np.iinfo(np.int64).min
LATEST = np.iinfo(np.int64).max

ROW = {
    "search": "u8",
    "session": "i4",
    "query": "i4",
    "document": "i4",
    "position": "i4",
    "time": "i8",
    "kind": "i4",
    "source": "i4",
    "click": "f8",
    "propensity": "f8",
}
"""An event: the hash of its search, numbers of names, the position as logged, milliseconds (NO_TIME without), the kind,
the number of the application, the weight of what the row itself says, and the propensity (nan without)."""


def mixed(*columns: Array) -> Array:
    """Return 64 bits that stand for the values of columns in each row, (n,): rows that are equal have equal ones."""
    bits = np.ones(len(columns[0]), np.uint64)
    for column in columns:
        wide = column if column.dtype.itemsize == 8 else column.astype(np.int64)
        bits = (bits + wide.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
    return bits


def first_of(*columns: Array) -> Mask:
    """Return which rows are the first of those that are equal in all columns, (n,)."""
    first = np.zeros(len(columns[0]), dtype=bool)
    first[np.unique(mixed(*columns), return_index=True)[1]] = True
    return first


def coded(column: pa.StringArray) -> tuple[Ints, list[str]]:
    """Return the different texts of a column, and the place of each row's among them, (n,), -1 where it is null."""
    encoded = column.dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


@dataclass
class Names:
    """Names with their numbers, which are their places, in the order in which they were met."""

    names: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Return the number of a name, which is added if it is new."""
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def numbered(self, column: pa.StringArray) -> Ints:
        """Return the numbers of a column of text, (n,), NONE where it is null."""
        place, names = coded(column)
        return np.array([*map(self.number, names), NONE])[place]

    def anonymous(self, count: int) -> Ints:
        """Return new numbers, (count,), whose names are empty."""
        first = len(self.names)
        self.names.extend([""] * count)
        return np.arange(first, first + count)


@dataclass
class Sessions:
    """What is known of each session once all is read: impressions, clicks, and the time of its first event."""

    shown: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    clicked: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    first: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, rows: Array, clicked: Mask, count: int) -> None:
        """Count rows; clicked says which are a click, or an impression with one; count is the number of sessions."""
        if count > len(self.shown):
            room = count - len(self.shown) + len(self.shown) // 2
            self.shown, self.clicked = (np.pad(values, (0, room)) for values in (self.shown, self.clicked))
            self.first = np.pad(self.first, (0, room), constant_values=LATEST)
        event = rows["kind"] != QUERY
        rows, session = rows[event], rows["session"][event]
        np.add.at(self.shown, session, rows["kind"] == IMPRESSION)
        np.add.at(self.clicked, session, clicked[event])
        np.minimum.at(self.first, session, np.where(rows["time"] == NO_TIME, LATEST, rows["time"]))


@dataclass
class Store:
    """All of a log that was read: its rows in files by parts, the names, and what is known once all is read.

    further: other columns, those of numbers and the keys of texts, which have the numbers of their values.
    """

    parts: int
    further: tuple[str, ...] = ()
    texts: dict[str, Names] = field(default_factory=dict)
    account: ReadingAccount = field(default_factory=ReadingAccount)
    queries: Names = field(default_factory=Names)
    documents: Names = field(default_factory=Names)
    session_names: Names = field(default_factory=Names)
    kinds: Names = field(default_factory=Names)
    sources: Names = field(default_factory=Names)
    sessions: Sessions = field(default_factory=Sessions)
    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    starts: dict[int, Counter[int]] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    has_clock: bool = False
    has_propensity: bool = False
    results: int = 0
    folder: Path = field(default_factory=temporary_folder)

    def __post_init__(self) -> None:
        """Give the kinds of all logs their numbers, and the files the life of the store."""
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        for kind in ("impression", "query", "a result of a query", "click"):
            self.kinds.number(kind)

    def rows(self, count: int) -> Array:
        """Return rows of no values, (count,), with numbers of further columns, (count, n_further)."""
        return np.empty(count, dtype=[*ROW.items(), ("further", "f8", (len(self.further),))])

    def add(self, rows: Array) -> None:
        """Append rows to their parts, in their order."""
        part = rows["search"] % self.parts
        rows = rows[np.argsort(part, kind="stable")]
        ends = np.cumsum(np.bincount(part.astype(np.int64), minlength=self.parts))
        for number, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            if end > start:
                with open(self._path(number), "ab") as file:
                    file.write(rows[start:end].tobytes())

    def read(self) -> Iterator[Array]:
        """Yield the rows of each part that has some, in the order in which they were added."""
        for number in range(self.parts):
            if self._path(number).exists():
                yield np.fromfile(self._path(number), dtype=self.rows(0).dtype)

    def _path(self, number: int) -> Path:
        return self.folder / str(number)
