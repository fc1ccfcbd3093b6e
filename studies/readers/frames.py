"""Data frames to Queries, one row a document: pandas, polars and every other library that narwhals supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries

from ranktune.solvers.core.arrays import Array, Matrix
from ranktune.solvers.core.errors import DataError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.studies.readers.options import Missing, check_missing

_GRADES = ("grade", "label", "relevance", "rel", "y")
_QUERIES = ("qid", "query", "query_id", "queryid", "group", "group_id")
_DOCUMENTS = ("document", "docid", "doc_id", "document_id")

Frame: TypeAlias = nw.DataFrame[IntoDataFrame]
Series: TypeAlias = nw.Series[IntoSeries]


def is_frame(value: object) -> bool:
    """Return whether value is a data frame that narwhals supports, eager or lazy."""
    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)


def from_frame(
    frame: object,
    *,
    grade: str | None = "grade",
    qid: str = "qid",
    document: str | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Queries:
    """Return the rows of a data frame grouped by query.

    Parameters
    ----------
    frame : data frame
        pandas, polars, pyarrow or another eager frame that narwhals supports, one row a document.
    grade : str or None, default="grade"
        Column of the grades. Without a column of the default name, the one called label, relevance, rel or y is used.
        With None, all grades are 0.
    qid : str, default="qid"
        Column of the query ids, numbers or text, in any order. Without a column of the default name, the one called
        query, query_id, queryid, group or group_id is used.
    document : str, optional
        Column of the document ids. By default the one called document, docid, doc_id or document_id, if there is one.
    features : sequence of str, optional
        The feature columns, all numeric. By default all other columns.
    missing : {"error", "zero"}, default="error"
        Whether empty, NaN and infinite values of features are errors or are read as 0.

    Returns
    -------
    Queries
        The documents grouped by query; the features are float32 if every column is, else float64.

    Raises
    ------
    DataError
        A column is missing, holds text or has missing values. The message names it and the remedy.
    ParameterError
        missing has an unknown value.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktune.studies.readers.frames import from_frame
    >>> frame = pd.DataFrame({"qid": ["a", "a", "b"], "grade": [1, 0, 2], "bm25": [0.5, 0.2, 0.9]})
    >>> queries = from_frame(frame)
    >>> queries.n_queries, queries.feature_names
    (2, ('bm25',))
    """
    check_missing(missing)
    table = _table(frame)
    columns = list(table.columns)
    if grade is None:
        of_grades = _only(columns, _GRADES, features)
    else:
        of_grades = _column(columns, grade, _GRADES, "grade", "the grades")
    of_queries = _column(columns, qid, _QUERIES, "qid", "the query ids")
    document = _document(columns, document, features)
    others = [name for name in columns if name not in (of_grades, of_queries, document)]
    names = others if features is None else _wanted(columns, features)
    if not names:
        raise DataError(f"the frame has no feature columns, only {', '.join(map(str, columns))}. Add numeric columns.")
    X = _matrix([table[name] for name in names], zero_missing=missing == "zero")
    y = np.zeros(len(table)) if grade is None else _numbers(table[str(of_grades)], "grade")
    documents = None if document is None else _ids(table[document], document)
    return Queries.from_arrays(
        X,
        y,
        qid=_ids(table[of_queries], of_queries),
        document_ids=documents,
        feature_names=[str(name) for name in names],
    )


def _table(frame: object) -> Frame:
    try:
        table = nw.from_native(frame, pass_through=True)
    except Exception as error:  # each backend has its own, for example for columns of one name
        raise DataError(f"the frame cannot be used: {error}") from error
    if isinstance(table, nw.LazyFrame):
        raise DataError("the frame is lazy: call its collect() before.")
    if not isinstance(table, nw.DataFrame):
        raise DataError(f"expected a data frame (pandas, polars, pyarrow ...), got {type(frame).__name__}.")
    if len(set(table.columns)) < len(table.columns):
        raise DataError("the frame has several columns of one name. Rename them.")
    if len(table) == 0:
        raise DataError("the frame has no rows: there must be one a document.")
    return table


def _column(columns: list[str], given: str, known: tuple[str, ...], default: str, what: str) -> str:
    """Return the column given, or, where that is the default and missing, the only one of the known names."""
    if given in columns:
        return given
    if given != default:
        raise DataError(f"the frame has no column {given!r} for {what}. {nearest(given, map(str, columns))}")
    found = [name for name in columns if str(name).lower() in known]
    if len(found) == 1:
        return found[0]
    problem = f"several columns may be {what} ({', '.join(found)})" if found else f"no column for {what}"
    raise DataError(f'the frame has {problem}. Name it: {default}="...". Its columns: {", ".join(map(str, columns))}.')


def _document(columns: list[str], given: str | None, features: Sequence[str] | None) -> str | None:
    if given is not None:
        return _wanted(columns, [given])[0]
    return _only(columns, _DOCUMENTS, features)


def _only(columns: list[str], known: tuple[str, ...], features: Sequence[str] | None) -> str | None:
    """Return the only column of a known name that is not a feature; None for none or several."""
    found = [name for name in columns if str(name).lower() in known and name not in (features or ())]
    return found[0] if len(found) == 1 else None


def _wanted(columns: list[str], names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in columns:
            raise DataError(f"the frame has no column {name!r}. {nearest(str(name), map(str, columns))}")
    return list(names)


def _matrix(series: list[Series], *, zero_missing: bool) -> Matrix:
    dtype = np.float32 if all(column.dtype == nw.Float32 for column in series) else np.float64
    matrix = np.empty((len(series[0]), len(series)), dtype=dtype)
    for number, column in enumerate(series):
        matrix[:, number] = _numbers(column, "feature", zero_missing=zero_missing)
    return matrix


def _numbers(column: Series, what: str, *, zero_missing: bool = False) -> Matrix:
    """Return the numbers of a column, all finite; with zero_missing, 0 for those that are missing or not finite."""
    name, dtype = column.name, column.dtype
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        advice = (
            "Turn it into numbers, or leave it out by features=[...]" if what == "feature" else "Turn it into numbers"
        )
        raise DataError(f"the {what} column {name!r} holds {dtype}, not numbers. {advice}.")
    if zero_missing and column.null_count():
        column = column.fill_null(False if dtype == nw.Boolean else 0)
    remedy = ', or read them as 0: missing="zero"' if what == "feature" else ""
    if column.null_count():
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(
            f"the {what} column {name!r} has {column.null_count()} missing values, the first in row {row}. "
            f"Fill them in, remove those rows{remedy}."
        )
    values = column.to_numpy()
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any() and zero_missing:
        return np.where(bad, values.dtype.type(0), values)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"the {what} column {name!r} is {values[row]} in row {row}. Every value must be finite: "
            f"correct it, remove the row{remedy}."
        )
    return values


def _ids(column: Series, name: str) -> Array:
    if column.null_count():
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(f"the column {name!r} has no id in row {row}. Every row needs one; remove or fix that row.")
    if column.dtype.is_integer():
        return column.to_numpy()
    ids = np.empty(len(column), dtype=object)
    ids[:] = column.to_list()
    return ids
