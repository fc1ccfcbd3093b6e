"""Names, files and objects to Queries and Splits: whatever a person calls data."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.studies.readers.alignment import aligned, conformed
from ranktune.studies.readers.archives import read_npz
from ranktune.studies.readers.letor import is_letor_folder, read_letor
from ranktune.studies.readers.streams import Place, line_blocks
from ranktune.studies.readers.text import read_text
from ranktune.tuner.evaluation.split import Split

__all__ = ["NAMES", "Split", "load", "read"]

NAMES = ("api-search",)
"""Data sets that need no file."""

_TEXT_OPTIONS = ("dtype", "one_based", "missing", "strict", "max_features", "layout", "qid", "group", "max_expansion")
_FRAME_OPTIONS = ("grade", "qid", "document", "features", "missing")
_OF_TRAIN = ("n_features", "group", "layout")  # options that say nothing about vali and test
_TABLES = (".parquet", ".csv")
_PACKED = (".gz", ".bz2", ".xz")
_ABSENT = ["NULL", "null", "NA", "NaN", "nan", "None"]  # what a cell of text may hold for nothing
_GIVE = (
    "Give a file of LETOR or SVMlight text, .npz, .parquet or .csv, a LETOR folder (Fold1 ...), "
    "a data frame, (X, y, qid), or the name api-search"
)


def load(
    train: Any, *, vali: Any = None, test: Any = None, progress: Callable[[str], None] | None = None, **options: Any
) -> list[Split]:
    """Return the splits that are meant: five for a LETOR folder (Fold1 ... Fold5), else one.

    train, vali, test  each what `read` takes; train may also be a LETOR folder or the name "api-search", which
                       bring their own vali and test
    progress           hears what takes long, such as building api-search for the first time
    options            of reading: those of `read_text` for text, those of `from_frame` for frames and tables

    vali and test have the features of train: fewer are padded by 0, more are an error that names them.
    """
    if _is_name(train, "api-search") or _is_folder(train):
        if vali is not None or test is not None:
            raise DataError(f"{train} brings its own validation and test queries. Leave vali and test out.")
        _refuse_options(options, train)
        return read_letor(train, **options) if _is_folder(train) else [_api_search(progress)]
    fitted = read(train, **options)
    parts = [
        None if part is None else _like(fitted, part, what, options) for part, what in ((vali, "vali"), (test, "test"))
    ]
    return [Split(_name(train), fitted, *parts)]


def read(
    source: Any,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    graded: bool = True,
    **options: Any,
) -> Queries:
    """Return the queries of one source.

    source         path of a text file (plain, gzip, bzip2), .npz, .parquet or .csv; a data frame; a tuple
                   (X, y, qid); or Queries, which come back as they are
    n_features     fixes the number of features: fewer are padded by 0, more are an error
    feature_names  their names: columns that have names are put in this order, and must be these
    graded         if not, grades are not looked at: tables and frames need no column for them, and where the
                   features have names, columns of other names do not matter
    options        of reading, see `load`
    """
    names = None if feature_names is None else tuple(feature_names)
    n_features = len(names) if n_features is None and names is not None else n_features
    what = str(source) if isinstance(source, str | Path) else "the data"
    if not graded and "grade" in _known_options(source):
        options = {"features": names} | options | {"grade": None}
    if isinstance(source, str | Path):
        queries = _read_path(Path(source), str(source), n_features, options)
    else:
        queries = _read_object(source, options)
    return queries if n_features is None else conformed(queries, n_features, names, what)


def _read_object(source: Any, options: dict[str, Any]) -> Queries:
    from ranktune.studies.readers.frames import from_frame, is_frame  # imports narwhals, for those who have frames

    _refuse_options(options, source)
    if isinstance(source, Queries):
        return source
    if isinstance(source, tuple) and len(source) == 3:
        return Queries.from_arrays(source[0], source[1], qid=source[2])
    if is_frame(source):
        return from_frame(source, **options)
    raise DataError(f"cannot read data from {type(source).__name__}. {_GIVE}.")


def _read_path(path: Path, given: str, n_features: int | None, options: dict[str, Any]) -> Queries:
    if path.is_dir():
        kind = "a LETOR folder, which load() reads" if is_letor_folder(path) else "a folder"
        raise DataError(f"{path}: is {kind}, not one file. Name a file in it.")
    if given in NAMES and not path.exists():
        raise DataError(f"{given} is not one file: it brings its own split, which tune, run and data read. {_GIVE}.")
    if not path.exists():
        hint = "" if path.suffix or path.name != given else f" {nearest(given, NAMES)}"
        raise DataError(f"{given}: there is no such file, folder or name.{hint} {_GIVE}.")
    _refuse_options(options, path)
    if path.suffix == ".npz":
        return read_npz(path, **options)
    if _kind(path) not in _TABLES:
        return read_text(path, n_features=n_features, **options)
    from ranktune.studies.readers.frames import from_frame

    table = _table(path, options.get("missing") == "zero")
    try:
        return from_frame(table, **options)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _kind(path: Path) -> str:
    """Return the ending that tells what path holds; one that says it is compressed does not count."""
    return Path(path.stem).suffix if path.suffix in _PACKED else path.suffix


def _table(path: Path, zero_missing: bool) -> Any:
    """Return a table file as a frame of polars, or of pandas where polars is not installed."""
    kind = _kind(path)
    source: Any = path
    options: dict[str, Any] = {}
    if kind == ".parquet" and path.suffix in _PACKED:
        raise DataError(f"{path}: a Parquet file is compressed inside; one packed again is not read. Unpack it.")
    if path.suffix in _PACKED:
        source = io.BytesIO(b"".join(bytes(block) for block in line_blocks(Place(path))))
    for library in ("polars", "pandas"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        if kind == ".csv" and library == "polars":  # pandas does both by itself
            options = {"infer_schema_length": None, "null_values": _ABSENT if zero_missing else None}
        try:
            return getattr(module, f"read_{kind[1:]}")(source, **options)
        except Exception as error:  # each library has its own kinds
            raise DataError(f"{path}: {library} cannot read it ({error}).") from error
    raise DataError(f"{path}: reading it needs polars (or pandas): pip install polars.")


def _like(train: Queries, source: Any, what: str, options: dict[str, Any]) -> Queries:
    """Return the queries of source with the features and the layout of train."""
    known = _known_options(source)
    shared = {
        name: value
        for name, value in options.items()
        if name in known and name not in _OF_TRAIN and (name != "qid" or isinstance(value, str))
    }
    if "layout" in known:  # text: a feature too many is found where it stands
        layout = "sparse" if train.is_sparse else "dense"
        return read(source, n_features=train.n_features, layout=layout, **shared)
    return aligned(read(source, **shared), train, str(source) if isinstance(source, str | Path) else what)


def _api_search(progress: Callable[[str], None] | None) -> Split:
    from ranktune.studies.api_search.dataset import load_split

    return load_split(progress=progress)


def _is_name(source: Any, name: str) -> bool:
    """Return whether source is the name; a file or folder of that name comes first."""
    return isinstance(source, str) and source == name and not Path(source).exists()


def _name(source: Any) -> str:
    if not isinstance(source, str | Path):
        return "data"
    name = Path(source).name
    for ending in (*_PACKED, ".txt", ".npz", ".parquet", ".csv"):
        name = name.removesuffix(ending)
    return name or "data"


def _is_folder(source: Any) -> bool:
    return isinstance(source, str | Path) and Path(source).is_dir()


def _known_options(source: Any) -> tuple[str, ...]:
    """Return the options of reading that source has."""
    if not isinstance(source, str | Path):
        from ranktune.studies.readers.frames import is_frame

        return _FRAME_OPTIONS if is_frame(source) else ()
    path = Path(source)
    if _is_name(source, "api-search"):
        return ()
    if path.suffix == ".npz":
        return ("max_expansion",)
    return _FRAME_OPTIONS if _kind(path) in _TABLES else (*_TEXT_OPTIONS, "n_features")


def _refuse_options(options: dict[str, Any], source: Any) -> None:
    known = _known_options(source)
    for name in options:
        if name not in known:
            what = source if isinstance(source, str | Path) else type(source).__name__
            spelt = nearest(name, known) if known else "It has none."
            raise ParameterError(f"{name}= is no option of reading {what}. {spelt}")
