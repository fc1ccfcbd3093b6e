"""What all Queries must be, whatever they were read from: one table of rules, checked whenever they are built.

Kernels rely on these rules: they check no index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.core.arrays import Array, Features, stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import EXACT, repeated
from ranktune.solvers.data.columns.table import column_of
from ranktune.solvers.data.query_columns import KINDS
from ranktune.solvers.data.values import as_features, blocks, check_layout, has_missing_values

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

MOST_FEATURES = 1 << 27
"""Of more features the weights of a linear model alone would take more than a gigabyte."""


def check_queries(queries: Queries, *, features_checked: bool = False) -> None:
    """Raise DataError for the first rule that queries break; those that read all features are left out on demand."""
    for rule in RULES:
        if not (features_checked and rule in READ_FEATURES):
            rule(queries)


def checked_features(X: Features | ArrayLike) -> tuple[Features, bool, bool]:
    """Return X as features, whether some are missing, and whether all are known to be finite."""
    features = as_features(X)
    finite = sums_up(stored_values(features))  # a pass without a temporary array, the only one in most cases
    return features, not finite and has_missing_values(features), finite


def check_id_type(ids: Array, name: str) -> None:
    """Raise DataError for an array that cannot hold ids: of another shape than (n,), of complex numbers or records."""
    if ids.ndim != 1:
        raise DataError(f"{name} has shape {ids.shape}: it must be flat, one id per row.")
    if ids.dtype.kind in "cV":
        raise DataError(f"{name} holds {KINDS[ids.dtype.kind]} ({ids.dtype}): ids are numbers, text or dates.")


def _check_documents(queries: Queries) -> None:
    if queries.features.ndim != 2:
        raise DataError(f"features have shape {queries.features.shape}: it must be (n_documents, n_features).")
    if stored_values(queries.features).dtype not in (np.float32, np.float64):
        raise DataError(f"features are {queries.features.dtype}: they must be float32 or float64. Convert them.")
    n_documents, n_features = queries.features.shape
    if queries.grades.shape != (n_documents,):
        raise DataError(
            f"{len(queries.grades)} grades of shape {queries.grades.shape} for {n_documents} documents: there must be "
            "one grade per row."
        )
    if n_documents == 0:
        raise DataError("there are no documents: at least one row is needed.")
    if n_features == 0:
        raise DataError("the documents have no features: at least one column is needed.")
    if n_features > MOST_FEATURES:
        raise DataError(
            f"{n_features} features are more than the {MOST_FEATURES} that fit a model. Is the shape right? Else hash "
            "them to fewer columns."
        )


def _check_starts(queries: Queries) -> None:
    starts = queries.starts
    rising = (
        starts.ndim == 1 and starts.dtype.kind == "i" and len(starts) > 1 and bool((starts[1:] > starts[:-1]).all())
    )
    if not rising or starts[0] != 0 or starts[-1] != queries.n_documents:
        raise DataError(
            "starts must rise from 0 to the number of documents, with at least one document per query, as int64."
        )


def _check_order(queries: Queries) -> None:
    rows, n_documents = queries.rows, queries.n_documents
    if rows is None:
        return
    is_order = rows.shape == (n_documents,) and rows.dtype.kind == "i" and rows.min() >= 0 and rows.max() < n_documents
    if not is_order or np.bincount(rows, minlength=n_documents).max() != 1:
        raise DataError(f"rows must hold each number from 0 to {n_documents - 1} once: the caller's row of a document.")


def _check_layout(queries: Queries) -> None:
    if not isinstance(queries.features, np.ndarray):
        check_layout(queries.features)


def sums_up(values: Array) -> bool:
    """Return whether the sum is finite, and so all values; the sum of finite ones may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def _check_features(queries: Queries) -> None:
    features = queries.features
    values = stored_values(features)
    if sums_up(values):
        return
    is_bad, at = (np.isinf if queries.has_missing else _not_finite), 0
    for block in blocks(values):
        bad = np.flatnonzero(is_bad(block))
        if len(bad):
            at += int(bad[0])
            break
        at += block.size
    else:
        return
    if isinstance(features, np.ndarray):
        row, column = divmod(at, features.shape[1])
    else:
        row, column = int(np.searchsorted(features.indptr, at, side="right")) - 1, int(features.indices[at])
    value = values.ravel()[at]
    rule = "features must be finite, or NaN where the value is missing"
    if np.isnan(value):
        rule = "features may be missing (NaN) only where has_missing=True says so"
    where = f"row {_callers_row(queries, row)}, column {column}"
    raise DataError(f"the feature in {where} is {value}: {rule}. Correct it.")


def _check_grades(queries: Queries) -> None:
    finite = np.isfinite(queries.grades)
    if not finite.all():
        at = int(np.flatnonzero(~finite)[0])
        raise DataError(
            f"the grade in row {_callers_row(queries, at)} is {queries.grades[at]}: grades must be finite. Remove or "
            "fix that row."
        )


def _check_query_ids(queries: Queries) -> None:
    ids = queries.query_ids
    check_id_type(ids, "query_ids")
    if len(ids) != queries.n_queries:
        raise DataError(f"{len(ids)} query ids for {queries.n_queries} queries.")
    kind = ids.dtype.kind
    if kind in "biu":
        return
    if kind == "f":
        wrong = ~(np.abs(ids) < 2.0 ** (np.finfo(ids.dtype).nmant + 1))
    elif kind in "mM":
        wrong = ~np.isfinite(ids)
    elif kind in "US":
        wrong = ids == ids.dtype.type()
    else:
        wrong = np.fromiter((_is_no_id(value) for value in ids.tolist()), dtype=bool, count=len(ids))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        row = _callers_row(queries, int(queries.starts[at]))
        rule = "every row needs the id of its query, which is not empty"
        if isinstance(ids[at], float | np.floating) and np.isfinite(ids[at]):
            rule = "numbers with a point do not tell such large ids apart. Give whole numbers, or text"
        raise DataError(f"qid[{row}] is {ids[at]}: {rule}.")


def _check_document_ids(queries: Queries) -> None:
    ids = queries.document_ids
    if ids is None:
        return
    check_id_type(ids, "document_ids")
    if len(ids) != queries.n_documents:
        raise DataError(f"{len(ids)} document ids for {queries.n_documents} documents.")


def _check_names(queries: Queries) -> None:
    names = queries.feature_names
    if names is None:
        return
    if len(names) != queries.n_features:
        raise DataError(f"{len(names)} feature names for {queries.n_features} features.")
    if len(set(names)) < len(names):
        raise DataError(
            f"several features are called {repeated(names)!r}: names must differ. Rename or remove one of them."
        )


def _check_columns(queries: Queries) -> None:
    for name, values in queries.columns.items():
        column_of(name).check(values, name, queries)


RULES: tuple[Callable[[Queries], None], ...] = (
    _check_documents,
    _check_starts,
    _check_order,
    _check_layout,
    _check_features,
    _check_grades,
    _check_query_ids,
    _check_document_ids,
    _check_names,
    _check_columns,
)
"""In this order: the later ones rely on the earlier ones."""

READ_FEATURES = (_check_layout, _check_features)
"""The rules that take a pass over the features."""


def _callers_row(queries: Queries, row: int) -> int:
    return row if queries.rows is None else int(queries.rows[row])


def _not_finite(values: Array) -> Array:
    bad: Array = ~np.isfinite(values)
    return bad


def _is_no_id(value: object) -> bool:
    """Return whether value is None, empty text, a float from EXACT on, or does not equal itself: NaN, NaT, NA."""
    if isinstance(value, tuple):
        return any(_is_no_id(part) for part in value)
    if value is None or (isinstance(value, str | bytes) and not value):
        return True
    if isinstance(value, float) and abs(value) >= EXACT:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
