"""From what a user gives as data (a path, a name, a frame, arrays) to Queries and Splits."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack, cast

from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.studies.api_search import NAME as API_SEARCH
from ranktune.studies.readers import options as known_options
from ranktune.studies.readers.alignment import aligned
from ranktune.studies.readers.archives import read_npz
from ranktune.studies.readers.letor import is_letor_folder, read_letor
from ranktune.studies.readers.options import ArchiveOptions, FolderOptions, FrameOptions, LoadOptions, ReadOptions
from ranktune.studies.readers.streams import Position, line_blocks
from ranktune.studies.readers.text import read_text
from ranktune.tuner.splits.split import Split

__all__ = ["NAMES", "Split", "load", "read"]

NAMES = (API_SEARCH,)
"""Data sets that need no file."""

_TRAIN_ONLY = ("n_features", "group", "layout")  # options that do not apply to vali and test
_TABLES = (".parquet", ".csv")
_COMPRESSED = (".gz", ".bz2", ".xz")
_EMPTY_CELLS = ["NULL", "null", "NA", "NaN", "nan", "None"]
_GIVE = (
    "Give a file of LETOR or SVMlight text, .npz, .parquet or .csv, a LETOR folder (Fold1 ...), "
    "a data frame, (X, y, qid), or the name api-search"
)


def load(
    train: object,
    *,
    vali: object = None,
    test: object = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[LoadOptions],
) -> list[Split]:
    """Read training data, with validation and test data where there are any.

    Parameters
    ----------
    train : str, Path, data frame, tuple or Queries
        What `read` takes; or a LETOR folder or the name "api-search", which have their own vali and test.
    vali, test : str, Path, data frame, tuple or Queries, optional
        Validation and test data. They get the features of train: missing ones are 0, unknown ones are an error.
    progress : callable, optional
        Called with a message before a step that takes long, such as building api-search for the first time.
    **options
        Options of reading, as in `read`. Those that fix the shape of train (n_features, group, layout) do not apply to
        vali and test.

    Returns
    -------
    list of Split
        Five for a LETOR folder with Fold1 ... Fold5, else one.

    Raises
    ------
    DataError
        The data cannot be read, or the parts do not fit together.
    ParameterError
        An option does not exist for this kind of data, or has a value that it cannot have.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.studies import catalogue
    >>> X, y, qid = np.eye(4), [1, 0, 2, 0], [7, 7, 8, 8]
    >>> (split,) = catalogue.load((X, y, qid), vali=(X[:2], y[:2], qid[:2]))
    >>> split.train.n_queries, split.vali.n_queries, split.test
    (2, 1, None)
    """
    if _is_name(train, API_SEARCH) or _is_folder(train):
        if vali is not None or test is not None:
            raise DataError(f"{train} brings its own validation and test queries. Leave vali and test out.")
        _check_options(options, train)
        if _is_name(train, "api-search"):
            return [_api_search(progress)]
        return read_letor(str(train), **cast(FolderOptions, options))
    fitted = read(train, **options)
    parts = [
        None if part is None else _like(fitted, part, what, options) for part, what in ((vali, "vali"), (test, "test"))
    ]
    return [Split(_name(train), fitted, *parts)]


def read(
    source: object,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    graded: bool = True,
    **options: Unpack[ReadOptions],
) -> Queries:
    """Read one source of documents.

    Parameters
    ----------
    source : str, Path, data frame, tuple or Queries
        A file of LETOR or SVMlight text (plain, gzip or bzip2), .npz, .parquet or .csv; a data frame; a tuple
        (X, y, qid); or Queries, which are returned as they are.
    n_features : int, optional
        Number of features: missing ones are 0, more are an error.
    feature_names : sequence of str, optional
        Names of the features: columns that have names must have these, and are put in this order.
    graded : bool, default=True
        Whether grades matter. If not, tables and frames need no column of grades, and with feature_names, other columns
        are ignored.
    **options
        Options of `read_text` (dtype, one_based, missing, strict, max_features, layout, qid, group, max_expansion) for
        text; of `from_frame` (grade, qid, document, features, missing) for tables and frames; of `read_npz`
        (max_expansion) for .npz files.

    Returns
    -------
    Queries
        The documents grouped by query.

    Raises
    ------
    DataError
        The source cannot be read. For text, the message names file, line and column.
    ParameterError
        An option does not exist for this kind of source, or has a value that it cannot have.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.studies import catalogue
    >>> queries = catalogue.read((np.eye(3), [2, 0, 1], ["a", "a", "b"]))
    >>> queries.n_queries, queries.grades
    (2, array([2., 0., 1.]))
    """
    names = None if feature_names is None else tuple(feature_names)
    n_features = len(names) if n_features is None and names is not None else n_features
    what = str(source) if isinstance(source, str | Path) else "the data"
    if not graded and "grade" in _options_of(source):
        options.setdefault("features", names)
        options["grade"] = None
    if isinstance(source, str | Path):
        queries = _read_path(Path(source), str(source), n_features, options)
    else:
        queries = _read_object(source, options)
    return queries if n_features is None else aligned(queries, n_features, names, what)


def _read_object(source: object, options: ReadOptions) -> Queries:
    from ranktune.studies.readers.frames import from_frame, is_frame  # imports narwhals, which only frames need

    _check_options(options, source)
    if isinstance(source, Queries):
        return source
    if isinstance(source, tuple) and len(source) == 3:
        return Queries.from_arrays(source[0], source[1], qid=source[2])
    if is_frame(source):
        return from_frame(source, **cast(FrameOptions, options))
    raise DataError(f"cannot read data from {type(source).__name__}. {_GIVE}.")


def _read_path(path: Path, given: str, n_features: int | None, options: ReadOptions) -> Queries:
    if path.is_dir():
        kind = "a LETOR folder, which load() reads" if is_letor_folder(path) else "a folder"
        raise DataError(f"{path}: is {kind}, not one file. Name a file in it.")
    if given in NAMES and not path.exists():
        raise DataError(f"{given} is not one file: it brings its own split, which tune, run and data read. {_GIVE}.")
    if not path.exists():
        hint = "" if path.suffix or path.name != given else f" {nearest(given, NAMES)}"
        raise DataError(f"{given}: there is no such file, folder or name.{hint} {_GIVE}.")
    _check_options(options, path)
    if path.suffix == ".npz":
        return read_npz(path, **cast(ArchiveOptions, options))
    if _kind(path) not in _TABLES:
        return read_text(path, **cast(FolderOptions, {"n_features": n_features, **options}))
    from ranktune.studies.readers.frames import from_frame

    table = _table(path, options.get("missing") == "zero")
    try:
        return from_frame(table, **cast(FrameOptions, options))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _kind(path: Path) -> str:
    """Return the ending of path without that of a compression."""
    return Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def _table(path: Path, zero_missing: bool) -> object:
    """Return a table file as a frame of polars, or of pandas where polars is not installed."""
    kind = _kind(path)
    source: Path | io.BytesIO = path
    options: dict[str, object] = {}
    if kind == ".parquet" and path.suffix in _COMPRESSED:
        raise DataError(f"{path}: a Parquet file is compressed inside; one packed again is not read. Unpack it.")
    if path.suffix in _COMPRESSED:
        source = io.BytesIO(b"".join(bytes(block) for block in line_blocks(Position(path))))
    for library in ("polars", "pandas"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        if kind == ".csv" and library == "polars":  # pandas does both by itself
            options = {"infer_schema_length": None, "null_values": _EMPTY_CELLS if zero_missing else None}
        try:
            frame: object = getattr(module, f"read_{kind[1:]}")(source, **options)
        except Exception as error:  # each library has its own kinds
            raise DataError(f"{path}: {library} cannot read it ({error}).") from error
        return frame
    raise DataError(f"{path}: reading it needs polars (or pandas): pip install polars.")


def _like(train: Queries, source: object, what: str, options: LoadOptions) -> Queries:
    """Return the queries of source with the features and the layout of train."""
    known = _options_of(source)
    own = {
        name: value
        for name, value in options.items()
        if name in known and name not in _TRAIN_ONLY and (name != "qid" or isinstance(value, str))
    }
    shared = cast(ReadOptions, own)
    if "layout" in known:  # text: the message about an unknown feature names its line
        shared["layout"] = "sparse" if train.is_sparse else "dense"
        return read(source, n_features=train.n_features, **shared)
    what = str(source) if isinstance(source, str | Path) else what
    return aligned(read(source, **shared), train.n_features, train.feature_names, what)


def _api_search(progress: Callable[[str], None] | None) -> Split:
    from ranktune.studies.api_search.dataset import load_split

    return load_split(progress=progress)


def _is_name(source: object, name: str) -> bool:
    """Return whether source is the name; a file or folder of that name comes first."""
    return isinstance(source, str) and source == name and not Path(source).exists()


def _name(source: object) -> str:
    if not isinstance(source, str | Path):
        return "data"
    name = Path(source).name
    for ending in (*_COMPRESSED, ".txt", ".npz", ".parquet", ".csv"):
        name = name.removesuffix(ending)
    return name or "data"


def _is_folder(source: object) -> bool:
    return isinstance(source, str | Path) and Path(source).is_dir()


def _options_of(source: object) -> tuple[str, ...]:
    """Return the names of the options of reading source."""
    if not isinstance(source, str | Path):
        from ranktune.studies.readers.frames import is_frame

        return known_options.FRAME if is_frame(source) else ()
    path = Path(source)
    if _is_name(source, API_SEARCH):
        return ()
    if path.suffix == ".npz":
        return known_options.ARCHIVE
    return known_options.FRAME if _kind(path) in _TABLES else known_options.FOLDER


def _check_options(options: LoadOptions | ReadOptions, source: object) -> None:
    known = _options_of(source)
    for name in options:
        if name not in known:
            what = source if isinstance(source, str | Path) else type(source).__name__
            hint = nearest(name, known) if known else "It has none."
            raise ParameterError(f"{name}= is not an option of reading {what}. {hint}")
