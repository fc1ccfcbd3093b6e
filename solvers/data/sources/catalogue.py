"""From what a user gives as data (a path, a name, a frame, arrays) to Queries and Splits."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError, ParameterError, in_file, warn
from ranktune.solvers.core.table import named
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.columns.decisions import COLUMN, NUMBER, ColumnQuestion, Undecided, answered
from ranktune.solvers.data.columns.encoding import TableEncoding, alike
from ranktune.solvers.data.columns.roles import ROLES, WantedRoles
from ranktune.solvers.data.columns.table import OPTIONS, column_of
from ranktune.solvers.data.conversion.cache import is_worth_keeping, read_cached
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import DOCUMENT
from ranktune.solvers.data.readers.formats import (
    READERS,
    DataReader,
    check_options,
    check_part,
    find_reader,
    name_of,
    reader_of,
)
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.entries import BESIDE, columns_beside, file_beside
from ranktune.solvers.data.readers.parsing.options import LoadOptions, ReadOptions
from ranktune.solvers.data.readers.parsing.streams import check_path
from ranktune.solvers.data.sources.inspection import questions_on, suspects
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.columns import TEXT_RULES, aligned, as_taken, leaves_out_missing

if TYPE_CHECKING:
    from ranktune.solvers.data.readers.frames import FeatureSchema, FrameTable

__all__ = ["QuerySplit", "load", "read"]


_TRAIN_ONLY = ("n_features", "group", "layout")  # options that do not apply to vali and test
MANY_DOCUMENTS = 100
"""Documents of which some has a feature with a number in the later half, where the model learned from such."""


def load(
    train: object, *, vali: object = None, test: object = None, **options: Unpack[LoadOptions]
) -> list[QuerySplit]:
    """Read training data, with validation and test data where there are any.

    Parameters
    ----------
    train : str, Path, data frame, tuple or Queries
        What `read` takes; or a LETOR folder or the name "api-search", which have their own vali and test.
    vali, test : str, Path, data frame, tuple or Queries, optional
        Validation and test data. They get the features of train: missing ones are 0, unknown ones are an error.
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
    >>> from ranktune.solvers.data.sources import catalogue
    >>> X, y, qid = np.eye(4), [1, 0, 2, 0], [7, 7, 8, 8]
    >>> (split,) = catalogue.load((X, y, qid), vali=(X[:2], y[:2], qid[:2]))
    >>> split.train.n_queries, split.vali.n_queries, split.test
    (2, 1, None)
    """
    for source in (train, vali, test):
        check_path(source)
    reader = reader_of(train)
    if reader.splits:
        if vali is not None or test is not None:
            raise DataError(f"{train} brings its own validation and test queries. Leave vali= and test= out.")
        check_options(reader, options, train)
        splits: list[QuerySplit] = named(reader.splits)(train, **options)
        return splits
    fitted = read(train, **options)
    parts = [
        None if part is None else _like(fitted, part, what, options) for part, what in ((vali, "vali"), (test, "test"))
    ]
    return [QuerySplit(name_of(train), fitted, *parts)]


def read(
    source: object,
    *,
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    encoding: TableEncoding | None = None,
    graded: bool = True,
    solver: str = "",
    **options: Unpack[ReadOptions],
) -> Queries:
    """Read one source of documents.

    Parameters
    ----------
    source : str, Path, data frame, tuple, lightgbm.Dataset, xgboost.DMatrix or Queries
        A file: LETOR, RankLib or SVMlight text, csv, tsv, Parquet, Arrow, JSON documents (also the feature logs of
        Elasticsearch, OpenSearch and Solr), a TREC run, .npz. Or a data frame, also a lazy one; a tuple (X, y, qid); a
        data set of LightGBM or XGBoost; or Queries, which are returned as they are.
    n_features : int, optional
        Number of features: missing ones are 0, more are an error.
    feature_names : sequence of str, optional
        Names of the features. Of tables and frames these columns are taken, in this order; other sources must have
        these features if they have names.
    encoding : Encoding, optional
        How the columns of another table became the features of these names: tables and frames are taken alike, and need
        no options about columns of the same names. Without it, how columns become features is learnt.
    graded : bool, default=True
        Whether grades matter. If not, tables and frames need no column of grades.
    solver : str, optional
        That of the model that scores the documents, by which it takes them.
    **options
        Options of `read_text` (dtype, one_based, missing, max_features, layout, qid, group, grades)
        for text; of `WantedRoles` (grade, grades, qid, document, features, drop, levels, weight,
        document_weight, position, time, group_by_time, session, missing) for tables and frames, and qrels, a file of
        judgments that gives the grades.

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
    >>> from ranktune.solvers.data.sources import catalogue
    >>> queries = catalogue.read((np.eye(3), [2, 0, 1], ["a", "a", "b"]))
    >>> queries.n_queries, queries.grades
    (2, array([2., 0., 1.]))
    """
    check_path(source)
    names = None if feature_names is None else tuple(feature_names)
    n_features = len(names) if n_features is None and names is not None else n_features
    what = str(source) if isinstance(source, str | Path) else "the data"
    schema = _known(names, encoding)
    reader = reader_of(source)
    check_part(reader, source)
    if reader.has_columns:
        _fit_to_model(options, names, encoding, graded=graded)
    if solver in TEXT_RULES and is_text(source):
        options = cast(ReadOptions, {**options, **TEXT_RULES[solver]})
    queries = _read(reader, source, options, schema, n_features)
    if leaves_out_missing(solver) and reader is READERS["stored"] and queries.feature_names is None:
        raise DataError(
            f"{source}: to a model of XGBoost, a feature that a line leaves out is missing, and what "
            "ranktune.convert wrote does not tell it from 0. Give the file that was converted."
        )
    _check_alike(queries, schema, what)
    return queries if n_features is None else aligned(queries, n_features, names, what)


def is_table(source: object) -> bool:
    """Return whether source is a table file or a data frame, whose columns have names; nothing is read of it."""
    reader = find_reader(source)
    return reader is not None and reader.has_columns


def is_text(source: object) -> bool:
    """Return whether source is a file or a folder of text, whose lines may leave features out."""
    reader = find_reader(source)
    return reader is not None and "layout" in reader.option_names


def read_for(model: Model, source: object, *, graded: bool = True, **options: Unpack[ReadOptions]) -> Queries:
    """Return the queries of a source with the features of a model; a table is taken as its training table was."""
    queries = read(
        source,
        n_features=model.n_features,
        feature_names=model.feature_names,
        encoding=model.encoding,
        graded=graded,
        solver=model.solver,
        **options,
    )
    warn_of_other_features(queries, source, model.n_features)
    return as_taken(queries, model.solver, model.used_features)


def warn_of_other_features(queries: Queries, source: object, n_features: int) -> None:
    """Warn where the later half of numbered features never occurs: they are hardly those that a model learned from."""
    if queries.n_documents < MANY_DOCUMENTS or "n_features" not in reader_of(source).option_names:
        return
    X: Any = queries.features
    occur = np.bincount(X.indices, minlength=X.shape[1]) > 0 if queries.is_sparse else (X != 0.0).any(axis=0)
    last, what = (
        int(np.flatnonzero(occur).max(initial=-1)) + 1,
        source if isinstance(source, str | Path) else "the data",
    )
    if 2 * last <= n_features:
        warn(
            f"{what}: has features 1 to {last}, and the model learned from {n_features}: the others count as 0. Give "
            "the file that has the features of the training data."
        )


def open_table(
    source: object, wanted: WantedRoles | None = None, encoding: TableEncoding | None = None
) -> FrameTable | None:
    """Return a table file or a data frame as a table, which load and read take too; None for any other source.

    wanted says which columns are ids. The columns that an encoding knows as categories or dates are read as text where
    a file does not say their type.
    """
    if not is_table(source) or (isinstance(source, str | Path) and not Path(source).exists()):
        return None
    return _table(reader_of(source), source, wanted or WantedRoles(), encoding)


def _table(reader: DataReader, source: object, wanted: WantedRoles, encoding: TableEncoding | None) -> FrameTable:
    """Return what a reader makes of a source as a table."""
    from ranktune.solvers.data.readers.frames import as_table  # imports Arrow, which only tables need

    if not isinstance(source, str | Path):
        return as_table(named(reader.table)(source))
    path = Path(source)
    arguments = (wanted, () if encoding is None else tuple(encoding.columns)) if reader.is_table_file else ()
    return replace(as_table(named(reader.table)(path, *arguments)), path=path)


def decisions_of(table: FrameTable, options: ReadOptions) -> tuple[list[ColumnQuestion], ReadOptions]:
    """Return all that is to be decided about a table, and options with the answers without which it cannot be read."""
    asked = list[ColumnQuestion]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading it warns
        while True:
            try:
                queries = _queries_of(table, options)
            except Undecided as error:
                if error.decisions[0] in asked:  # its answer leads back to it
                    return asked, options
                asked, options = [*asked, *error.decisions], cast(ReadOptions, answered(options, error.decisions))
                if options.get("grade") == COLUMN:
                    options["grade"] = None  # of which the other questions are independent
                if NUMBER in str(options.get("grades")):
                    options["grades"] = re.sub("=[^=,]*(?=,|$)", "=0", str(options["grades"]))
            except (
                DataError,
                ParameterError,
            ):  # the answers leave it open which are the queries, or it has other faults
                return asked, options
            else:
                return [*asked, *questions_on(suspects(queries), options.get("features"))], options


def _known(names: tuple[str, ...] | None, encoding: TableEncoding | None) -> FeatureSchema | None:
    if names is None or encoding is None:
        return None
    from ranktune.solvers.data.readers.frames import FeatureSchema

    return FeatureSchema(names, encoding)


def _check_alike(queries: Queries, schema: FeatureSchema | None, what: str) -> None:
    if schema is not None and not alike(queries.encoding, schema.encoding):
        raise DataError(
            f"{what}: its dates or categories were taken in another way than those of the training data. Give the "
            "table itself instead of Queries, or read it by the feature_names and the encoding of the training Queries."
        )


def _fit_to_model(
    options: ReadOptions, names: tuple[str, ...] | None, encoding: TableEncoding | None, *, graded: bool
) -> None:
    """Change options to the columns of a model: its features are known, and without grades only they matter."""
    if names is not None:
        columns = names if encoding is None else tuple(dict.fromkeys(encoding.sources(names).values()))
        options.setdefault("features", columns)
        options.pop("drop", None)
        options.pop("group_by_time", None)
    if not graded:
        options["grade"] = None
        for name in ("qrels", "session", *OPTIONS):
            options.pop(name, None)  # type: ignore[misc]


def _read(
    reader: DataReader,
    source: object,
    options: ReadOptions,
    schema: FeatureSchema | None,
    n_features: int | None = None,
) -> Queries:
    check_options(reader, options, source)
    arguments: Json = {**options}
    if n_features is not None and "n_features" in reader.option_names:
        arguments["n_features"] = n_features
    place = Path(source) if isinstance(source, str | Path) else source

    def whole() -> Queries:
        if reader.table:
            table = _table(reader, source, WantedRoles.of(options), None if schema is None else schema.encoding)
            return _from_table(table, options, schema)
        queries: Queries = named(reader.queries)(place, **arguments)
        return queries

    if not isinstance(place, Path):
        return whole()
    beside = reader in (READERS["text"], READERS["csv"]) and file_beside(place, *BESIDE) is not None
    cached = not beside and options.get("layout") != "written"  # what is kept is of the file alone, without its zeros
    if schema is None and cached and is_worth_keeping(place):
        return read_cached(place, whole, cast(LoadOptions, arguments))
    queries = whole()
    return queries.given(**columns_beside(place, queries.n_documents)) if beside else queries


def _from_table(table: FrameTable, options: ReadOptions, schema: FeatureSchema | None = None) -> Queries:
    try:
        return _queries_of(table, options, schema)
    except Undecided as error:
        asked = error.decisions if schema is not None else decisions_of(table, options)[0]
        raise Undecided(asked, str(table.path or "")) from None
    except DataError as error:
        if table.path is None:
            raise
        raise in_file(table.path, error) from None


def _queries_of(table: FrameTable, options: ReadOptions, schema: FeatureSchema | None = None) -> Queries:
    from ranktune.solvers.data.readers.frames import queries_of

    qrels = options.get("qrels")
    judgments = None if qrels is None else read_judgments(qrels, options)
    if schema is not None:
        options = _with_roles(options, schema.encoding, table)
    return queries_of(table, WantedRoles.of(options), options.get("missing", "keep"), judgments, schema)


def _with_roles(options: ReadOptions, encoding: TableEncoding, table: FrameTable) -> ReadOptions:
    """Return options with those that are not given as they were for the training table, if those columns exist."""
    present = set(table.frame.column_names)
    columns = {role.option: getattr(encoding, name) for name, role in ROLES.items() if hasattr(encoding, name)}
    roles = {option: name for option, name in columns.items() if name in present}
    of_documents = [option for option, name in OPTIONS.items() if column_of(name).of == DOCUMENT]
    fitting = ["session", *of_documents]  # for fitting alone: others may lack it
    chosen = {name: value for name, value in options.items() if name not in fitting or value in present}
    return cast(ReadOptions, {"missing": encoding.missing, **roles, **chosen})


def _like(train: Queries, source: object, what: str, options: LoadOptions) -> Queries:
    """Return the queries of source with the features and the layout of train."""
    reader = reader_of(source)
    check_part(reader, source)
    names = reader.option_names
    shared = {
        name: value
        for name, value in options.items()
        if name in names and name not in _TRAIN_ONLY and (name != "qid" or isinstance(value, str))
    }
    reading = cast(ReadOptions, shared)
    if "layout" in names:  # text: the message about an unknown feature names its line
        reading["layout"] = "sparse" if train.is_sparse else "dense"
        return read(source, n_features=train.n_features, **reading)
    what = str(source) if isinstance(source, str | Path) else what
    trained = _known(train.feature_names, train.encoding)
    queries = _read(reader, source, reading, trained)
    _check_alike(queries, trained, what)
    return aligned(queries, train.n_features, train.feature_names, what)
