"""The features of a model among the columns of what is scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.encoding import Encoding


def columns_of(X: Any, wanted: Sequence[str] | None, encoding: Encoding | None) -> Any:
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
    if encoding is not None and encoding.columns and not set(wanted) <= set(names):
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
