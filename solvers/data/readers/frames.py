"""Tables to Queries, one row per document: files, and frames of every library that gives Arrow's stream."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from ranktune.solvers.core.arrays import Array, Ids, Ints, as_objects, put_back
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import DataError, listed, warn
from ranktune.solvers.data.columns.arrow import TableColumn, as_arrow, encoded_values, is_frame, numbered, table_column
from ranktune.solvers.data.columns.dates import dates, with_dates
from ranktune.solvers.data.columns.encoding import TableEncoding, check_features
from ranktune.solvers.data.columns.grammar import number_of, repeated, values_by_name
from ranktune.solvers.data.columns.learning import FeatureColumn, feature_columns, learn
from ranktune.solvers.data.columns.roles import GRADES_RULE, Roles, WantedRoles, name_grades, number_each, roles
from ranktune.solvers.data.columns.table import COLUMNS, OPTIONS, column_of
from ranktune.solvers.data.columns.usual import plain, usual, usual_grades
from ranktune.solvers.data.columns.values import contents, encoded, numbers
from ranktune.solvers.data.grouping import group_rows
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import Column
from ranktune.solvers.data.readers.judgments import GradeTable
from ranktune.solvers.data.readers.parsing.options import Missing


def is_table(value: object) -> bool:
    """Return whether value is a data frame, or a `FrameTable` of one."""
    return isinstance(value, FrameTable) or is_frame(value)


def as_table(value: object) -> FrameTable:
    """Return a data frame, or a `FrameTable` of one, as a table."""
    return value if isinstance(value, FrameTable) else FrameTable(value)


@dataclass(frozen=True)
class FrameTable:
    """An Arrow table, and what is known of it besides its columns. It is made of any data frame.

    features are the feature columns where the format of the file says which they are. sizes are the numbers of
    documents of the queries where a file beside it gives them. path is the file, for messages. grades and ids, of
    documents and their queries, are given for a frame that holds features alone.
    """

    frame: pa.Table
    features: tuple[str, ...] | None = None
    sizes: Sequence[int] | None = None
    path: Path | None = None
    grades: ArrayLike | None = None
    ids: Ids | None = None
    index: Sequence[str] = field(default=(), init=False)

    def __post_init__(self) -> None:
        """Make an Arrow table of the frame; names of an index of pandas are for messages."""
        index = getattr(getattr(self.frame, "index", None), "names", ())
        object.__setattr__(self, "index", tuple(name for name in index if name is not None))
        object.__setattr__(self, "frame", as_arrow(self.frame))

    def roles(self, wanted: WantedRoles, schema: FeatureSchema | None = None, *, qrels: bool = False) -> Roles:
        """Return how the columns are taken."""
        names = tuple(self.frame.column_names)
        if self.frame.num_rows == 0:
            raise DataError("the frame has no rows: there must be one a document.")
        if self.ids is not None:
            needed = names if schema is None else set(schema.columns)
            return Roles({}, tuple(name for name in names if name in needed))
        try:
            return roles(names, wanted, known_features=self.features, grouped=self.sizes is not None, qrels=qrels)
        except DataError as error:
            if not self.index:
                raise
            raise DataError(
                f"{error} {listed(map(repr, self.index))} is the index of the frame: give reset_index() of it."
            ) from None

    def query_ids(self, roles: Roles) -> Ids | None:
        """Return the query id of each row, None where a file gives the sizes of the queries."""
        return self.ids if roles["query"] is None else _ids(self.frame, roles["query"])


class FeatureSchema(NamedTuple):
    """The features that a table must give, those of a model or of the training data, and how columns become them."""

    feature_names: tuple[str, ...]
    encoding: TableEncoding

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that give the features."""
        return tuple(dict.fromkeys(self.encoding.sources(self.feature_names).values()))


def queries_of(
    table: FrameTable,
    wanted: WantedRoles,
    missing: Missing = "keep",
    qrels: GradeTable | None = None,
    schema: FeatureSchema | None = None,
) -> Queries:
    """Return the rows of a table grouped by query, with the grades of qrels where they are given."""
    check_choice("missing", missing, get_args(Missing))
    frame = table.frame
    if schema is not None and wanted.features is not None:
        check_features(frame.column_names, schema.columns, exact=False)
    columns = table.roles(wanted, schema, qrels=qrels is not None)
    ids = table.query_ids(columns)
    documents = None if columns["document"] is None else _ids(frame, columns["document"])
    judged = None if qrels is None or table.grades is not None else qrels.of(ids, documents)
    if judged is not None and judged.used is not None:
        used = judged.used
        frame, ids, documents = frame.filter(pa.array(used)), np.asarray(ids)[used], np.asarray(documents)[used]
    sizes = table.sizes if ids is None else None
    frame = frame if schema is not None else with_dates(frame, columns.features)
    schema = schema or _learnt(frame, columns, ids, sizes, missing=missing, levels=wanted.levels)
    check_features(columns.features, schema.columns)
    X = encoded(frame, schema.feature_names, schema.encoding, missing)
    y: ArrayLike
    if table.grades is not None:
        y = table.grades
    elif judged is not None:
        y = judged.grades
    elif wanted.grade is None or columns["grade"] is None:
        y = np.zeros(frame.num_rows)
    else:
        y = _grades(frame, columns["grade"], wanted)
    queries = Queries.from_arrays(
        X, y, qid=ids, group=sizes, document_ids=documents, feature_names=schema.feature_names
    )
    cells = None if wanted.grade is None else contents(frame, schema.encoding)  # to score alone they do not matter
    rows = slice(None) if queries.rows is None else queries.rows
    queries = replace(queries, encoding=schema.encoding).replaced(contents=None if cells is None else cells[rows])
    _check_documents_once(queries)
    labels = {name: label for option, name in OPTIONS.items() if (label := columns[option]) is not None}
    arrays = {name: _values(table_column(frame, label), column_of(name)) for name, label in labels.items()}
    if judged is not None and judged.weights is not None:
        arrays.setdefault("document_weights", judged.weights)
    if (name := columns["session"]) is not None and "times" in arrays:
        arrays["times"] = _latest_of_sessions(_ids(frame, name), arrays["times"])
    called = {name: f"the {COLUMNS[name].what} column {label!r}" for name, label in labels.items()}
    queries = queries.given(called, **arrays)
    if (name := columns["order"]) is not None:
        queries = _by_time(queries, _times(table_column(frame, name)))
    return queries


def _learnt(
    frame: pa.Table, roles: Roles, ids: Ids | None, sizes: Sequence[int] | None, *, missing: str, levels: int
) -> FeatureSchema:
    """Return the features of a training table and how its columns become them."""
    encoding = learn(frame, roles, cache(lambda: _query_of_row(frame.num_rows, ids, sizes)), missing, levels)
    return FeatureSchema(tuple(name for label in roles.features for name in encoding.features_of(label)), encoding)


def learnt(table: FrameTable, wanted: WantedRoles, missing: Missing, *, qrels: bool) -> FeatureSchema:
    """Return the features of a training table and how its columns become them."""
    return _learnt(*_training_rows(table, wanted, qrels), missing=missing, levels=wanted.levels)


def taken_as(
    table: FrameTable, wanted: WantedRoles, missing: Missing, *, qrels: bool
) -> tuple[Roles, dict[str, FeatureColumn]]:
    """Return how the columns of a training table are taken, and as what the feature columns."""
    frame, columns, ids, sizes = _training_rows(table, wanted, qrels)
    return columns, feature_columns(
        frame, columns, cache(lambda: _query_of_row(frame.num_rows, ids, sizes)), missing, wanted.levels
    )


def _training_rows(
    table: FrameTable, wanted: WantedRoles, qrels: bool
) -> tuple[pa.Table, Roles, Ids | None, Sequence[int] | None]:
    columns = table.roles(wanted, qrels=qrels)
    ids = table.query_ids(columns)
    return table.frame, columns, ids, table.sizes if ids is None else None


def _query_of_row(n_rows: int, ids: Ids | None, sizes: Sequence[int] | None) -> Ints:
    """Return the number of the query of each row, (n_rows,)."""
    grouping = group_rows(n_rows, ids, sizes)
    numbers = np.repeat(np.arange(len(grouping.ids)), np.diff(grouping.starts))
    return put_back(numbers, grouping.rows)


def _grades(frame: pa.Table, name: str, wanted: WantedRoles) -> Array:
    """Return the grades, (n_rows,); ratings that were not named as the grade may be those of a product."""
    column = table_column(frame, name)
    others = [other for other in frame.column_names if other not in (name, *wanted.named)]
    grade_of = values_by_name(wanted.grades or (), GRADES_RULE, number_of)
    if plain(name) in usual("rating") and wanted.grade == WantedRoles.grade and column.is_numeric:
        values = numbers(column, "grade", "keep")
        if not np.array_equal(values, np.round(values)):
            raise name_grades(
                f"no column is called as grades are but {name!r}, and it has missing values or fractions, as ratings "
                "of products have.",
                others,
            )
    elif column.is_text:
        texts = numbered(column)[1]
        words = [text for text in texts if text not in grade_of and number_of(text) is None]
        if words:
            problem = f"the grade column {name!r} holds words such as {words[0][:40]!r}, {len(words):,} in all."
            raise number_each(problem, words, grade_of or usual_grades(texts), others)
    return numbers(column, "grade", read=(lambda text: grade_of.get(text, number_of(text))) if grade_of else number_of)


def _check_documents_once(queries: Queries) -> None:
    """Warn (RankTuneWarning) where a query has a document twice."""
    if queries.document_ids is None:
        return
    names = queries.document_ids.tolist()
    parts = ((number, names[a:b]) for number, (a, b) in enumerate(pairwise(queries.starts.tolist())))
    with suppress(TypeError):  # of lists, which are no ids
        number, part = next(((number, part) for number, part in parts if len(set(part)) < len(part)), (0, []))
        if part:
            warn(
                f"document {repeated(part)!r} is in query {queries.query_ids[number]} twice. Remove one of the rows, "
                'or say which column holds the ids of documents: document="COLUMN".'
            )


def _values(column: TableColumn, kind: Column) -> Array:
    """Return a column of a table that becomes one of queries."""
    return _times(column) if kind.has_dates else numbers(column, kind.what)


def _times(column: TableColumn) -> Array:
    """Return a column of times as numbers, or as dates in UTC."""
    if column.is_numeric and not column.is_empty:
        values = numbers(column, "time", "keep")
    else:
        try:
            values = dates(column)
        except DataError:
            raise DataError(
                f"the time column {column.name!r} holds {column.values[0].as_py()!r}: times are numbers, dates, or "
                "text such as 2026-01-31T12:00 (ISO 8601) or 31.01.2026."
            ) from None
    absent = np.isnan(values)
    if absent.any():
        row = int(np.flatnonzero(absent)[0])
        raise DataError(f"the time column {column.name!r} has no value in row {row}. Every row needs one; fill it in.")
    return values if column.is_numeric else values.astype(np.int64).astype("datetime64[us]")


def _latest_of_sessions(sessions: Ids, times: Array) -> Array:
    """Return the latest time of the session of each row, (n_rows,)."""
    numbers = _query_of_row(len(times), sessions, None)
    latest = np.full(numbers.max() + 1, times.min())
    np.maximum.at(latest, numbers, times)
    return latest[numbers]


def _by_time(queries: Queries, times: Array) -> Queries:
    """Return the queries in the order of their latest document, equal ones as they were."""
    values = times if queries.rows is None else times[queries.rows]
    order = np.argsort(np.maximum.reduceat(values, queries.starts[:-1]), kind="stable")
    places = queries.documents_of(order)
    rows = np.arange(queries.n_documents) if queries.rows is None else queries.rows
    return replace(queries.select(order), rows=rows[places])


def _ids(frame: pa.Table, name: str) -> Array:
    column = table_column(frame, name)
    if column.values.null_count:
        row = int(np.flatnonzero(np.asarray(column.values.is_null()))[0])
        raise DataError(f"the column {name!r} has no id in row {row}. Every row needs one; remove or fix that row.")
    if pa.types.is_integer(column.dtype):
        return np.asarray(column.values.to_numpy())
    rows, values = encoded_values(column.values)
    return as_objects(values.to_pylist())[rows]
