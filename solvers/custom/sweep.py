"""Whether an estimator of unknown kind keeps monotone constraints: its scores where one feature takes other values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, dense
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns.monotone import name_of

MAX_VALUES = 64
"""Values of a feature that are tried, spread over those that it has."""
ROUNDING = 1e-6
"""The part of the range of scores by which a score may move the wrong way: in single precision it rounds."""


def check_swept(predict: Callable[[Queries], Floats], queries: Queries, signs: Ints | None) -> None:
    """Raise DataError where a score of queries moves against the sign, (n_features,), of a feature.

    Each feature with a sign takes the values that it has in queries, MAX_VALUES at most, in all documents at once;
    missing values stay missing. Between these values, and for other documents, nothing is known.
    """
    if signs is None:
        return
    X = np.array(dense(queries.features))
    allowed = ROUNDING * float(np.ptp(predict(queries)))
    for column in np.flatnonzero(signs).tolist():
        values = X[:, column].copy()
        missing, last = np.isnan(values), None
        known = np.unique(values[~missing])
        for value in known[np.unique(np.linspace(0, len(known) - 1, MAX_VALUES).astype(int))] if len(known) else ():
            X[:, column] = np.where(missing, values, value)
            scores = predict(queries.with_features(X))
            if last is not None and (signs[column] * (scores - last) < -allowed).any():
                raise DataError(
                    f"the scores of the estimator move against the monotone constraint {signs[column]:+d} of the "
                    f"feature '{name_of(column, queries.feature_names)}'."
                )
            last = scores
        X[:, column] = values
