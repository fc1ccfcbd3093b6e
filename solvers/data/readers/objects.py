"""Objects as data: Queries, arrays, and the data sets of LightGBM and XGBoost."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.arrow import is_frame
from ranktune.solvers.data.grouping import check_no_query_column
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.feature_rows import DENSE_SHARE


def as_it_is(queries: Queries) -> Queries:
    """Return queries."""
    return queries


def are_arrays(source: object) -> bool:
    """Return whether source is (X, y, qid)."""
    return isinstance(source, tuple) and len(source) == 3


def from_arrays(parts: tuple[Any, Any, Any]) -> Queries:
    """Return the queries of (X, y, qid)."""
    X, y, qid = parts
    return Queries.from_arrays(X, y, qid=qid)


def are_parts(source: object) -> bool:
    """Return whether source is (X, y, qid) with a data frame of features."""
    return isinstance(source, tuple) and len(source) == 3 and is_frame(source[0])


def table_of_parts(parts: tuple[Any, Any, Any]) -> FrameTable:
    """Return the table of a data frame of features, grades and query ids."""
    frame, grades, qid = parts
    check_no_query_column(frame, grouped=True)
    return FrameTable(frame, grades=grades, ids=qid)


def from_lightgbm(dataset: Any) -> Queries:
    """Return the queries of a lightgbm.Dataset that keeps its raw data and has groups."""
    X, y, group = dataset.data, dataset.label, dataset.group
    if X is None:
        raise DataError(
            "the lightgbm.Dataset has freed its raw data. Make it with free_raw_data=False, or give X, y and qid."
        )
    if isinstance(X, str) or not hasattr(X, "shape"):
        raise DataError(f"the lightgbm.Dataset holds {type(X).__name__}, not a matrix. Give the file or X, y and qid.")
    if y is None or group is None:
        raise DataError(
            f"the lightgbm.Dataset has no {'labels' if y is None else 'groups'}. Set them, or give X, y and qid."
        )
    names = dataset.feature_name if isinstance(dataset.feature_name, list) else None
    if names == [f"Column_{number}" for number in range(X.shape[1])]:  # the default names of a data set of LightGBM
        names = None
    if names is None and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    queries = Queries.from_arrays(X, y, group=np.asarray(group), feature_names=names)
    return _weighted(queries, dataset.weight)


def from_xgboost(matrix: Any) -> Queries:
    """Return the queries of an xgboost.DMatrix that has groups.

    A value that it lacks is missing to XGBoost, and so it is here; in a matrix that lacks most values it is read as 0.
    """
    if type(matrix).__name__ == "QuantileDMatrix":
        raise DataError("the xgboost.QuantileDMatrix holds bins instead of values. Give a DMatrix, or X, y and qid.")
    y, ends = matrix.get_label(), matrix.get_uint_info("group_ptr")
    if len(y) == 0 or len(ends) == 0:
        raise DataError(
            f"the xgboost.DMatrix has no {'labels' if len(y) == 0 else 'groups'}. Set them, or give X, y and qid."
        )
    X = matrix.get_data()
    share = X.nnz / max(X.shape[0] * X.shape[1], 1)
    if share >= DENSE_SHARE:
        X = _dense(X)
    else:
        warnings.warn(
            f"the xgboost.DMatrix lacks {1.0 - share:.0%} of the values: they are read as 0, as of a sparse matrix. "
            "Where they are missing, give X, y and qid.",
            RankTuneWarning,
            stacklevel=4,
        )
    queries = Queries.from_arrays(X, y, group=np.diff(ends.astype(np.int64)), feature_names=matrix.feature_names)
    return _weighted(queries, matrix.get_weight())


def _dense(X: sparse.csr_matrix) -> Array:
    """Return X with NaN where it stores nothing."""
    dense = np.full(X.shape, np.nan, dtype=X.dtype)
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return dense


def _weighted(queries: Queries, weights: Array | None) -> Queries:
    """Return queries with the weights of a data set: one a query, or one a document that is the same in each query."""
    return queries if weights is None or len(weights) == 0 else queries.weighted_by(np.asarray(weights))
