"""Parquet and Arrow files as open tables, and the choice among the kinds of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.formats import COMPRESSED, READERS, ending, first_line
from ranktune.solvers.data.readers.tables.batches import Fixed, OpenTable, as_text, check_titles, reading

TABLES = ("csv", "parquet", "arrow", "json")
"""The readers of table files."""


def kind_of(path: Path) -> str | None:
    """Return the kind of a table file by its ending, else by its first line; None for a file that is none."""
    suffix = ending(path).lower()
    kind = next((kind for kind in TABLES if suffix in READERS.imported(kind).endings), None)
    return kind or ("json" if path.is_file() and first_line(path).startswith("{") else None)


def open_file(path: Path) -> OpenTable:
    """Return the table in a file. Raises DataError where it is none."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file. Give a csv, Parquet, Arrow or JSON lines file.")
    kind = kind_of(path)
    if kind is None:
        raise DataError(f"{path}: its name does not tell what it is. Give a .csv, .tsv, .parquet or .jsonl file.")
    with reading(str(path)):
        if kind == "csv":
            from ranktune.solvers.data.readers.tables.delimited import open_csv

            return open_csv(path)
        if kind == "json":
            from ranktune.solvers.data.readers.tables.json_lines import open_json_lines

            return open_json_lines(path)
        if path.suffix in COMPRESSED:
            raise DataError(f"{path}: a {kind} file is compressed inside; one packed again is not read. Unpack it.")
        return open_parquet(path) if kind == "parquet" else open_arrow(path)


def open_parquet(path: Path) -> OpenTable:
    """Return a Parquet file as a table. Its pages are compared with their checksums."""
    with parquet.ParquetFile(path) as file:
        whole, n_rows = file.schema_arrow, file.metadata.num_rows
    check_titles(str(path), whole.names)
    fields = dict(_leaves(whole))

    def batches(names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
        columns = list(dict.fromkeys(name if name in whole.names else name.split(".")[0] for name in names))
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                yield _selected(batch, names, text)

    return OpenTable(str(path), Fixed(pa.schema(list(fields.values())), batches, n_rows))


def open_arrow(path: Path) -> OpenTable:
    """Return an Arrow file as a table."""
    with ipc.open_file(path) as file:
        whole, n_rows = file.schema, sum(file.get_batch(k).num_rows for k in range(file.num_record_batches))
    check_titles(str(path), whole.names)

    def batches(names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as source, ipc.open_file(source) as file:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                for first in range(0, batch.num_rows, rows):
                    yield _selected(batch.slice(first, rows), names, text)

    return OpenTable(str(path), Fixed(pa.schema([field for _, field in _leaves(whole)]), batches, n_rows))


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.Field]]:
    """Yield the columns, and instead of structures their fields, by names with dots."""
    for field in schema:
        if pa.types.is_struct(field.type):
            inner = pa.schema([field.type.field(number) for number in range(field.type.num_fields)])
            for name, leaf in _leaves(inner):
                yield f"{field.name}.{name}", leaf.with_name(f"{field.name}.{name}")
        else:
            yield field.name, field


def _selected(batch: pa.RecordBatch, names: Sequence[str], text: bool) -> pa.RecordBatch:
    """Return columns of a batch, where dots lead to fields of structures."""
    arrays = [_column(batch, name) for name in names]
    for array in arrays:
        array.validate(full=True)  # of a damaged file, values may lie outside of it
    return pa.RecordBatch.from_arrays([as_text(array) for array in arrays] if text else arrays, list(names))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name in batch.schema.names:
        return batch.column(name)
    first, *inner = name.split(".")
    return pc.struct_field(batch.column(first), inner)
