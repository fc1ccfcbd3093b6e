"""What kind of data a user gives: which options it has, and what is no data."""

from __future__ import annotations

from pathlib import Path

from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.api_search import NAME as API_SEARCH
from ranktune.solvers.data.disk.stored import is_stored
from ranktune.solvers.data.readers.letor import is_letor_folder
from ranktune.solvers.data.readers.parsing import options as known_options
from ranktune.solvers.data.readers.parsing.options import LoadOptions, ReadOptions
from ranktune.solvers.data.readers.tables.kinds import COMPRESSED, ENDINGS, table_kind

NAMES = (API_SEARCH,)
"""Data sets that need no file."""

GIVE = (
    "Give a file of LETOR or SVMlight text, .csv, .tsv, .parquet, .arrow, .jsonl, .run (TREC) or .npz, a LETOR folder "
    "(Fold1 ...), a data frame, (X, y, qid), or the name api-search"
)


def check_file(path: Path, given: str) -> None:
    """Raise DataError for a path, given so, that is no file of data and no folder that is read as one."""
    if is_folder(path):
        kind = "a LETOR folder, which load() reads" if is_letor_folder(path) else "a folder"
        raise DataError(f"{path}: is {kind}, not one file. Name a file in it.")
    if given in NAMES and not path.exists():
        raise DataError(f"{given} is not one file: it brings its own split, which tune, run and data read. {GIVE}.")
    if not path.exists():
        hint = "" if path.suffix or path.name != given else f" {nearest(given, NAMES)}"
        raise DataError(f"{given}: there is no such file, folder or name.{hint} {GIVE}.")


def check_options(options: LoadOptions | ReadOptions, source: object) -> None:
    """Raise ParameterError for an option that reading a source does not have."""
    known = options_of(source)
    what = source if isinstance(source, str | Path) else type(source).__name__
    for name, value in options.items():
        names_column = name in known_options.COLUMNS or (name == "qid" and isinstance(value, str))
        if names_column and known != known_options.FRAME:
            shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
            raise ParameterError(
                f"{name}='{shown}' names columns of a table, and {what} has none: its features have numbers. Leave "
                f"{name} out, or give a csv, Parquet or jsonl file or a data frame."
            )
        if name not in known:
            hint = nearest(name, known) if known else "It has none."
            raise ParameterError(f"{name}= is not an option of reading {what}. {hint}")


def options_of(source: object) -> tuple[str, ...]:
    """Return the names of the options of reading source."""
    if not isinstance(source, str | Path):
        from ranktune.solvers.data.readers.frames import Table, is_frame

        return known_options.FRAME if isinstance(source, Table) or is_frame(source) else ()
    path = Path(source)
    if is_name(source, API_SEARCH):
        return ()
    if is_stored(path):
        return ()
    if path.suffix == ".npz":
        return known_options.ARCHIVE
    return known_options.FOLDER if table_kind(path) is None else known_options.FRAME


def is_name(source: object, name: str) -> bool:
    """Return whether source is the name; a file or folder of that name comes first."""
    return isinstance(source, str) and source == name and not Path(source).exists()


def is_folder(source: object) -> bool:
    """Return whether source is a folder of files, such as those of folds."""
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    return path.is_dir() and not is_stored(path) and table_kind(path) is None


def name_of(source: object) -> str:
    """Return a short name of a source: of a file without its ending."""
    if not isinstance(source, str | Path):
        return "data"
    name = Path(source).name
    for ending in (*COMPRESSED, ".txt", ".npz", *ENDINGS):
        name = name.removesuffix(ending)
    return name or "data"
