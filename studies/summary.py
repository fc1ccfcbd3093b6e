"""What is in a data set: counts, grades, and what a person should know before tuning on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import stored_arrays
from ranktune.solvers.data.queries import Queries

MOST_GRADES = 50


@dataclass(frozen=True)
class Summary:
    """Figures of a data set.

    shortest, median, longest   documents of a query
    grades                      documents of each grade, by rising grade; the MOST_GRADES commonest where there are more
    distinct_grades             number of different grades
    sparsity                    share of the features' values that are 0
    constant_features           features of one value throughout: names, or numbers counted from 1
    queries_without_relevant    queries whose best grade is 0 or less
    queries_with_one_grade      queries whose documents all have one grade: nothing can be learnt from their order
    megabytes                   of the features in memory
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

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them: lists, and grades by their text."""
        figures = asdict(self)
        figures["grades"] = {
            repr(int(grade) if grade.is_integer() else grade): count for grade, count in self.grades.items()
        }
        figures["constant_features"] = list(self.constant_features)
        return figures


def summarise(queries: Queries) -> Summary:
    """Return the figures of queries, which hold at least one. Cost: a few passes over the features."""
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


def _constant(queries: Queries) -> NDArray[np.bool_]:
    """Return which features have one value throughout, (n_features,)."""
    features = queries.features
    if not queries.is_sparse:
        return np.asarray(features.min(axis=0) == features.max(axis=0))
    return np.asarray(features.min(axis=0).toarray() == features.max(axis=0).toarray()).ravel()


def _names(queries: Queries, columns: NDArray[np.intp]) -> tuple[str | int, ...]:
    names = queries.feature_names
    return tuple(int(column) + 1 if names is None else names[column] for column in columns)
