"""What a study keeps of its training data, by which new data are compared with it later: reference.npz.

values     (n_features, POINTS) for each feature some of its values, rising, the last one repeated to fill the row
below, to  likewise the share of the documents whose value is less than it, or at most it; missing ones do not count
moments    (n_features, 3) mean and standard deviation over documents, and the share of missing values
by_query   (n_queries, STATISTICS * n_features) statistics of the documents of each query

Documents of a query are alike, so that the query is the unit of every test. By query and feature these statistics are
kept, of the place u of each value among the training documents, from 0 to 1: its mean, the mean distance from the
middle, the standard deviation within the query, and the share of missing values. A change of the distribution moves the
mean or the distance, whatever the unit of the feature. One that leaves it as it is, but deals the values to other
queries, moves the deviation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask, dense
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.files.archives import readable, write_archive
from ranktune.solvers.data.columns.encoding import Category
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.tuner.selection.explaining import names_of, sampled
from ranktune.tuner.splits.seals import read_sealed_arrays, write_sealed
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem

REFERENCE = "reference.npz"
MAX_FEATURES = 2_000
"""Features that are watched: of more, those that most documents have."""
BLOCK = 16
"""Columns of the features that are copied at a time."""
MAX_QUERIES, MAX_CELLS = 2_000, 4_000_000
"""Queries that are kept, and numbers of them: of 2,000 features 500 queries."""
POINTS = 33
"""Values of a feature that are kept."""
STATISTICS = 4
SCALE = 65_535
"""Statistics, which are from 0 to 1, are kept in steps of 1 / SCALE."""
OTHER = "(other)"
"""Stands for the values of a category that are no features, such as new ones."""


def _watched(model: Model, queries: Queries) -> tuple[str, ...]:
    """Return the names of the features of a model that are watched, then of its categories the other values."""
    used, names = model.used_features, names_of(model)
    if len(used) > MAX_FEATURES:
        present = np.asarray((sampled(queries, MAX_QUERIES).features[:, used] != 0).sum(axis=0)).ravel()
        used = np.sort(used[np.argsort(-present, kind="stable")[:MAX_FEATURES]])
    chosen = [names[j] for j in used]
    others = [name for name, levels in _categories(model).items() if not levels.isdisjoint(chosen)]
    return (*chosen, *others)


def _categories(model: Model) -> dict[str, set[str]]:
    """Return for each category the name of its other values, and the names of its features."""
    kinds = {} if model.encoding is None else model.encoding.columns
    return {
        f"{column}={OTHER}": set(kind.names(column)) & set(names_of(model))
        for column, kind in kinds.items()
        if isinstance(kind, Category)
    }


def _columns(model: Model, names: Sequence[str], queries: Queries) -> Iterator[Floats]:
    """Yield the values of each of the watched features, (n_documents,). Raises StudyError for another model's."""
    place, categories = {name: j for j, name in enumerate(names_of(model))}, _categories(model)
    if not set(names) <= {*place, *categories}:
        raise StudyError("the reference is of another model than that of the study. `ranktune resume` makes it again.")
    places = [place[name] for name in names if name in place]
    for first in range(0, len(places), BLOCK):
        columns = dense(queries.features[:, places[first : first + BLOCK]]).T
        yield from np.ascontiguousarray(columns, np.float64)  # each is read several times
    for name in names[len(places) :]:
        levels = sorted(place[level] for level in categories[name])
        yield 1.0 - np.asarray(dense(queries.features[:, levels]), np.float64).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Reference:
    """See the module; total is the number of queries that those of by_query were drawn from."""

    names: tuple[str, ...]
    total: int
    values: Floats
    below: Floats
    to: Floats
    moments: Floats
    by_query: Floats

    @classmethod
    def of(cls, model: Model, queries: Queries, like: Reference | None = None) -> Reference:
        """Return what is kept of the training queries of a model; of new queries with like, the training ones'.

        Their values are then those of like, and their statistics are of the places among its documents.
        """
        names = _watched(model, queries) if like is None else like.names
        few = sampled(queries, queries_kept(len(names)))
        values, moments, by_query = list[Floats](), list[tuple[float, float, float]](), list[Floats]()
        below, to = list[Floats](), list[Floats]()
        for j, column in enumerate(_columns(model, names, few)):
            missing = np.isnan(column)
            present = np.sort(column[~missing])
            values.append(_points(present) if like is None else like.values[j])
            count = max(len(present), 1)
            below.append(np.searchsorted(present, values[j], side="left") / count)
            to.append(np.searchsorted(present, values[j], side="right") / count)
            spread = (float(present.mean()), float(present.std())) if len(present) else (0.0, 0.0)
            moments.append((*spread, float(missing.mean())))
            sketch = (values[j], below[j], to[j]) if like is None else (like.values[j], like.below[j], like.to[j])
            by_query.append(_by_query(_places(column, *sketch), missing, few.starts))
        shape = (few.n_queries, STATISTICS * len(names))
        statistics = np.array(by_query).transpose(2, 1, 0).reshape(shape) if by_query else np.zeros(shape)
        statistics = np.round(statistics * SCALE) / SCALE  # as they are kept
        tables = np.array(values), np.array(below), np.array(to), np.array(moments)
        return cls(names, queries.n_queries, *tables, statistics)

    def write(self, path: Path) -> None:
        """Write it atomically."""
        arrays = {name: getattr(self, name) for name in _ARRAYS[:-1]}
        arrays["by_query"] = np.round(self.by_query * SCALE).astype(np.uint16)
        write_sealed(path, write_archive(arrays, {"features": self.names, "total": self.total}, small=True))

    @classmethod
    def read(cls, path: Path) -> Reference:
        """Return what write wrote. Raises Damaged (a StudyError) where the file is not that."""
        header, arrays = read_sealed_arrays(path)
        with readable(path):
            stored = [np.asarray(arrays[name], np.float64) for name in _ARRAYS]
            stored[-1] /= SCALE
            reference = cls(tuple(map(str, header["features"])), int(header["total"]), *stored)
            count = len(reference.names)
            shapes = [*[(count, POINTS)] * 3, (count, 3), (len(reference.by_query), STATISTICS * count)]
            if count and [array.shape for array in stored] != shapes:
                raise ValueError("its arrays do not fit together")
            return reference


def write_reference(model: Model, problem: SplitProblem, folder: Path) -> None:
    """Write what is kept of the development queries of a study, whose chosen model is given."""
    with writing(folder):
        Reference.of(model, problem.development).write(folder / REFERENCE)


_ARRAYS = ("values", "below", "to", "moments", "by_query")


def queries_kept(features: int) -> int:
    """Return how many queries are kept, or drawn of new data, where so many features are watched."""
    return min(MAX_QUERIES, MAX_CELLS // (STATISTICS * max(features, 1)))


def _points(values: Floats) -> Floats:
    """Return POINTS of the sorted values, their quantiles without repetitions, and the last again and again."""
    if not len(values):
        return np.zeros(POINTS)
    points = np.unique(values[np.linspace(0, len(values) - 1, POINTS).astype(np.int64)])
    return np.pad(points, (0, POINTS - len(points)), mode="edge")


def _places(column: Floats, values: Floats, below: Floats, to: Floats) -> Floats:
    """Return the place of each value among the training documents, from 0 to 1, of missing ones the middle."""
    left = np.searchsorted(values, column, side="left")
    right = np.searchsorted(values, values, side="right")
    starts, ends = np.concatenate([[0.0], to]), np.concatenate([below, [1.0]])
    between = (starts + ends) / 2  # of a value that is none of the kept ones
    at = (starts[:-1] + ends[right]) / 2
    place = np.where(np.append(values, np.nan)[left] == column, np.append(at, 0.5)[left], between[left])
    place[np.isnan(column)] = 0.5
    return place


def _by_query(place: Floats, missing: Mask, starts: Ints) -> Floats:
    """Return the statistics of each query, (STATISTICS, n_queries)."""
    mean, far, square, absent = (
        np.add.reduceat(each, starts[:-1]) / np.diff(starts)
        for each in (place, np.abs(place - 0.5), place**2, missing.astype(np.float64))
    )
    return np.array([mean, far, np.sqrt(np.maximum(square - mean**2, 0.0)), absent])
