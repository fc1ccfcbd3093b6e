"""The figures of a data set: its size, its grades, and peculiarities that matter for tuning."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Json, Mask, stored_arrays
from ranktune.solvers.data.columns.table import COLUMNS, OPTIONS
from ranktune.solvers.data.queries import Queries

MOST_GRADES = 50
"""The most different grades that a summary counts separately."""


def summarise(queries: Queries) -> Json:
    """Compute the figures of a data set, in a few passes over its features.

    Parameters
    ----------
    queries : Queries
        At least one query.

    Returns
    -------
    dict
        JSON values:

        - queries, documents, features: their numbers
        - shortest, median, longest: numbers of documents of a query
        - grades: number of documents of each grade, by its text, in ascending order; of the MOST_GRADES commonest ones
        - distinct_grades: number of different grades
        - sparsity: share of the features' values that are 0
        - constant_features: features with the same value in all documents: names, or numbers counted from 1
        - queries_without_relevant: queries whose best grade is 0 or less
        - queries_with_one_grade: queries whose documents all have one grade, which rankers cannot learn from
        - dtype: type of the features, "float32" or "float64"
        - layout: "dense" or "sparse"
        - query_weights, document_weights, positions, times ...: the range of a column as text, where there is one
        - megabytes: memory of the features, in MiB

    Examples
    --------
    >>> from ranktune import Queries
    >>> from ranktune.solvers.data.sources.summary import summarise
    >>> summary = summarise(Queries.from_arrays([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [1, 0, 2], qid=[7, 7, 8]))
    >>> summary["grades"], summary["constant_features"], summary["queries_with_one_grade"]
    ({'0': 1, '1': 1, '2': 1}, [2], 1)
    """
    features, lengths = queries.features, queries.lengths
    values, counts = np.unique(queries.grades, return_counts=True)
    common = np.sort(np.argsort(-counts, kind="stable")[:MOST_GRADES])
    best = np.maximum.reduceat(queries.grades, queries.starts[:-1])
    worst = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    cells = queries.n_documents * queries.n_features
    arrays = stored_arrays(features)
    nonzero = int(np.count_nonzero(arrays[0]))
    names, constant = queries.feature_names, np.flatnonzero(_constant(queries)).tolist()
    texts = [repr(int(grade) if grade.is_integer() else grade) for grade in values[common].tolist()]
    return {
        "queries": queries.n_queries,
        "documents": queries.n_documents,
        "features": queries.n_features,
        "shortest": int(lengths.min()),
        "median": float(np.median(lengths)),
        "longest": int(lengths.max()),
        "grades": dict(zip(texts, counts[common].tolist(), strict=True)),
        "distinct_grades": len(values),
        "sparsity": 1.0 - nonzero / cells if cells else 0.0,
        "constant_features": [column + 1 if names is None else names[column] for column in constant],
        "queries_without_relevant": int((best <= 0.0).sum()),
        "queries_with_one_grade": int((best == worst).sum()),
        "dtype": str(features.dtype),
        **{
            name: COLUMNS[name].column.shown(queries.columns[name], queries)
            for name in OPTIONS.values()
            if name in queries.columns
        },
        "layout": "sparse" if queries.is_sparse else "dense",
        "megabytes": sum(part.nbytes for part in arrays) / 2**20,
    }


def _constant(queries: Queries) -> Mask:
    """Return which features have the same value in all documents, (n_features,)."""
    features = queries.features
    if not queries.is_sparse:
        return np.asarray(features.min(axis=0) == features.max(axis=0))
    return np.asarray(features.min(axis=0).toarray() == features.max(axis=0).toarray()).ravel()
