"""Table files to frames of polars: csv, tsv, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import polars

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.columns.amounts import MISSING
from ranktune.solvers.data.columns.grammar import number_of, repeated
from ranktune.solvers.data.columns.roles import HEADLESS, Wanted, id_columns
from ranktune.solvers.data.readers.formats import COMPRESSED, first_line
from ranktune.solvers.data.readers.frames import Table
from ranktune.solvers.data.readers.parsing.query_runs import group_file, group_sizes
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks
from ranktune.solvers.data.readers.tables.delimited import check_cells, count_cells, dialect_of

T = TypeVar("T")

_WHOLE = r"^(?:0|-?[1-9][0-9]{0,17})$"
"""What is read as a whole number in ranking text too."""
FIRST_ROWS, FIRST_CELLS = 10_000, 1 << 18
"""Rows of a csv file that give the types of its columns, at most, and their cells: inferring is slow."""


@dataclass(frozen=True)
class CsvForm:
    """How a csv or tsv file is read.

    options  those of polars           ids   columns of ids, which are read as text
    n_rows   documents in the file, None where polars finds as many
    first    rows that give the types of the columns
    sizes    numbers of documents of the queries where a file beside it gives them
    """

    options: JsonView
    ids: Sequence[str]
    n_rows: int | None
    first: int
    sizes: Sequence[int] | None


def csv_form(path: Path, wanted: Wanted, texts: Sequence[str] = ()) -> CsvForm:
    """Return how a csv or tsv file is read. Raises DataError for one whose rows are not whole or have no titles.

    texts are columns that are text even where all values look like numbers; those that wanted takes as ids are text
    unless all are whole numbers, so that 01 is not 1.
    """
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
    rows = check_cells(path, dialect.separator)
    titles = ["grade", *(f"f{number}" for number in range(1, cells))] if cells else _titles(path, dialect.separator)
    ids = id_columns(titles, wanted)
    options = {
        **dialect._asdict(),
        "glob": False,
        "null_values": list(filter(None, MISSING)),
        "has_header": not cells,
        "new_columns": titles,
        "schema_overrides": dict.fromkeys((*ids, *texts), polars.String),
    }
    head = min(FIRST_ROWS, FIRST_CELLS // (first.count(dialect.separator) + 1) + 1)
    return CsvForm(options, ids, None if rows is None else rows - (not cells), head, sizes)


def read_csv(path: Path, wanted: Wanted, texts: Sequence[str]) -> Table:
    """Return a csv or tsv file as a table."""
    form = csv_form(path, wanted, texts)
    frame = _read_by_first_rows(path, form.options, form.first)
    if form.n_rows is not None:  # polars makes rows of the empty lines at the end
        frame = frame.head(form.n_rows)
    return Table(with_whole_ids(frame, form.ids), sizes=form.sizes)


def _read_by_first_rows(path: Path, options: JsonView, first: int) -> polars.DataFrame:
    """Return a csv file as polars reads it, which looks at all rows for their types before it reads any.

    That takes most of the time. So the first rows give the types, unless a later value does not fit, or a column has no
    value there: its type is unknown then.
    """
    source = _unpacked(path)
    try:
        frame = _called(path, polars.read_csv, source, infer_schema_length=first, **options)
    except DataError:
        return _called(path, polars.read_csv, source, infer_schema_length=None, **options)
    known = frame.height <= first or not any(column.head(first).is_null().all() for column in frame)
    return frame if known else _called(path, polars.read_csv, source, infer_schema_length=None, **options)


def _unpacked(path: Path) -> Path | bytes:
    if path.suffix not in COMPRESSED:
        return path
    return b"".join(bytes(block) for block in line_blocks(Position(path)))


def _titles(path: Path, separator: str) -> list[str]:
    """Return the titles of the columns: where they are such, polars renames repeated ones, and keeps doubled quotes."""
    options = {"separator": separator, "has_header": False, "n_rows": 1, "infer_schema": False}
    begin = b"".join(bytes(block) for block in islice(line_blocks(Position(path)), 1))
    first = _called(path, polars.read_csv, begin, **options)
    if first.is_empty():
        raise DataError(f"{path}: no titles can be read in its first line. Is there a quote that is not closed?")
    titles = ["" if title is None else str(title) for title in first.row(0)]
    _check_titles(path, titles)
    return titles


def _check_titles(path: Path, titles: Sequence[str]) -> None:
    twice = repeated(titles)
    if twice is not None:
        headless = "" if number_of(twice) is None else HEADLESS
        raise DataError(f"{path}: has several columns called {twice!r}. Rename or remove one of them.{headless}")


def with_whole_ids(frame: polars.DataFrame, names: Sequence[str]) -> polars.DataFrame:
    """Return frame with the columns of these names, which are text, as whole numbers where all are."""
    whole = [name for name in names if not frame[name].null_count() and frame[name].str.contains(_WHOLE).all()]
    return frame.with_columns(polars.col(name).cast(polars.Int64) for name in whole) if whole else frame


def read_arrow(path: Path) -> polars.DataFrame:
    """Return an Arrow file as a frame."""
    from pyarrow import ArrowException, ipc

    _refuse_packed(path, "Arrow")
    with suppress(ArrowException, OSError), ipc.open_file(path) as file:  # polars panics at equal names
        _check_titles(path, file.schema.names)
    return _called(path, polars.read_ipc, path)


def read_parquet(path: Path) -> polars.DataFrame:
    """Return a Parquet file as a frame. pyarrow compares the checksums of its pages."""
    from pyarrow import parquet

    _refuse_packed(path, "Parquet")
    about = _called(path, parquet.read_metadata, path)
    rows, columns = about.num_rows, about.num_columns
    check_room(f"{path}: a table of {rows} rows and {columns} columns", 8 * rows * columns)
    verified = {"page_checksum_verification": True}
    return _called(path, polars.read_parquet, path, use_pyarrow=True, pyarrow_options=verified)


def _refuse_packed(path: Path, kind: str) -> None:
    if path.suffix in COMPRESSED:
        raise DataError(f"{path}: a {kind} file is compressed inside; one packed again is not read. Unpack it.")


def frame_of(path: Path, columns: Mapping[str, Sequence[object]]) -> polars.DataFrame:
    """Return columns that were read from the file at path as a frame. Raises DataError for what it cannot hold."""
    frame = _called(path, polars.DataFrame, columns, strict=False, infer_schema_length=None)
    for name, values in columns.items():
        if (count := frame[name].null_count()) and count > values.count(None):
            lost = (value is not None and held is None for value, held in zip(values, frame[name], strict=True))
            row = next(row for row, is_lost in enumerate(lost) if is_lost)
            raise DataError(
                f"{path}: {name!r} of document {row + 1} is {str(values[row])[:40]}, beyond all numbers that a feature "
                "can be. Correct it, or write it as text."
            )
    return frame


def _called(path: Path, function: Callable[..., T], source: object, **options: object) -> T:
    """Return what a function of a library makes of a source. Raises DataError for whatever it raises."""
    try:
        return function(source, **options)
    except BaseException as error:  # polars raises an error that is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError):
            raise
        remedy = " Save it as UTF-8." if "utf-8" in str(error).lower() else ""
        library = function.__module__.partition(".")[0]
        raise DataError(
            f"{path}: {library} cannot read it ({str(error).split(chr(10))[0].strip()}).{remedy}"
        ) from error
