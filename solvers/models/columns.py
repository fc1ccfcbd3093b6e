"""The features of a model among the columns of what is scored, and those of the training data in other parts.

And what libraries do to the input of their models, which belongs to a model as its trees do.

And the fields that a file holds of every kind of model: what it was made of, by which columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Ints, JsonView, stored_arrays
from ranktune.solvers.core.errors import DataError, ModelFormatError, listed, warn
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.columns.encoding import TableEncoding, check_features
from ranktune.solvers.data.missing import with_absent_missing
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models import files
from ranktune.solvers.models.files import SAVE_AGAIN, Content, field_of, optional_field


class Origin(TypedDict):
    """The fields that every kind of model has: see Model."""

    solver: str
    parameters: Mapping[str, Value]
    feature_names: tuple[str, ...] | None
    metric: str | None
    fingerprint: str | None
    created: NotRequired[str | None]
    version: NotRequired[str | None]
    encoding: NotRequired[TableEncoding | None]
    monotone: NotRequired[Mapping[str, int]]


def columns_of(X: Any, wanted: Sequence[str] | None, encoding: TableEncoding | None) -> Any:
    """Return the features called wanted of a data frame, in their order; anything else as it is."""
    if isinstance(X, tuple):
        raise DataError("X is a tuple: give the features alone, and the queries as qid= or group=.")
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # a lazy frame
        X = X.collect()
    columns = getattr(X, "columns", None)
    if columns is None or wanted is None:
        return X
    labels = list(columns)
    names = tuple(map(str, labels))
    if encoding is not None and encoding.columns and not set(wanted) <= set(names) - encoding.columns.keys():
        from ranktune.solvers.data.columns.values import encoded_of

        return encoded_of(X, wanted, encoding)
    return X[[labels[k] for k in positions(names, wanted)]]


def positions(names: tuple[str, ...], wanted: Sequence[str]) -> list[int]:
    """Return the position of each of wanted among names. Raises DataError where a name does not occur exactly once."""
    where = {name: k for k, name in enumerate(names)}
    missing = [name for name in wanted if name not in where]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(
            f"the model has {len(wanted)} named features, and the data have no column '{missing[0]}'{more}. "
            f"Name the columns as in training: {', '.join(wanted[:5])}{', ...' if len(wanted) > 5 else ''}."
        )
    repeated = [name for name in wanted if names.count(name) > 1] if len(where) < len(names) else []
    if repeated:
        raise DataError(f"the data have several columns '{repeated[0]}': keep one of them.")
    return [where[name] for name in wanted]


def check_width(n_features: int, expected: int) -> None:
    """Raise DataError where data have another number of features than the model."""
    if n_features != expected:
        raise DataError(
            f"X has {n_features} features, and the model was trained on {expected}: "
            "give the same features in the same order."
        )


def check_grouped(n_rows: int, is_needed: bool) -> None:
    """Raise DataError where it is needed and not said which of several rows are a query."""
    if is_needed and n_rows > 1:
        raise DataError(
            f"predict was given {n_rows} rows and not which of them are a query, and this model compares each document "
            f"with the others of its query. Pass qid=, the query of each row, or group=[{n_rows}] if they are one "
            "query, or Queries."
        )


def aligned(queries: Queries, n_features: int, feature_names: tuple[str, ...] | None, what: str) -> Queries:
    """Return queries with the features of a model, in its order; what names the queries in messages.

    Where both have names, columns are matched by name. Where neither has, by number, and missing columns are 0. Where
    only one has, by number with a RankTuneWarning, and the numbers of columns must be equal.

    Raises DataError, which lists them, for features that the model does not have, and for named ones that are missing.
    """
    if queries.feature_names is not None and feature_names is not None:
        return queries if queries.feature_names == feature_names else _in_order(queries, feature_names, what)
    have = queries.n_features
    if queries.feature_names is not None or feature_names is not None:
        return _by_position(queries, n_features, feature_names, what)
    if have > n_features:
        raise DataError(
            f"{what}: features that the training data does not have: {listed(range(n_features + 1, have + 1))} "
            f"(counted from 1). It has {n_features}. Remove them here, or train on data that has them."
        )
    if have == n_features:
        return queries
    if isinstance(queries.features, np.ndarray):
        return queries.with_features(np.pad(queries.features, ((0, 0), (0, n_features - have))))
    parts = stored_arrays(queries.features)
    return queries.with_features(sparse.csr_array(parts, shape=(queries.n_documents, n_features)))


def _by_position(queries: Queries, n_features: int, feature_names: tuple[str, ...] | None, what: str) -> Queries:
    names = listed(queries.feature_names or feature_names or ())
    problem = f"the columns of {what} are named ({names}), those of the training data are not"
    if feature_names is not None:
        problem = f"the features of the training data are named ({names}), the columns of {what} are not"
    if queries.n_features != n_features:
        raise DataError(
            f"{problem}, and there are {queries.n_features} columns for {n_features} features: they cannot be "
            "matched. Give both with names, or the same columns in the same order."
        )
    warn(f"{problem}: they are matched by position. If the order differs, scores are wrong; give both with names.")
    return queries


def _in_order(queries: Queries, names: tuple[str, ...], what: str) -> Queries:
    column = {name: number for number, name in enumerate(queries.feature_names or ())}
    check_features(list(column), names, what=f"{what}: ")
    features = queries.features[:, [column[name] for name in names]]
    features = sparse.csr_array(features) if queries.is_sparse else np.ascontiguousarray(features)
    return replace(queries, features=features, feature_names=names)


def read_origin(path: Path, content: Content, n_features: int) -> Origin:
    """Return the common fields that the manifest at path holds. Raises ModelFormatError where they cannot be."""
    listed = content.get("feature_names")
    names = None if listed is None else files.read_names(path, listed, n_features)
    parameters = field_of(path, content, "parameters", dict)
    if not all(isinstance(value, float | int | str | bool | None) for value in parameters.values()):
        raise ModelFormatError(f"{path}: parameters must be plain values. {SAVE_AGAIN}")
    encoding = content.get("encoding")
    try:
        decoded = None if encoding is None else TableEncoding.from_json(encoding)
    except ValueError as error:
        raise ModelFormatError(f"{path}: its encoding cannot be used: {error}. {SAVE_AGAIN}") from None
    return {
        "solver": field_of(path, content, "solver", str),
        "parameters": parameters,
        "feature_names": names,
        "metric": optional_field(path, content, "metric", str),
        "fingerprint": optional_field(path, content, "data", str),
        "created": optional_field(path, content, "created", str),
        "version": optional_field(path, content, "ranktune", str),
        "encoding": decoded,
        "monotone": optional_field(path, content, "monotone", dict) or {},
    }


TEXT_RULES: Mapping[str, JsonView] = {
    "LightGBM": {"dtype": np.float64},  # it compares doubles, as 4.7 does
    "XGBoost": {"layout": "written"},  # what lines and rows leave out is missing (NaN), and not 0: DMatrix of 3.2
}
"""Options by which a text is read for a model, by its solver, which is the library where that is not RankTune.

CatBoost has none: it compares single precision, and what is left out is 0, as 1.2 has it.
"""


def leaves_out_missing(solver: str) -> bool:
    """Return whether what rows and lines leave out is missing to models of a solver."""
    return "layout" in TEXT_RULES.get(solver, {})


def as_taken(queries: Queries, solver: str, features: Ints) -> Queries:
    """Return queries as a model of a solver takes them, which uses these features."""
    return with_absent_missing(queries, features) if leaves_out_missing(solver) else queries
