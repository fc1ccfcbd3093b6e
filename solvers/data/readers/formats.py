"""Every kind of data that is read, in one table: its files, its options, what reads it and its description.

Reading, conversion, the checks of options, messages, help and completion come from it. An installed package offers a
`DataReader` by the entry-point group ranktune.readers. Importing this module imports no reader.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, get_type_hints

from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.core.table import NamedTable, named
from ranktune.solvers.data.columns.table import OPTIONS

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import JsonView

COMPRESSED = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class DataReader:
    """One kind of data. Functions are named as module:function, and imported when they are needed.

    what      what it is, as it follows "Give" in a message; by default its label
    label, help, note  its row in the help of the commands data (help) and convert (note)
    endings   of the names of its files, before that of a compression
    folder    function(path) -> whether a folder holds such data
    line      function(text) -> whether a file whose ending tells nothing holds such data, by its first line
    value     function(object) -> whether an object is such data, or the type of such objects
    options   names of its options, or the declaration in `parsing.options` that has them
    queries   function(source, **options) -> Queries
    table     function(source) -> data frame, or a `frames.Table` of one, whose columns become features by options
    splits    function(source, **options) -> list of Split; the data are a whole data set, and no part of one
    is_table_file  it is read in batches too, and the function of table takes `columns.Wanted` and the columns of text
    is_named  a source is the name of the reader
    write     function(path, segments, **options): writes queries into `conversion.segments.Segments`
    """

    what: str = ""
    label: str = ""
    help: str = ""
    note: str = ""
    endings: tuple[str, ...] = ()
    folder: str = ""
    line: str = ""
    value: str = ""
    options: str | tuple[str, ...] = ()
    queries: str = ""
    table: str = ""
    splits: str = ""
    is_table_file: bool = False
    is_named: bool = False
    write: str = ""

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of the options."""
        if isinstance(self.options, tuple):
            return self.options
        names = get_type_hints(named(f"ranktune.solvers.data.readers.parsing.options:{self.options}"))
        return tuple({**names, **OPTIONS} if "grade" in names else names)

    @property
    def has_columns(self) -> bool:
        """Whether the data have columns, of which options say what they are."""
        return "grade" in self.option_names


_DATA = "ranktune.solvers.data"
_TABLES = f"{_DATA}.readers.tables"
_HERE = __name__
_TITLED = "a row per document, titles above the columns"
_BATCHES = "features in batches, ids and grades whole"

READERS: NamedTable[DataReader] = NamedTable(
    "reader",
    {
        "text": DataReader(
            "a file of LETOR, RankLib or SVMlight text",
            "LETOR, RankLib, SVMlight text",
            "GRADE qid:ID NUMBER:VALUE ... # document;\nLightGBM's, with the sizes of the queries\nin FILE.query",
            "of any size, packed too, in constant memory",
            options="FolderOptions",
            queries=f"{_DATA}.readers.text:read_text",
            write=f"{_DATA}.conversion.convert:write_text",
        ),
        "csv": DataReader(
            label=".csv .tsv",
            help=_TITLED,
            note=_BATCHES,
            endings=(".csv", ".tsv", ".tab"),
            line=f"{_HERE}:is_row_of_numbers",
            options="FrameOptions",
            table=f"{_TABLES}.arrow_files:read_table",
            is_table_file=True,
        ),
        "parquet": DataReader(
            label=".parquet",
            help=_TITLED,
            note=_BATCHES,
            endings=(".parquet", ".pq"),
            options="FrameOptions",
            table=f"{_TABLES}.arrow_files:read_table",
            is_table_file=True,
        ),
        "arrow": DataReader(
            label=".arrow",
            help=_TITLED,
            note=_BATCHES,
            endings=(".arrow", ".feather", ".ipc"),
            options="FrameOptions",
            table=f"{_TABLES}.arrow_files:read_table",
            is_table_file=True,
        ),
        "json": DataReader(
            ".jsonl, .json (also feature logs of Elasticsearch, OpenSearch and Solr)",
            ".jsonl .json",
            '{"qid": 7, "grade": 2, "bm25": 0.5} a line;\n'
            'or features apart: "features": {"bm25": 0.5};\n'
            'or a query: {"qid": 7, "documents": [...]};\n'
            "or hits of Elasticsearch, OpenSearch: _ltrlog;\n"
            "or documents of Solr with \\[features]",
            endings=(".json", ".jsonl", ".ndjson"),
            options="FrameOptions",
            table=f"{_TABLES}.json_documents:read_json",
        ),
        "run": DataReader(
            ".run (TREC)",
            "TREC",
            ".run, or a folder of them, with --qrels FILE",
            endings=(".run", ".trec"),
            folder=f"{_TABLES}.runs:runs_in",
            line=f"{_HERE}:is_run_line",
            options="FrameOptions",
            table=f"{_TABLES}.runs:read_run_table",
        ),
        "judgments": DataReader(
            line=f"{_HERE}:is_judgment_line",
            options="FolderOptions",
            queries=f"{_HERE}:refuse_judgments",
        ),
        "npz": DataReader(
            label=".npz",
            help="arrays X, y, qid",
            endings=(".npz",),
            queries=f"{_DATA}.readers.archives:read_npz",
        ),
        "folds": DataReader(
            "a LETOR folder (Fold1 ...)",
            "Fold1 ... Fold5",
            "folders with train.txt, vali.txt, test.txt",
            options="FolderOptions",
            splits=f"{_DATA}.readers.letor:read_letor",
        ),
        "stored": DataReader(
            label="what `data --output` wrote",
            help="a folder, opened without reading it",
            folder=f"{_DATA}.disk.stored:is_stored",
            queries=f"{_DATA}.disk.stored:read_queries",
        ),
        "queries": DataReader(value=f"{_DATA}.queries:Queries", queries=f"{_DATA}.readers.archives:as_it_is"),
        "frame": DataReader(
            "a data frame",
            value=f"{_DATA}.readers.frames:is_table",
            options="FrameOptions",
            table=f"{_DATA}.readers.frames:as_table",
        ),
        "parts": DataReader(
            value=f"{_DATA}.readers.archives:are_parts", table=f"{_DATA}.readers.archives:table_of_parts"
        ),
        "arrays": DataReader(
            "(X, y, qid)", value=f"{_DATA}.readers.archives:are_arrays", queries=f"{_DATA}.readers.archives:from_arrays"
        ),
        "lightgbm": DataReader(value="lightgbm:Dataset", queries=f"{_DATA}.readers.archives:from_lightgbm"),
        "xgboost": DataReader(value="xgboost:DMatrix", queries=f"{_DATA}.readers.archives:from_xgboost"),
        "api-search": DataReader(
            "the name api-search", splits=f"{_DATA}.api_search.dataset:load_splits", is_named=True
        ),
    },
    group="ranktune.readers",
    error=DataError,
)
"""In the order in which they are tried on a source."""


def find_reader(source: object) -> DataReader | None:
    """Return the reader of a source, None where there is none; of a file that does not exist, by its name alone."""
    if is_name(source):
        return READERS[str(source)]
    if not isinstance(source, str | Path):
        return _recognising(READERS.names, "value", source)
    path = Path(source)
    if path.is_dir():
        return _recognising(READERS.names, "folder", path) or READERS["folds"]
    reader = _by_ending(READERS, path)
    if reader is not None or not path.is_file():
        return reader or READERS["text"]
    offered = READERS.names  # packages are imported where no built-in reader has the ending
    return _by_ending(offered, path) or _recognising(offered, "line", first_line(path)) or READERS["text"]


def _by_ending(names: Iterable[str], path: Path) -> DataReader | None:
    suffix = ending(path).lower()
    return next((reader for reader in map(READERS.find, names) if suffix in reader.endings), None)


def _recognising(names: Iterable[str], field: str, value: object) -> DataReader | None:
    readers = (reader for reader in map(READERS.find, names) if getattr(reader, field))
    return next((reader for reader in readers if _holds(getattr(reader, field), value)), None)


def _holds(place: str, value: object) -> bool:
    """Return whether a predicate holds for a value, or the value is of a type; of a type nothing is imported."""
    module, _, name = place.partition(":")
    if name[0].isupper():
        return module in sys.modules and isinstance(value, getattr(sys.modules[module], name))
    return bool(named(place)(value))


def _beside(path: Path) -> str:
    """Return a sentence that names the file of the same folder whose name is nearest to that of path, if any is."""
    try:
        close = get_close_matches(path.name, os.listdir(path.parent), n=1)
    except (OSError, ValueError):
        return ""
    return f" Did you mean '{path.with_name(close[0])}'?" if close else ""


WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")
"""Endings of spreadsheets, which are not read."""


def reader_of(source: object) -> DataReader:
    """Return the reader of a source. Raises DataError where there is none, or no such file."""
    if isinstance(source, str | Path) and Path(source).suffix.lower() in WORKBOOKS:
        raise DataError(f"{source} is a spreadsheet: save its sheet as .csv, or give the frame of pandas.read_excel.")
    reader = find_reader(source)
    if reader is None:
        hint = "Make a frame of it: pandas.DataFrame(data). " if isinstance(source, dict | list) else ""
        raise DataError(f"cannot read data from {type(source).__name__}. {hint}{give()}.")
    if isinstance(source, str | Path) and not reader.is_named and not Path(source).exists():
        bare = isinstance(source, str) and Path(source).name == source and not Path(source).suffix
        hint = f" {nearest(str(source), named_sources())}" if bare else _beside(Path(source))
        raise DataError(f"{source}: there is no such file, folder or name.{hint} {give()}.")
    return reader


def check_part(reader: DataReader, source: object) -> None:
    """Raise DataError where a source is a whole data set, which cannot be read as one part."""
    if reader.is_named:
        raise DataError(
            f"{source} has train, vali and test queries, and one set of queries is read here; tune, run and data take "
            f"it. {give(parts=True)}."
        )
    if reader.splits:
        is_letor = named(f"{_DATA}.readers.letor:is_letor_folder")(source)
        kind = "a LETOR folder, which load() reads" if is_letor else "a folder"
        raise DataError(f"{source}: is {kind}, not one file. Name a file in it.")


def check_options(reader: DataReader, options: JsonView, source: object) -> None:
    """Raise ParameterError for an option that reading a source does not have."""
    names = reader.option_names
    what = source if isinstance(source, str | Path) else type(source).__name__
    columns = READERS["frame"].option_names
    for name, value in options.items():
        names_column = name in columns and name not in READERS["text"].option_names
        if (names_column or (name == "qid" and isinstance(value, str))) and not reader.has_columns:
            shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
            raise ParameterError(
                f"{name}='{shown}' names columns of a table, and {what} has none: its features have numbers. Leave "
                f"{name}= out, or give a csv, Parquet or jsonl file or a data frame."
            )
        if name not in names:
            hint = nearest(name, names) if names else "It has none."
            raise ParameterError(f"{name}= is not an option of reading {what}. {hint}")


def is_name(source: object) -> bool:
    """Return whether source is the name of a data set; a file or folder of that name comes first."""
    return isinstance(source, str) and source in named_sources() and not Path(source).exists()


def named_sources() -> list[str]:
    """Return the names of the data sets that need no file."""
    return [name for name, reader in READERS.items() if reader.is_named]


def give(*, parts: bool = False) -> str:
    """Return what can be given as data, or as one part of them, as a sentence without its end."""
    readers = (reader for reader in READERS.values() if not (parts and reader.splits))
    kinds = (reader.what or reader.label.replace(" ", ", ") * bool(reader.endings) for reader in readers)
    return f"Give {', '.join(filter(None, kinds))}"


def help_rows(field: str) -> str:
    """Return a row for each kind of data that a field of the readers says something of; equal ones share a row."""
    labels: dict[str, list[str]] = {}
    for reader in READERS.values():
        if getattr(reader, field):
            labels.setdefault(getattr(reader, field), []).append(reader.label)
    rows = []
    for text, shared in labels.items():
        first, *others = text.split("\n")
        rows += [f"{' '.join(shared):<30} {first}", *(f"{'':<30} {line}" for line in others)]
    return "\n".join(rows)


def completions(incomplete: str) -> list[str]:
    """Return the data sets, the folders, the files of data and of studies that an incomplete word may mean."""
    endings = {suffix for reader in READERS.values() for suffix in (*reader.endings, ".txt", ".toml")}
    start = Path(incomplete)
    folder = start if incomplete.endswith("/") else start.parent
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    shown = [f"{path}/" if path.is_dir() else str(path) for path in paths if path.is_dir() or ending(path) in endings]
    return [name for name in (*named_sources(), *shown) if name.startswith(incomplete)]


def ending(path: Path) -> str:
    """Return the ending of path without that of a compression."""
    return Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix


def name_of(source: object) -> str:
    """Return a short name of a source: of a file without its ending."""
    if not isinstance(source, str | Path):
        return "data"
    name = Path(source).name
    for suffix in (*COMPRESSED, ".txt", *(suffix for reader in READERS.values() for suffix in reader.endings)):
        name = name.removesuffix(suffix)
    return name or "data"


def first_line(path: Path) -> str:
    """Return the first line that is neither empty nor a comment, "" if there is none."""
    return next(iter(first_lines(path, 1)), "")


def first_lines(path: Path, count: int) -> list[str]:
    """Return the first lines that are neither empty nor comments, at most count of them."""
    from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks  # loads NumPy

    lines: list[str] = []
    for block in line_blocks(Position(path), size=1 << 16):
        for line in block.tobytes().splitlines():
            text = line.decode(errors="replace").strip()
            if text and not text.startswith("#"):
                lines.append(text)
                if len(lines) == count:
                    return lines
    return lines


def is_run_line(line: str) -> bool:
    """Return whether line can be one of a TREC run."""
    from ranktune.solvers.data.columns.grammar import number_of  # loads NumPy

    words = line.split()
    return len(words) == 6 and ":" not in words[1] and None not in map(number_of, words[3:5])


def is_judgment_line(line: str) -> bool:
    """Return whether line can be one of TREC judgments: QUERY 0 DOCUMENT GRADE."""
    from ranktune.solvers.data.columns.grammar import number_of  # loads NumPy

    words = line.split()
    return len(words) == 4 and ":" not in words[1] and number_of(words[3]) is not None


def is_row_of_numbers(line: str) -> bool:
    """Return whether a line can be the first one of a csv or tsv file without titles."""
    return any(count_cells(line, separator) for separator in ",\t")


def count_cells(line: str, separator: str) -> int:
    """Return how many cells a line has if it has several and all are numbers, else 0."""
    from ranktune.solvers.data.columns.grammar import (
        MISSING,
        number_of,  # loads NumPy
    )

    cells = [cell.strip() for cell in line.split(separator)]
    present = [cell for cell in cells if cell not in MISSING]
    return len(cells) if len(cells) > 1 and present and None not in map(number_of, present) else 0


def refuse_judgments(path: str | Path, **options: object) -> NoReturn:
    """Raise DataError: judgments are no data, as they have no features."""
    raise DataError(
        f"{path}: holds TREC judgments and no features. Give the documents as data, such as a TREC run or a csv "
        f'file, and the judgments by qrels="{path}".'
    )
