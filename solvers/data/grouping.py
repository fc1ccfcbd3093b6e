"""Which rows belong to which query: from an id per row (any order) or from group sizes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Array, Ids, Ints, Sizes, as_objects
from ranktune.solvers.core.errors import DataError, warn
from ranktune.solvers.data.checks import check_id_type
from ranktune.solvers.data.columns.usual import plain, usual

MANY_ROWS = 1000
"""Rows from which on a single query is unlikely."""


@dataclass(frozen=True)
class Grouping:
    """Rows grouped by query, queries in the order of their first row, rows of a query in their given order.

    starts  (n_queries + 1,) first grouped row of each query, and the number of rows
    ids     (n_queries,) what the caller calls each query
    rows    (n_rows,) the caller's row at each grouped position; None when the rows were grouped already
    """

    starts: Ints
    ids: Array
    rows: Ints | None


def group_rows(n_rows: int, qid: Ids | None = None, group: Sizes | None = None) -> Grouping:
    """Return the grouping of n_rows rows; with neither qid nor group, all rows are one query.

    qid is one id per row, of any hashable type and in any order. group is the number of rows of each query, in
    the order of the rows (LightGBM's and XGBoost's convention).
    """
    if qid is None and group is None and n_rows > MANY_ROWS:
        warn_of_one_query(n_rows)
    if qid is not None and group is not None:
        raise DataError("both qid= and group= were given: they say the same. Pass only one of them.")
    if group is not None:
        return _from_sizes(n_rows, group)
    if qid is None:
        return Grouping(np.array([0, n_rows], dtype=np.int64), np.zeros(1, dtype=np.int64), None)
    return _from_ids(n_rows, qid)


def check_no_query_column(X: object, *, grouped: bool) -> None:
    """Raise DataError for a table, or an array of records, with query ids, which are no feature. XGBoost takes qid so.

    grouped: the queries are given besides.
    """
    records = getattr(getattr(X, "dtype", None), "names", None) or ()
    names = usual("qid") if grouped else usual("qid", "group")
    columns = getattr(X, "column_names", getattr(X, "columns", records))  # of pyarrow, of others
    name = next((name for name in columns if plain(name) in names), None)
    if name is not None:
        ids = "" if grouped else f", and the queries by qid=X[{name!r}]"
        raise DataError(
            f"X has a column {name!r}, which names the query of each row and is no feature. Give X without it{ids} "
            "or ranktune.read(frame), which finds queries, grades and features by their names."
        )


def warn_of_one_query(n_rows: int) -> None:
    """Warn (RankTuneWarning) that all rows are one query, as nothing says which are."""
    warn(
        f"all {n_rows} rows are taken as one query. Give the query of each row (qid=), or the sizes of the queries "
        "(group=)."
    )


def _from_sizes(n_rows: int, group: Sizes) -> Grouping:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu":
        raise DataError(
            "group= must be a flat list of whole numbers, the rows of each query. For one id per row use qid=."
        )
    if sizes.min() <= 0:
        where = int(np.flatnonzero(sizes <= 0)[0])
        raise DataError(
            f"group[{where}] is {sizes[where]}: every query needs at least one row. Leave empty queries out."
        )
    total = sum(sizes.tolist())  # of Python's integers, which do not overflow
    if total != n_rows:
        hint = " It has one entry per row: did you mean qid=?" if len(sizes) == n_rows else ""
        raise DataError(f"group= sums to {total}, but there are {n_rows} rows: the sizes must cover them all.{hint}")
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return Grouping(starts, np.arange(len(sizes), dtype=np.int64), None)


def _from_ids(n_rows: int, qid: Ids) -> Grouping:
    codes, ids = _codes(n_rows, qid)
    if n_rows == 0:
        return Grouping(np.zeros(1, dtype=np.int64), ids, None)
    adjacent = bool((np.diff(codes) >= 0).all())  # codes rise by first appearance: sorted means already grouped
    rows = None if adjacent else np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))]).astype(np.int64)
    return Grouping(starts, ids, rows)


def _codes(n_rows: int, qid: Ids) -> tuple[Ints, Array]:
    """Return the number of each row's query, counted by first appearance, and the ids in that order."""
    array = qid if isinstance(qid, np.ndarray) else _array_or_none(qid)
    if array is not None:
        check_id_type(array, "qid=")
    length = len(qid)
    if length != n_rows:
        raise DataError(f"qid= has {length} entries, but there are {n_rows} rows: it needs one id per row.")
    if array is None or array.dtype == object:
        return _codes_of_objects(qid)
    heads = np.flatnonzero(np.concatenate([[True], array[1:] != array[:-1]])) if n_rows else np.zeros(0, dtype=np.int64)
    runs = array[heads]
    ids, first, inverse = np.unique(runs, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty(len(ids), dtype=np.int64)
    number[by_appearance] = np.arange(len(ids))
    lengths = np.diff(np.concatenate([heads, [n_rows]]))
    return np.repeat(number[inverse.ravel()], lengths), ids[by_appearance]


def _array_or_none(qid: Sequence[Hashable]) -> Array | None:
    """Return qid as a flat numeric or text array, or None where that would change what the ids are."""
    kinds = {type(value) for value in qid}
    if kinds <= {str} and any(value.endswith("\0") for value in qid if isinstance(value, str)):
        return None  # an array would drop it
    if kinds <= {int} or kinds <= {str}:
        try:
            array = np.asarray(qid)
        except OverflowError:
            return None
        return None if array.dtype.kind == "f" else array  # whole numbers on both sides of 2**63 would be rounded
    if hasattr(qid, "to_numpy"):
        return np.asarray(qid.to_numpy())
    return None


def _codes_of_objects(qid: Iterable[Hashable]) -> tuple[Ints, Array]:
    values = list(qid)
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))
    except TypeError as error:
        raise DataError(
            f"qid= holds a value that cannot be an id ({error}): ids must be hashable, such as numbers or text."
        ) from None
    return codes, as_objects(numbers)
