"""Queries with exactly the features of a model, in its order."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import stored_arrays
from ranktune.solvers.core.errors import DataError, RankTuneWarning, listed
from ranktune.solvers.data.columns.encoding import check_features
from ranktune.solvers.data.queries import Queries


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
    warnings.warn(
        f"{problem}: they are matched by position. If the order differs, scores are wrong; give both with names.",
        RankTuneWarning,
        stacklevel=3,
    )
    return queries


def _in_order(queries: Queries, names: tuple[str, ...], what: str) -> Queries:
    column = {name: number for number, name in enumerate(queries.feature_names or ())}
    check_features(list(column), names, what=f"{what}: ")
    features = queries.features[:, [column[name] for name in names]]
    features = sparse.csr_array(features) if queries.is_sparse else np.ascontiguousarray(features)
    return replace(queries, features=features, feature_names=names)
