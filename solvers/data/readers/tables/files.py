"""Table files of training data as Arrow tables: csv, tsv, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.columns.arrow import array_of
from ranktune.solvers.data.columns.roles import WantedRoles, id_columns
from ranktune.solvers.data.readers.formats import count_cells, first_line
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.query_runs import group_file, group_sizes
from ranktune.solvers.data.readers.tables.arrow_files import kind_of, open_file
from ranktune.solvers.data.readers.tables.batches import OpenTable, reading
from ranktune.solvers.data.readers.tables.delimited import CsvFile, dialect_of

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
