"""Table files to frames: csv, tsv, Parquet, Arrow, JSON documents and TREC runs."""

from __future__ import annotations

import importlib
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import narwhals as nw

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.readers.columns import Wanted, id_columns
from ranktune.solvers.data.readers.frames import Table, as_eager
from ranktune.solvers.data.readers.parsing.query_runs import group_file, group_sizes
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks
from ranktune.solvers.data.readers.tables.cells import check_cells
from ranktune.solvers.data.readers.tables.json_documents import read_documents
from ranktune.solvers.data.readers.tables.kinds import (
    ARROW,
    COMPRESSED,
    JSON,
    JSON_LINES,
    PARQUET,
    RUN,
    Dialect,
    count_cells,
    dialect_of,
    first_line,
)
from ranktune.solvers.data.readers.tables.runs import read_run, read_runs, runs_in

_WHOLE = r"^(?:0|-?[1-9][0-9]{0,17})$"
"""What is read as a whole number in ranking text too."""
FIRST_ROWS = 10_000
"""Rows of a csv file that give the types of its columns."""
_EMPTY_CELLS = ["NULL", "null", "NA", "NaN", "nan", "None"]


def read_table(path: Path, kind: str, wanted: Wanted | None = None, texts: Sequence[str] = ()) -> Table:
    """Return a table file as a frame of polars, or of pandas where polars is not installed.

    Of csv and tsv files, texts are columns that are text even where all values look like numbers; those that wanted
    takes as ids are text unless all are whole numbers, so that 01 is not 1.
    """
    if kind == RUN:
        scored, scores = read_runs(runs_in(path)) if path.is_dir() else read_run(path)
        return Table(_frame_of(path, scored), scores, path=path)
    if kind in (JSON, JSON_LINES):
        documents, logged = read_documents(path, whole=kind == JSON)
        return Table(_frame_of(path, documents), logged, path=path)
    if kind in (PARQUET, ARROW):
        return Table(_read_binary(path, kind), path=path)
    return _read_csv(path, dialect_of(path, kind), wanted or Wanted(), texts)


def _read_csv(path: Path, dialect: Dialect, wanted: Wanted, texts: Sequence[str]) -> Table:
    separator = dialect.separator
    sizes_file = group_file(path)
    sizes = None if sizes_file is None else group_sizes(sizes_file)
    first = first_line(path)
    if not first:
        raise DataError(
            f"{path}: has no rows: the first line must hold the titles of the columns, each other one a document."
        )
    cells = count_cells(first, separator)
    if cells and sizes is None:
        raise DataError(
            f"{path}: its first line holds numbers. Give the columns titles there, or the number of documents of each "
            f"query in {path.name}.query beside it, as LightGBM has it: the grade is then in the first column."
        )
    titles = ["grade", *(f"f{number}" for number in range(1, cells))] if cells else None
    library = _library(path)
    packed = None
    if path.suffix in COMPRESSED:
        packed = b"".join(bytes(block) for block in line_blocks(Position(path)))
    rows = check_cells(path, separator)

    def read(options: Mapping[str, object]) -> object:
        return _called(path, library, "read_csv", path if packed is None else io.BytesIO(packed), options)

    ids = () if titles else id_columns(_titles(path, read, separator, library), wanted)
    options: dict[str, object]
    if library.__name__ == "polars":
        options = polars_options(library, dialect, (*ids, *texts), titles)
        frame = _read_by_first_rows(read, options)
        if rows is not None:  # polars makes rows of the empty lines at the end
            frame = as_eager(frame).head(rows - (titles is None)).to_native()
    else:
        options = {
            "sep": separator, "names": titles, "header": None if titles else 0,
            "dtype": dict.fromkeys((*ids, *texts), str), "decimal": "," if dialect.decimal_comma else ".",
        }  # fmt: skip
        frame = read(options)
    return Table(with_whole_ids(frame, ids), sizes=sizes, path=path)


def _read_by_first_rows(read: Callable[[Mapping[str, object]], object], options: Mapping[str, object]) -> object:
    """Return what read returns with the options of polars, which looks at all rows before it reads any.

    That takes most of the time. So the first rows give the types, unless a later value does not fit them, or a column
    has no value there: its type is unknown then.
    """
    try:
        frame = read({**options, "infer_schema_length": FIRST_ROWS})
    except DataError:
        return read(options)
    table = as_eager(frame)
    known = table.shape[0] <= FIRST_ROWS or not any(
        column.head(FIRST_ROWS).is_null().all() for column in table.iter_columns()
    )
    return frame if known else read(options)


def polars_options(
    polars: ModuleType, dialect: Dialect, texts: Sequence[str], titles: Sequence[str] | None = None
) -> dict[str, object]:
    """Return how polars reads a csv or tsv file; titles are those of a file that has none, texts columns of text."""
    return {
        **dialect._asdict(), "infer_schema_length": None, "null_values": _EMPTY_CELLS,
        "has_header": titles is None, "new_columns": titles,
        "schema_overrides": dict.fromkeys(texts, polars.String),
    }  # fmt: skip


def csv_titles(path: Path, separator: str) -> list[str]:
    """Return the titles of the columns of a csv or tsv file."""
    library = _library(path)
    return _titles(path, lambda options: _called(path, library, "read_csv", path, options), separator, library)


def _titles(
    path: Path, read: Callable[[Mapping[str, object]], object], separator: str, library: ModuleType
) -> list[str]:
    """Return the titles as they are in the file: the libraries rename one that is there twice."""
    options: Mapping[str, object] = {"sep": separator, "header": None, "nrows": 1, "dtype": str, "na_filter": False}
    if library.__name__ == "polars":
        options = {"separator": separator, "has_header": False, "n_rows": 1, "infer_schema": False}
    first = as_eager(read(options))
    titles = ["" if title is None else str(title) for title in first.row(0)]
    twice = next((title for title, count in Counter(titles).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{path}: has several columns called {twice!r}. Rename or remove one of them.")
    return titles


def with_whole_ids(frame: object, names: Sequence[str]) -> object:
    """Return frame with the columns of these names, which are text, as whole numbers where all are."""
    table = as_eager(frame)
    whole = [name for name in names if not table[name].is_null().any() and table[name].str.contains(_WHOLE).all()]
    return table.with_columns(nw.col(name).cast(nw.Int64) for name in whole).to_native() if whole else frame


def _read_binary(path: Path, kind: str) -> object:
    if path.suffix in COMPRESSED:
        raise DataError(f"{path}: a {kind.title()} file is compressed inside; one packed again is not read. Unpack it.")
    library = _library(path)
    if kind == PARQUET:
        return _read_parquet(path, library)
    return _called(path, library, "read_ipc" if library.__name__ == "polars" else "read_feather", path, {})


def _read_parquet(path: Path, library: ModuleType) -> object:
    """Return a Parquet file as a frame. pyarrow, where it is installed, compares the checksums of its pages."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return _called(path, library, "read_parquet", path, {})
    about = _called(path, parquet, "read_metadata", path, {})
    rows, columns = int(getattr(about, "num_rows", 0)), int(getattr(about, "num_columns", 0))
    check_room(f"{path}: a table of {rows} rows and {columns} columns", 8 * rows * columns)
    verified = {"page_checksum_verification": True}
    polars = library.__name__ == "polars"
    return _called(
        path, library, "read_parquet", path, {"use_pyarrow": True, "pyarrow_options": verified} if polars else verified
    )


def _frame_of(path: Path, columns: Mapping[str, Sequence[object]]) -> object:
    library = _library(path)
    options = {"strict": False, "infer_schema_length": None} if library.__name__ == "polars" else {}
    return _called(path, library, "DataFrame", columns, options)


def _called(path: Path, library: ModuleType, name: str, source: object, options: Mapping[str, object]) -> object:
    try:
        frame: object = getattr(library, name)(source, **options)
    except BaseException as error:  # each library has its own kinds, and polars one that is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError):
            raise
        remedy = " Save it as UTF-8." if "utf-8" in str(error).lower() else ""
        raise DataError(f"{path}: {library.__name__} cannot read it ({error}).{remedy}") from error
    return frame


def _library(path: Path) -> ModuleType:
    for name in ("polars", "pandas"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise DataError(f"{path}: reading it needs polars, which is missing here: pip install polars pyarrow.")
