"""The features of a table as a data frame again, for estimators that choose columns by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.solvers.core.arrays import Features, dense
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.encoding import Category, TableEncoding


def frame_of(features: Features, feature_names: Sequence[str] | None, encoding: TableEncoding | None) -> object:
    """Return features, (n_documents, n_features), as a pandas.DataFrame of the columns of their table.

    A category is one column again, of the type category; values that are none of its levels are missing. Dates are
    their ages in days.

    Raises
    ------
    DataError
        If the features have no names.
    ParameterError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ParameterError("a solver that chooses columns by name needs pandas: pip install pandas.") from None
    if feature_names is None:
        raise DataError(
            "the solver chooses columns by name, and the features have none: give a table, whose columns have names."
        )
    where = {name: k for k, name in enumerate(feature_names)}
    X, columns = dense(features), {}
    encoding = encoding or TableEncoding()
    for name, column in encoding.sources(feature_names).items():
        kind = encoding.columns.get(column)
        if not isinstance(kind, Category):
            columns[column] = X[:, where[name]]
        elif column not in columns:
            codes = np.full(len(X), -1)
            for code, feature in enumerate(kind.names(column)[: len(kind.levels)]):
                if feature in where:
                    codes[X[:, where[feature]] == 1.0] = code
            columns[column] = pd.Categorical.from_codes(codes, kind.levels)
    return pd.DataFrame(columns)
