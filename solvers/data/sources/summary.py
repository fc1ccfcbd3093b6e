"""The figures of a data set: its size, its grades, and peculiarities that matter for tuning."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Json, Mask, stored_arrays
from ranktune.solvers.data.queries import Queries

MOST_GRADES = 50
"""Grades that a summary counts one by one."""


@dataclass(frozen=True)
class Summary:
    """The figures of a data set.

    Attributes
    ----------
    queries, documents, features : int
        Their numbers.
    shortest, median, longest : int, float, int
        Numbers of documents of a query.
    grades : dict of float to int
        Number of documents of each grade, in ascending order; of the MOST_GRADES commonest grades.
    distinct_grades : int
        Number of different grades.
    sparsity : float
        Share of the features' values that are 0.
    constant_features : tuple of str or int
        Features with the same value in all documents: names, or numbers counted from 1.
    queries_without_relevant : int
        Queries whose best grade is 0 or less.
    queries_with_one_grade : int
        Queries whose documents all have the same grade, which rankers cannot learn from.
    dtype : str
        Type of the features, "float32" or "float64".
    layout : str
        "dense" or "sparse".
    megabytes : float
        Memory of the features, in MiB.
    """

    queries: int
    documents: int
    features: int
    shortest: int
    median: float
    longest: int
    grades: dict[float, int]
    distinct_grades: int
    sparsity: float
    constant_features: tuple[str | int, ...]
    queries_without_relevant: int
    queries_with_one_grade: int
    dtype: str
    layout: str
    megabytes: float

    def as_dict(self) -> Json:
        """Return the figures as JSON values; grades are keyed by their text."""
        figures = asdict(self)
        figures["grades"] = {
            repr(int(grade) if grade.is_integer() else grade): count for grade, count in self.grades.items()
        }
        figures["constant_features"] = list(self.constant_features)
        return figures


def summarise(queries: Queries) -> Summary:
    """Compute the figures of a data set, in a few passes over its features.

    Parameters
    ----------
    queries : Queries
        At least one query.

    Returns
    -------
    Summary
        The figures.

    Examples
    --------
    >>> from ranktune import Queries
    >>> from ranktune.solvers.data.sources.summary import summarise
    >>> summary = summarise(Queries.from_arrays([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [1, 0, 2], qid=[7, 7, 8]))
    >>> summary.grades, summary.constant_features, summary.queries_with_one_grade
    ({0.0: 1, 1.0: 1, 2.0: 1}, (2,), 1)
    """
    features, lengths = queries.features, queries.lengths
    values, counts = np.unique(queries.grades, return_counts=True)
    common = np.sort(np.argsort(-counts, kind="stable")[:MOST_GRADES])
    best = np.maximum.reduceat(queries.grades, queries.starts[:-1])
    worst = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    cells = queries.n_documents * queries.n_features
    held = stored_arrays(features)
    nonzero = int(np.count_nonzero(held[0]))
    return Summary(
        queries=queries.n_queries,
        documents=queries.n_documents,
        features=queries.n_features,
        shortest=int(lengths.min()),
        median=float(np.median(lengths)),
        longest=int(lengths.max()),
        grades={float(values[k]): int(counts[k]) for k in common},
        distinct_grades=len(values),
        sparsity=1.0 - nonzero / cells if cells else 0.0,
        constant_features=_names(queries, np.flatnonzero(_constant(queries))),
        queries_without_relevant=int((best <= 0.0).sum()),
        queries_with_one_grade=int((best == worst).sum()),
        dtype=str(features.dtype),
        layout="sparse" if queries.is_sparse else "dense",
        megabytes=sum(part.nbytes for part in held) / 2**20,
    )


def _constant(queries: Queries) -> Mask:
    """Return which features have the same value in all documents, (n_features,)."""
    features = queries.features
    if not queries.is_sparse:
        return np.asarray(features.min(axis=0) == features.max(axis=0))
    return np.asarray(features.min(axis=0).toarray() == features.max(axis=0).toarray()).ravel()


def _names(queries: Queries, columns: NDArray[np.intp]) -> tuple[str | int, ...]:
    names = queries.feature_names
    return tuple(int(column) + 1 if names is None else names[column] for column in columns)
