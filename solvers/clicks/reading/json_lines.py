"""JSON lines as frames, block by block."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import polars

from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.data.columns.grammar import json_of
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks

Record: TypeAlias = Mapping[str, object]

BLOCK = 2 << 20
"""Bytes of a text file that are read at a time."""
_ACTIONS = {"index", "create", "update", "delete"}


class JsonLines:
    """The frames of one file.

    wanted   names of columns in small letters; those of inner objects have dots
    account  counts the lines
    """

    def __init__(self, wanted: Collection[str], account: Account) -> None:
        self.wanted, self.account = wanted, account
        self.above = {name[:end] for name in wanted for end, sign in enumerate(name) if sign == "."}

    def frames(self, path: Path) -> Iterator[polars.DataFrame]:
        """Yield the columns that are wanted, as text or lists of text, of each block that has some rows."""
        for block in line_blocks(Position(path), size=BLOCK):
            records = list(self._objects(block.tobytes()))
            rows = [row for record in records if (row := _row(record)) is not None]
            self.account.other["actions of a bulk request"] += len(records) - len(rows)
            if rows:
                yield polars.DataFrame(dict(self._columns(rows, "")) or {"": [None] * len(rows)})

    def _objects(self, block: bytes) -> Iterator[Record]:
        """Yield the objects in the lines of a block."""
        try:
            lines: Sequence[str | bytes] = block.decode().split("\n")
        except UnicodeDecodeError:  # the lines that are at fault are counted one by one
            lines = block.split(b"\n")
        for line in lines[:-1]:
            self.account.lines += 1
            try:
                record = json_of(line)
                if "\\ud" in str(line).lower():  # half of a character cannot be written
                    json.dumps(record, ensure_ascii=False).encode()
            except (ValueError, RecursionError):
                record = None
            if not line.strip():
                self.account.other["empty lines"] += 1
            elif not isinstance(record, dict):
                self.account.left_out["no JSON object"] += 1
            else:
                yield record

    def _columns(self, records: Sequence[Record], prefix: str) -> Iterator[tuple[str, polars.Series]]:
        """Yield the columns that are wanted, those of inner objects by names with dots."""
        for name in dict.fromkeys(name for names in {tuple(record) for record in records} for name in names):
            path = f"{prefix}{name}"
            values = [record.get(name) for record in records]
            if path.lower() in self.above and any(isinstance(value, dict) for value in values):
                inner = [value if isinstance(value, dict) else {} for value in values]
                yield from self._columns(inner, f"{path}.")
            if path.lower() in self.wanted:
                yield path, _series(values)


def _row(record: Record) -> Record | None:
    """Return the event or the query that an object is, None for an action of a bulk request."""
    if len(record) == 1 and _ACTIONS.issuperset(record):
        return None
    source = record.get("_source")
    return source if isinstance(source, dict) else record


def _series(values: Sequence[object]) -> polars.Series:
    """Return values as text, or as lists of text where all are lists; objects, and lists among text, are null."""
    kinds = {*map(type, values)} - {type(None)}
    if kinds == {list}:
        lists = [[str(item) for item in value] if isinstance(value, list) else None for value in values]
        return polars.Series(lists, dtype=polars.List(polars.String))
    texts = [value if value is None or isinstance(value, str) else _text(value) for value in values]
    return polars.Series(texts, dtype=polars.String)


def _text(value: object) -> str | None:
    return None if isinstance(value, dict | list) else str(value)
