"""JSON lines as frames: blocks by Arrow where it is sure to find what decoding line by line does, which is slow.

Arrow refuses a key that an object has twice, as our grammar does. Where it refuses a block, or where its types could
hide what was written, the block is decoded line by line, and the types of the next blocks are those found there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars

from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.core.arrays import Mask
from ranktune.solvers.data.columns.grammar import json_of
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks

if TYPE_CHECKING:
    import pyarrow

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
        self.schema: pyarrow.Schema | None = None  # the types of keys in the blocks before, without those of no value

    def frames(self, path: Path) -> Iterator[polars.DataFrame]:
        """Yield the columns that are wanted, as text or lists of text, of each block that has some rows."""
        import pyarrow

        for block in line_blocks(Position(path), size=BLOCK):
            text = block.tobytes()
            try:
                frame = self._by_arrow(text)
            except (ValueError, pyarrow.ArrowException):
                frame = self._by_line(text)
            if frame.height:
                yield frame

    def _by_arrow(self, block: bytes) -> polars.DataFrame:
        """Return what `_by_line` returns. Raises ValueError or ArrowException where that is not sure."""
        import pyarrow
        from pyarrow import json as arrow

        lines = block.count(b"\n")
        # objects begin and end with lines: "}" and "{" meet within no object, so that none has several lines
        ends = block.startswith(b"{") and block.endswith(b"}\n") and block.count(b"}\n{") == lines - 1
        if self.schema is None or not ends:
            raise ValueError("nothing is known of the block")
        block.decode()
        reading = arrow.ReadOptions(use_threads=False, block_size=len(block))
        parsing = arrow.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="infer")
        table = arrow.read_json(pyarrow.BufferReader(block), reading, parsing)
        objects = {field.name for field in table.schema if pyarrow.types.is_struct(field.type)}
        if table.num_rows != lines or "_source" in objects or any(name.lower() in self.wanted for name in objects):
            raise ValueError("a line holds several objects, or one where text is wanted")
        given = {name: table[name].is_valid().to_numpy() for name in table.column_names}
        no_event = np.any([given[name] for name in _ACTIONS & given.keys()], axis=0) & (sum(given.values()) == 1)
        columns = dict(self._of_table(_flat(table), no_event, block))
        self.account.lines += lines
        self.account.other["actions of a bulk request"] += int(np.sum(no_event))
        return _frame(columns, lines - int(np.sum(no_event)))

    def _of_table(self, table: pyarrow.Table, left_out: Mask, block: bytes) -> Iterator[tuple[str, polars.Series]]:
        """Yield the columns that are wanted. Raises ValueError where their text or their being there is not sure."""
        assert self.schema is not None
        known = {*_flat(self.schema.empty_table()).column_names}
        numbers = [number for number, name in enumerate(table.column_names) if name.lower() in self.wanted]
        if len({table.column_names[number] for number in numbers}) < len(numbers):
            raise ValueError("a key has a dot")
        wanted = table.select(numbers)
        for column in polars.DataFrame(wanted).filter(~left_out):
            if column.name not in known:  # no value was seen of it
                if column.dtype != polars.Null:
                    raise ValueError(f"{column.name} is new")
            elif column.null_count() == len(column):
                if b'"%s"' % column.name.rpartition(".")[2].encode() in block:
                    raise ValueError(f"{column.name} may be there")
                continue
            yield column.name, _texts(column, block)

    def _by_line(self, block: bytes) -> polars.DataFrame:
        records = list(self._objects(block))
        self._learn(records)
        rows = [row for record in records if (row := _row(record)) is not None]
        self.account.other["actions of a bulk request"] += len(records) - len(rows)
        return _frame(dict(self._columns(rows, "")), len(rows))

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

    def _learn(self, records: Sequence[Record]) -> None:
        """Add the types of records to those that are known, or replace them where they differ."""
        import pyarrow

        try:
            new = pyarrow.schema(list(_with_values(pyarrow.infer_type(records))))
        except (pyarrow.ArrowException, OverflowError, UnicodeError):
            self.schema = None
            return
        try:
            self.schema = pyarrow.unify_schemas([self.schema or new, new])
        except pyarrow.ArrowException:
            self.schema = new

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


def _frame(columns: dict[str, polars.Series], height: int) -> polars.DataFrame:
    return polars.DataFrame(columns) if columns else polars.DataFrame({"": [None] * height})


def _flat(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table whose columns are those in its columns of objects, by names with dots."""
    import pyarrow

    while any(isinstance(kind, pyarrow.StructType) for kind in table.schema.types):
        table = table.flatten()
    return table


def _with_values(kind: pyarrow.DataType) -> Iterator[pyarrow.Field]:
    """Yield the fields of a type of objects without those that have no values."""
    import pyarrow

    for field in kind:
        if pyarrow.types.is_struct(field.type):
            yield field.with_type(pyarrow.struct(list(_with_values(field.type))))
        elif not pyarrow.types.is_null(field.type):
            yield field


def _texts(column: polars.Series, block: bytes) -> polars.Series:
    """Return a column that Arrow made as text. Raises ValueError where 1 and 1.0 could have become the same."""
    kind = column.dtype
    if kind == polars.String:
        return column
    if kind in (polars.Int64, polars.Null):
        return column.cast(polars.String)
    whole = rb'"%s"\s*:\s*-?\d+\s*[,}]' % re.escape(column.name.rpartition(".")[2].encode())
    flat = kind == polars.Boolean or (kind == polars.Float64 and column.name.isascii() and not re.search(whole, block))
    if flat or kind in (polars.List(polars.String), polars.List(polars.Int64)):
        return _series(column.to_list())
    raise ValueError(f"{column.name} holds values of several types")


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
