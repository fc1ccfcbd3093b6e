"""What a ranking given from outside is: a name, the features that it needs, and the scores of the documents of Queries.

Scores are float64 arrays (n_documents,), in the order of Queries, and finite; higher scores rank first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, listed
from ranktune.solvers.data.blocks import scores_by_block
from ranktune.solvers.data.columns.encoding import TableEncoding, alike
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.columns import as_taken

MOST_ABSENT = 1024
"""Trailing features, or as many as there are, that text files may leave out as they are 0 in every document."""
_NUMBERED = re.compile(r"[fF]([1-9]\d*)")


@dataclass(frozen=True)
class WantedFeatures:
    """The features that a ranking needs, in their order: by name, by number, or as many columns as count.

    names are None where the ranking knows its features by position; then count columns are needed, at least so many
    if more is true. encoding says how the columns of a table become the features of these names. With neither names nor
    count the features do not matter. solver is that of the model, by which it takes its input, and used are the
    features, by place, that it uses, all for None.
    """

    names: tuple[str, ...] | None = None
    count: int | None = None
    more: bool = False
    encoding: TableEncoding | None = None
    solver: str = ""
    used: Ints | None = None

    @property
    def is_numbered(self) -> bool:
        """Whether the names are f1, f2, ...: those of features that have numbers only."""
        return self.names is not None and all(_NUMBERED.fullmatch(name) for name in self.names)

    def is_in(self, queries: Queries) -> bool:
        """Return whether queries have these features."""
        have, n = queries.feature_names, queries.n_features
        if not alike(self.encoding, queries.encoding):
            return False
        if self.names is None:
            return self.count is None or self.count == n or (self.count < n and self.more) or have is None
        if have is not None:
            return set(self.names) <= set(have)
        return self._numbers(n) is not None or len(self.names) == n

    def arranged(self, queries: Queries, what: str) -> Queries:
        """Return queries with exactly these features. Raises DataError, which names the ranking what, else."""
        have, n = queries.feature_names, queries.n_features
        if self.names is not None and have is not None:
            lacking = [name for name in self.names if name not in have]
            if lacking:
                raise DataError(f"{what} needs the features {listed(lacking)}, which the data do not have.")
            where = {name: column for column, name in enumerate(have)}
            return queries.with_columns(np.array([where[name] for name in self.names], dtype=np.int64))
        numbers = None if self.names is None else self._numbers(n)
        if numbers is not None:
            return queries.with_columns(numbers)
        count = len(self.names) if self.names is not None else self.count
        if count is None or count == n:
            return queries
        if count < n and self.more:
            return queries.with_columns(np.arange(count))
        if n < count <= n + max(n, MOST_ABSENT) and have is None and self.names is None:
            return _widened(queries, count)
        hint = " If its features are numbered from 0, read the data so: one_based=False." if count == n + 1 else ""
        raise DataError(f"{what} needs {count} features, and the data have {n}.{hint}")

    def _numbers(self, n: int) -> Ints | None:
        """Return the columns of names f1, f2, ..., which features without names have; None for other names."""
        hits = [_NUMBERED.fullmatch(name) for name in self.names or ()]
        numbers = [int(hit[1]) - 1 for hit in hits if hit is not None]
        return np.array(numbers, dtype=np.int64) if len(numbers) == len(hits) and max(numbers, default=0) < n else None


class Ranking(Protocol):
    """A ranking given from outside."""

    @property
    def name(self) -> str:
        """What it is called in tables and messages."""

    @property
    def wanted(self) -> WantedFeatures:
        """The features that it needs."""

    def scores(self, queries: Queries) -> Floats:
        """Return the score of each document of queries. Raises DataError where it has none."""


@dataclass(frozen=True, eq=False)
class FeatureRanking:
    """A ranking that scores documents by their features; score takes Queries with the wanted features alone.

    metric is the one that it was tuned for.
    """

    name: str
    wanted: WantedFeatures
    score: Callable[[Queries], Floats]
    metric: str | None = None

    def scores(self, queries: Queries) -> Floats:
        """Return the score of each document."""
        whole = replace(queries, rows=None, features_checked=True)
        return np.concatenate(list(scores_by_block(whole, self._of_block)))

    def _of_block(self, block: Queries) -> Floats:
        arranged = self.wanted.arranged(block, self.name)
        used = np.arange(arranged.n_features) if self.wanted.used is None else self.wanted.used
        return checked_scores(self.score(as_taken(arranged, self.wanted.solver, used)), block, self.name)


def checked_scores(scores: object, queries: Queries, name: str) -> Floats:
    """Return scores as an array, or raise DataError if there is not one finite number a document."""
    try:
        values = np.ascontiguousarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: its scores are not numbers. Give one number per document.") from None
    if values.shape == (queries.n_documents, 1):
        values = values[:, 0]
    if values.shape != (queries.n_documents,):
        raise DataError(
            f"{name}: its scores have shape {values.shape} for {queries.n_documents} documents. Give one a document."
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        at = int(bad[0])
        query = queries.query_ids[int(np.searchsorted(queries.starts, at, side="right")) - 1]
        raise DataError(
            f"{name}: the score of a document of query {query} is {values[at]} ({len(bad)} are not finite). Every "
            "document needs a finite score."
        )
    return values


def _widened(queries: Queries, count: int) -> Queries:
    if isinstance(queries.features, np.ndarray):
        return queries.with_features(np.pad(queries.features, ((0, 0), (0, count - queries.n_features))))
    csr = queries.features
    return queries.with_features(
        sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=(queries.n_documents, count))
    )
