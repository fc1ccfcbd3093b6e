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
import polars

from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.core.arrays import Array, Ints
from ranktune.solvers.core.files import temporary_folder

IMPRESSION, QUERY, RESULT, CLICK = range(4)
"""Numbers of kinds: an impression, a query, a result of a query, a click. Other kinds follow."""
NONE = -1
"""The number of no name, and of no position. A query known by the id of its search is NONE - 1 - number."""
NO_TIME = np.iinfo(np.int64).min
LATEST = np.iinfo(np.int64).max

ROW = {
    "search": polars.UInt64,
    "session": polars.Int32,
    "query": polars.Int32,
    "document": polars.Int32,
    "position": polars.Int32,
    "time": polars.Int64,
    "kind": polars.Int16,
    "source": polars.Int16,
    "click": polars.Float64,
    "propensity": polars.Float64,
}
"""An event: the hash of its search, numbers of names, the position as logged, milliseconds (NO_TIME without), the kind,
the number of the application, the weight of what the row itself says, and the propensity (nan without)."""

FURTHER = "further "
"""Begins the name of a further column, so that it cannot have that of another one."""


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

    def numbered(self, column: polars.Series) -> polars.Series:
        """Return the numbers of a column of text, (n,), NONE where it is null."""
        names = column.drop_nulls().unique(maintain_order=True)
        numbers = polars.Series([self.number(name) for name in names], dtype=polars.Int32)
        return column.replace_strict(names, numbers, default=NONE, return_dtype=polars.Int32)

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

    def add(self, rows: polars.DataFrame, clicked: polars.Series, count: int) -> None:
        """Count rows; clicked says which are a click, or an impression with one; count is the number of sessions."""
        time = polars.when(polars.col("time") != NO_TIME).then("time").min().fill_null(LATEST)
        shown = polars.col("kind").eq(IMPRESSION).sum().cast(polars.Int64)
        sums = (
            rows.filter(polars.col("kind") != QUERY)
            .with_columns(clicked.filter(rows["kind"] != QUERY).alias("clicked"))
            .group_by("session")
            .agg(shown.alias("shown"), polars.col("clicked").sum().cast(polars.Int64), time.alias("time"))
        )
        where = sums["session"].to_numpy()
        if count > len(self.shown):
            room = count - len(self.shown) + len(self.shown) // 2
            self.shown, self.clicked = (np.pad(values, (0, room)) for values in (self.shown, self.clicked))
            self.first = np.pad(self.first, (0, room), constant_values=LATEST)
        self.shown[where] += sums["shown"].to_numpy()
        self.clicked[where] += sums["clicked"].to_numpy()
        self.first[where] = np.minimum(self.first[where], sums["time"].to_numpy())


@dataclass
class Store:
    """All of a log that was read: its rows in files by parts, the names, and what is known once all is read.

    further: other columns, those of numbers and the keys of texts, which have the numbers of their values.
    """

    parts: int
    further: tuple[str, ...] = ()
    texts: dict[str, Names] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
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

    @property
    def row(self) -> dict[str, type[polars.DataType]]:
        """The columns of an event, with further ones."""
        return {**ROW, **{FURTHER + name: polars.Float64 for name in self.further}}

    @property
    def _bytes(self) -> np.dtype[np.void]:
        return np.dtype([(name, polars.Series(dtype=kind).to_numpy().dtype) for name, kind in self.row.items()])

    def add(self, rows: polars.DataFrame) -> None:
        """Append rows to their parts, in their order."""
        part = (rows["search"] % self.parts).to_numpy()
        order = np.argsort(part, kind="stable")
        packed = np.empty(rows.height, dtype=self._bytes)
        for name in self.row:
            packed[name] = rows[name].to_numpy()[order]
        ends = np.searchsorted(part[order], np.arange(self.parts + 1))
        for number, (start, end) in enumerate(pairwise(ends.tolist())):
            if end > start:
                with open(self._path(number), "ab") as file:
                    file.write(packed[start:end].tobytes())

    def read(self) -> Iterator[polars.DataFrame]:
        """Yield the rows of each part that has some, in the order in which they were added."""
        for number in range(self.parts):
            if self._path(number).exists():
                packed: Array = np.fromfile(self._path(number), dtype=self._bytes)
                yield polars.DataFrame({name: np.ascontiguousarray(packed[name]) for name in self.row})

    def _path(self, number: int) -> Path:
        return self.folder / str(number)
