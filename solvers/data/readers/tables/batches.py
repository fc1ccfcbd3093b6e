"""A table whose columns are read in batches, and the faults of reading any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import MISSING, number_of, repeated
from ranktune.solvers.data.columns.roles import HEADLESS

ROWS = 1 << 16
"""Rows that are read at a time."""


class BatchSource(Protocol):
    """What a table is read from."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; fields of structures have names with dots, such as a.b."""

    def batches(self, names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
        """Yield columns in batches of about so many rows, as text where that is wanted."""


@dataclass(frozen=True)
class Fixed:
    """A source whose types are certain."""

    schema: pa.Schema
    read: Callable[[Sequence[str], int, bool], Iterator[pa.RecordBatch]]
    n_rows: int | None = None

    def batches(self, names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
        """Yield columns in batches."""
        return self.read(names, rows, text)


class WiderType(Exception):
    """A value does not fit the type of its column, which is a wider one now: the batches are to be read anew."""


@dataclass(frozen=True)
class OpenTable:
    """A table whose columns are read as they are needed.

    name     the path, for messages; "the frame" without one
    source   what it is read from
    roles    role -> the columns of it, the likeliest first
    """

    name: str
    source: BatchSource
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; fields of structures have names with dots, such as a.b."""
        return self.source.schema

    @property
    def n_rows(self) -> int | None:
        """The number of rows, None where the file must be read to know it."""
        return getattr(self.source, "n_rows", None)

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return list(self.schema.names)

    def batches(
        self, names: Sequence[str] | None = None, *, rows: int = ROWS, text: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns in batches of about so many rows; text: numbers, dates and truth values as they are written.

        A word for a missing value is null. Raises DataError for a row that lacks a cell, and a file that is damaged.
        """
        with reading(self.name):
            yield from self.source.batches(self.names if names is None else list(names), rows, text)

    def read(self, names: Sequence[str] | None = None, *, text: bool = False) -> pa.Table:
        """Return columns as a whole."""
        try:
            parts = list(self.batches(names, text=text))
        except WiderType:
            return self.read(names, text=text)
        if parts:
            return pa.Table.from_batches(parts)
        wanted = self.names if names is None else list(names)
        return pa.schema([self.schema.field(name) for name in wanted]).empty_table()


def as_text(array: pa.Array) -> pa.Array:
    """Return values as text, as Arrow writes them, null for a word for a missing one; lists stay as they are."""
    if pa.types.is_nested(array.type):
        return array
    try:
        text = array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # such as bytes that are not UTF-8
        return pa.nulls(len(array), pa.string())
    return pc.if_else(pc.is_in(text, pa.array(MISSING)), None, text)


def check_titles(table: str, titles: Sequence[str]) -> None:
    """Raise DataError where two columns have the same name."""
    twice = repeated(titles)
    if twice is not None:
        headless = "" if number_of(twice) is None else HEADLESS
        raise DataError(f"{table}: has several columns called {twice!r}. Rename or remove one of them.{headless}")


@contextmanager
def reading(table: str) -> Iterator[None]:
    """Raise DataError for what Arrow, or the system, raises in the block."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).partition("\n")[0].strip()
        utf = "utf-8" in first.lower() or "utf8" in first.lower()
        remedy = "Save it as UTF-8." if utf else "Is it damaged or cut off? Fetch it again."
        raise DataError(f"{table}: cannot be read ({first}). {remedy}") from error
