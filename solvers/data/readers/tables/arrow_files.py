"""Table files of training data as Arrow tables: csv, tsv, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.columns.arrow import array_of
from ranktune.solvers.data.columns.roles import WantedRoles, id_columns
from ranktune.solvers.data.readers.formats import COMPRESSED, READERS, count_cells, ending, first_line
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.entries import group_file, group_sizes
from ranktune.solvers.data.readers.tables.batches import Fixed, OpenTable, as_text, check_titles, reading
from ranktune.solvers.data.readers.tables.delimited import CsvFile, dialect_of

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


_WHOLE = r"^(?:0|-?[1-9][0-9]{0,17})$"
"""What is read as a whole number in ranking text too."""


class TrainingFile(NamedTuple):
    """An open table file of training data.

    ids are columns of text that are whole numbers where all values are; sizes the numbers of documents of the queries
    where a file beside it gives them; is_text tells that reading a few columns takes about as long as reading all.
    """

    table: OpenTable
    ids: Sequence[str] = ()
    sizes: Sequence[int] | None = None
    is_text: bool = False


def open_training(path: Path, wanted: WantedRoles, texts: Sequence[str] = ()) -> TrainingFile:
    """Return a table file of training data. Raises DataError for csv without titles, or without rows.

    texts are columns that are text even where all values look like numbers; those that wanted takes as ids are text
    unless all are whole numbers, so that 01 is not 1.
    """
    if kind_of(path) in ("parquet", "arrow"):
        return TrainingFile(open_file(path))
    sizes_file = group_file(path)
    sizes = None if sizes_file is None else group_sizes(sizes_file)
    first = first_line(path)
    if not first:
        raise DataError(
            f"{path}: has no rows: the first line must hold the titles of the columns, each other one a document."
        )
    dialect = dialect_of(path)
    cells = count_cells(first, dialect.separator)
    if cells and sizes is None:
        raise DataError(
            f"{path}: its first line holds numbers. Give the columns titles there, or the number of documents of each "
            f"query in {path.name}.query beside it, as LightGBM has it: the grade is then in the first column."
        )
    titles = ["grade", *(f"f{number}" for number in range(1, cells))] if cells else []
    with reading(str(path)):
        file = CsvFile(path, dialect, texts=lambda names: [*id_columns(names, wanted), *texts], titles=titles)
    table = OpenTable(str(path), file)
    return TrainingFile(table, id_columns(table.names, wanted), sizes, is_text=True)


def read_table(path: Path, wanted: WantedRoles, texts: Sequence[str]) -> FrameTable:
    """Return a table file of training data as a table."""
    file = open_training(path, wanted, texts)
    if not file.is_text and (rows := file.table.n_rows) is not None:
        check_room(
            f"{path}: a table of {rows} rows and {len(file.table.names)} columns", 8 * rows * len(file.table.names)
        )
    return FrameTable(with_whole_ids(file.table.read(), file.ids), sizes=file.sizes)


def with_whole_ids(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table with the columns of these names, which are text, as whole numbers where all are."""
    for name in names:
        values = table.column(name)
        if not values.null_count and pc.all(pc.match_substring_regex(values, _WHOLE)).as_py():
            table = table.set_column(table.schema.get_field_index(name), name, values.cast(pa.int64()))
    return table


def frame_of(path: Path, columns: Mapping[str, Sequence[object]]) -> pa.Table:
    """Return columns that were read from the file at path as a table. Raises DataError for what it cannot hold."""
    try:
        made = [array_of(values, name) for name, values in columns.items()]
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return pa.table([values for values, _ in made], schema=pa.schema([field for _, field in made]))
