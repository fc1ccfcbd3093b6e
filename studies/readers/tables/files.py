"""Table files to frames: csv, tsv, Parquet, Arrow, JSON documents and TREC runs."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ranktune.solvers.core.errors import DataError
from ranktune.studies.readers.frames import Table
from ranktune.studies.readers.query_runs import group_file, group_sizes
from ranktune.studies.readers.streams import Position, line_blocks
from ranktune.studies.readers.tables.json_documents import read_documents
from ranktune.studies.readers.tables.kinds import (
    ARROW,
    COMPRESSED,
    JSON,
    JSON_LINES,
    PARQUET,
    RUN,
    SEPARATORS,
    count_cells,
    first_line,
)
from ranktune.studies.readers.tables.runs import read_run, read_runs, runs_in

_EMPTY_CELLS = ["NULL", "null", "NA", "NaN", "nan", "None"]


def read_table(path: Path, kind: str, texts: Sequence[str] = ()) -> Table:
    """Return a table file as a frame of polars, or of pandas where polars is not installed.

    texts are columns that csv and tsv files hold as text even where all values look like numbers.
    """
    if kind == RUN:
        scored, scores = read_runs(runs_in(path)) if path.is_dir() else read_run(path)
        return Table(_frame_of(path, scored), scores, path=path)
    if kind in (JSON, JSON_LINES):
        documents, logged = read_documents(path, whole=kind == JSON)
        return Table(_frame_of(path, documents), logged, path=path)
    if kind in (PARQUET, ARROW):
        return Table(_read_binary(path, kind), path=path)
    return _read_csv(path, SEPARATORS[kind], texts)


def _read_csv(path: Path, separator: str, texts: Sequence[str]) -> Table:
    sizes_file = group_file(path)
    sizes = None if sizes_file is None else group_sizes(sizes_file)
    cells = count_cells(first_line(path), separator)
    if cells and sizes is None:
        raise DataError(
            f"{path}: its first line holds numbers. Give the columns titles there, or the number of documents of each "
            f"query in {path.name}.query beside it, as LightGBM has it: the grade is then in the first column."
        )
    titles = ["grade", *(f"f{number}" for number in range(1, cells))] if cells else None
    library = _library(path)
    source: Path | io.BytesIO = path
    if path.suffix in COMPRESSED:
        source = io.BytesIO(b"".join(bytes(block) for block in line_blocks(Position(path))))
    options: dict[str, object]
    if library.__name__ == "polars":
        options = {
            "separator": separator, "infer_schema_length": None, "null_values": _EMPTY_CELLS,
            "has_header": titles is None, "new_columns": titles,
            "schema_overrides": dict.fromkeys(texts, library.String),
        }  # fmt: skip
    else:
        options = {
            "sep": separator,
            "names": titles,
            "header": None if titles else 0,
            "dtype": dict.fromkeys(texts, str),
        }
    return Table(_called(path, library, "read_csv", source, options), sizes=sizes, path=path)


def _read_binary(path: Path, kind: str) -> object:
    if path.suffix in COMPRESSED:
        raise DataError(f"{path}: a {kind.title()} file is compressed inside; one packed again is not read. Unpack it.")
    library = _library(path)
    if kind == PARQUET:
        return _called(path, library, "read_parquet", path, {})
    return _called(path, library, "read_ipc" if library.__name__ == "polars" else "read_feather", path, {})


def _frame_of(path: Path, columns: Mapping[str, Sequence[object]]) -> object:
    library = _library(path)
    options = {"strict": False, "infer_schema_length": None} if library.__name__ == "polars" else {}
    return _called(path, library, "DataFrame", columns, options)


def _called(path: Path, library: ModuleType, name: str, source: object, options: Mapping[str, object]) -> object:
    try:
        frame: object = getattr(library, name)(source, **options)
    except Exception as error:  # each library has its own kinds
        raise DataError(f"{path}: {library.__name__} cannot read it ({error}).") from error
    return frame


def _library(path: Path) -> ModuleType:
    for name in ("polars", "pandas"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise DataError(f"{path}: reading it needs polars (or pandas): pip install polars.")
