"""JSON lines as Arrow record batches: a line is an object, whose inner objects give columns of names with dots."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import MISSING, RepeatedName, json_of
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks
from ranktune.solvers.data.readers.tables.batches import Fixed, OpenTable

Record: TypeAlias = Mapping[str, object]
Skip: TypeAlias = Callable[[str, DataError | None], None]

BLOCK = 2 << 20
"""Bytes of a file that are read at a time."""
_ACTIONS = {"index", "create", "update", "delete"}


def open_json_lines(path: Path) -> OpenTable:
    """Return a file of JSON lines as a table, with the columns of all lines, without actions of bulk requests."""
    found = dict[str, set[type]]()
    for _, record in records(path):
        look(record, "", found)
    types = {name: _type(kinds) for name, kinds in found.items()}

    def batches(names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
        chosen = {name: pa.string() if text and not pa.types.is_list(types[name]) else types[name] for name in names}
        block = list[Record]()
        for _, record in records(path):
            block.append(record)
            if len(block) == rows:
                yield batch_of(block, chosen)
                block = []
        if block:
            yield batch_of(block, chosen)

    return OpenTable(str(path), Fixed(pa.schema(list(types.items())), batches))


def refuse(what: str, fault: DataError | None) -> None:
    """Raise the fault of a line, if it has one."""
    if fault is not None:
        raise fault


def records(path: Path, skip: Skip = refuse) -> Iterator[tuple[int, Record]]:
    """Yield the objects in the lines of a file, each with the number of its line; those of bulk requests unpacked.

    skip is called with what any other line is, and with its fault where it should be an object.
    """
    position = Position(path)
    for block in line_blocks(position, size=BLOCK):
        for line in block.tobytes().split(b"\n")[:-1]:
            position.lines += 1
            if not line.strip():
                skip("empty lines", None)
                continue
            try:
                record = _record(line, path, position.lines)
            except DataError as fault:
                skip("no JSON object", fault)
                continue
            if len(record) == 1 and _ACTIONS.issuperset(record):
                skip("actions of a bulk request", None)
                continue
            source = record.get("_source")
            yield position.lines, source if isinstance(source, dict) else record


def _record(line: bytes, path: Path, number: int) -> Record:
    with json_at(path, number):
        record = json_of(line)
        if b"\\u" in line:
            json.dumps(record, ensure_ascii=False).encode()  # half of a character cannot be written
    if not isinstance(record, dict):
        raise DataError(f"{path}:{number}: holds {line[:40].decode()!r} where an object must be, such as {{...}}.")
    return record


@contextmanager
def json_at(path: Path, line: int) -> Iterator[None]:
    """Raise DataError with the line for what is no JSON in the block."""
    try:
        yield
    except RecursionError:
        raise DataError(f"{path}:{line}: is nested too deeply to be documents.") from None
    except RepeatedName as error:
        raise DataError(f"{path}:{line}: {error}.") from None
    except DataError:
        raise
    except ValueError as error:  # also of a number of thousands of digits
        raise DataError(f"{path}:{line}: is not JSON ({error}). Each line must be one value.") from None


def look(record: Record, prefix: str, found: dict[str, set[type]]) -> None:
    """Add the columns of an object to those found, with the types of their values."""
    for name, value in record.items():
        if isinstance(value, dict) and value:
            look(value, f"{prefix}{name}.", found)
        else:
            found.setdefault(f"{prefix}{name}", set()).add(type(value))


def _type(kinds: set[type]) -> pa.DataType:
    """Return the type of a column whose values have these types: text unless all are numbers, truth values or lists."""
    kinds = kinds - {type(None), dict}
    if not kinds:
        return pa.null()
    if kinds == {list}:
        return pa.list_(pa.string())
    if kinds == {bool}:
        return pa.bool_()
    return pa.float64() if kinds <= {int, float} else pa.string()


def batch_of(records: Sequence[Record], types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Return columns of objects, of these types."""
    arrays = [_array([_value(record, name) for record in records], kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(arrays, list(types))


def _value(record: Record, name: str) -> object:
    """Return the value of a column, whose dots are of its name or lead to inner objects."""
    if name in record:
        return record[name]
    end = name.find(".")
    while end > 0:
        inner = record.get(name[:end])
        if isinstance(inner, dict):
            return _value(inner, name[end + 1 :])
        end = name.find(".", end + 1)
    return None


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        return pa.array([_text(value) for value in values], kind)
    if pa.types.is_list(kind):
        return pa.array([[str(x) for x in value] if isinstance(value, list) else None for value in values], kind)
    return pa.array([None if isinstance(value, dict | list) else value for value in values], kind)


def _text(value: object) -> str | None:
    """Return a value as text, None for an object, a list and a word for a missing value."""
    if isinstance(value, bool):
        return str(value).lower()
    text = None if value is None or isinstance(value, dict | list) else str(value)
    return None if text in MISSING else text
