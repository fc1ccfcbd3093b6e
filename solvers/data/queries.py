"""Queries: documents grouped by query, checked once when they are built.

n_documents rows, n_features columns, n_queries groups. The documents of query q are the rows
starts[q] to starts[q + 1]; the rows of a query are adjacent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features, Floats, Ids, Ints, Sizes, put_back, stored_arrays
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.checks import check_queries, checked_features
from ranktune.solvers.data.columns.encoding import TableEncoding
from ranktune.solvers.data.columns.table import COLUMNS, column_of
from ranktune.solvers.data.grouping import check_no_query_column, group_rows
from ranktune.solvers.data.origins import note_selection
from ranktune.solvers.data.query_columns import HeldColumn, Monotone, Weights, is_dates, joined_columns, numeric


@dataclass(frozen=True, eq=False, repr=False)
class Queries:
    """Documents grouped by query, with features and grades.

    Most users call Queries.from_arrays; the constructor takes rows that are grouped already.

    Parameters
    ----------
    features : ndarray or scipy.sparse.csr_array of shape (n_documents, n_features)
        C-ordered float32 or float64.
    grades : ndarray of shape (n_documents,)
        Finite float64; higher is better.
    starts : ndarray of shape (n_queries + 1,)
        The first row of each query, and the number of rows; int64.
    query_ids : ndarray of shape (n_queries,)
        The caller's ids of the queries.
    document_ids : ndarray of shape (n_documents,) or None, default=None
        The caller's ids of the documents.
    feature_names : tuple of str or None, default=None
        One name a feature.
    rows : ndarray of shape (n_documents,) or None, default=None
        The caller's row of each document; None if the order was kept.
    has_missing : bool, default=False
        Whether features may be NaN: missing.
    encoding : Encoding or None, default=None
        How the columns of the table that they come from became features.
    columns : mapping of str to ndarray, default={}
        What else is known of queries, documents and features, by the names of `columns.table.COLUMNS`; each is an
        attribute too, None where there is none. clicks, (n_documents, 5), are metrics.presets.CLICK_COLUMNS. contents
        are the cells of the columns of the encoding, as 64 bits. monotone is 1 for a feature with which scores may
        only rise, -1 where they may only fall, else 0. A baseline is NaN where it has no score.
    dated : bool, default=False
        Whether the times are dates: microseconds since 1970 in UTC.
    features_checked : bool, default=False
        Whether the features are rows of features that were checked, so that their values are not looked at again.

    Raises
    ------
    DataError
        If lengths disagree, a value is not finite, an id is missing, or names are not unique.

    Examples
    --------
    >>> from ranktune.solvers import Queries
    >>> queries = Queries.from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], qid=["a", "b", "a"])
    >>> queries.n_queries, queries.starts.tolist(), queries.grades.tolist()
    (2, [0, 2, 3], [1.0, 2.0, 0.0])
    >>> queries.select([1]).query_ids.tolist()
    ['b']
    """

    features: Features
    grades: Floats
    starts: Ints
    query_ids: Array
    document_ids: Array | None = None
    feature_names: tuple[str, ...] | None = None
    rows: Ints | None = None
    has_missing: bool = False
    encoding: TableEncoding | None = None
    columns: Mapping[str, Array] = field(default_factory=dict)
    dated: bool = False
    features_checked: InitVar[bool] = False

    query_weights = HeldColumn[Floats]()
    document_weights = HeldColumn[Floats]()
    positions = HeldColumn[Ints]()
    times = HeldColumn[Floats]()
    baseline = HeldColumn[Floats]()
    clicks = HeldColumn[Floats]()
    contents = HeldColumn[Array]()
    monotone = HeldColumn[Ints]()

    def __post_init__(self, features_checked: bool) -> None:
        """Check what every solver relies on."""
        check_queries(self, features_checked=features_checked)

    @classmethod
    def from_arrays(
        cls,
        X: Features | ArrayLike,
        y: ArrayLike,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        document_ids: Ids | None = None,
        feature_names: Sequence[str] | None = None,
        query_weights: Weights | None = None,
        document_weights: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        times: ArrayLike | None = None,
        monotone: Monotone | None = None,
        **columns: ArrayLike | None,
    ) -> Queries:
        """Return the rows of X grouped by query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features)
            float32 stays float32, any other numeric type becomes float64. Dense C-ordered floats are not copied if the
            rows of each query are adjacent. NaN is a missing value.
        y : array-like of shape (n_documents,)
            The grades; higher is better.
        qid : sequence of hashable, optional
            One query id a row, in any order. With neither qid nor group, all rows are one query.
        group : sequence of int, optional
            The number of rows of each query, in the order of the rows.
        document_ids : sequence of hashable, optional
            One id a row.
        feature_names : sequence of str, optional
            One name a column.
        query_weights : sequence of float or mapping, optional
            How often each query counts: one number per query in the order of their first rows, or a mapping from query
            id to weight (1 for ids that it lacks).
        document_weights : array-like of shape (n_documents,), optional
            How often each document counts, besides the weight of its query.
        positions : array-like of shape (n_documents,), optional
            Where each document was shown when it was judged by clicks: whole numbers, not negative.
        times : array-like of shape (n_documents,), optional
            When each document was shown or judged: numbers, or dates (datetime64).
        monotone : mapping or sequence of int, optional
            1 where scores may only rise with a feature, -1 where they may only fall: by name, glob or column number
            from 0, or one sign per feature.
        **columns : array-like
            Further columns of Queries, those of documents in the order of the rows.

        Returns
        -------
        Queries
            The documents, those of each query adjacent, queries in the order of their first rows.

        Raises
        ------
        DataError
            If shapes disagree, a feature is infinite, or a grade is not a finite number.
        ParameterError
            If monotone names a feature that does not exist, or Queries have no column of a name.

        Examples
        --------
        >>> from ranktune.solvers import Queries
        >>> queries = Queries.from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], group=[1, 2], query_weights=[1.0, 3.0])
        >>> queries.lengths.tolist(), queries.weight_of_query.tolist()
        ([1, 2], [1.0, 3.0])
        """
        check_no_query_column(X, grouped=qid is not None or group is not None)
        features, has_missing, finite = checked_features(X)
        grades = np.ascontiguousarray(numeric(y, "y"), dtype=np.float64)
        if grades.ndim != 1 or len(grades) != features.shape[0]:
            raise DataError(
                f"y has shape {grades.shape} for {features.shape[0]} rows of X: it needs one grade per row."
            )
        grouping = group_rows(features.shape[0], qid, group)
        ids = None if document_ids is None else np.asarray(document_ids)
        if grouping.rows is not None:
            features, grades = features[grouping.rows], grades[grouping.rows]
            ids = None if ids is None else ids[grouping.rows]
        names = None if feature_names is None else tuple(str(name) for name in feature_names)
        queries = cls(
            features,
            grades,
            grouping.starts,
            grouping.ids,
            ids,
            names,
            grouping.rows,
            has_missing,
            features_checked=finite,
        )
        columns |= {"document_weights": document_weights, "positions": positions, "times": times}
        return queries.given(query_weights=query_weights, monotone=monotone, **columns)

    @classmethod
    def to_score(cls, X: Features | ArrayLike) -> Queries:
        """Return the rows of X as one query of grade 0. Raises DataError as from_arrays does."""
        features, has_missing, finite = checked_features(X)
        n_rows = features.shape[0]
        starts = np.array([0, n_rows], dtype=np.int64)
        return cls(
            features,
            np.zeros(n_rows),
            starts,
            np.zeros(1, dtype=np.int64),
            has_missing=has_missing,
            features_checked=finite,
        )

    def __repr__(self) -> str:
        return f"Queries({self.n_queries} queries, {self.n_documents} documents, {self.n_features} features)"

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.starts) - 1

    @property
    def n_documents(self) -> int:
        """Number of documents, all queries together."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a CSR array."""
        return bool(sparse.issparse(self.features))

    @property
    def lengths(self) -> Ints:
        """Documents of each query, (n_queries,)."""
        return np.diff(self.starts)

    @property
    def query_of_document(self) -> Ints:
        """Number of each document's query, (n_documents,)."""
        return np.repeat(np.arange(self.n_queries), self.lengths)

    @property
    def weight_of_query(self) -> Floats:
        """How often each query counts, (n_queries,): its weight, or 1."""
        return np.ones(self.n_queries) if self.query_weights is None else self.query_weights

    @property
    def weight_of_document(self) -> Floats:
        """How often each document counts, (n_documents,): its weight, or 1, times that of its query."""
        by_query = np.repeat(self.weight_of_query, self.lengths)
        return by_query if self.document_weights is None else by_query * self.document_weights

    @property
    def copies(self) -> Floats:
        """How many copies each document counts as, (n_documents,): its weight, or 1."""
        return np.ones(self.n_documents) if self.document_weights is None else self.document_weights

    @property
    def time_of_query(self) -> Floats:
        """When each query can be ranked, (n_queries,): at the latest time of its documents, when all of them exist."""
        assert self.times is not None
        return np.asarray(np.maximum.reduceat(self.times, self.starts[:-1]))

    @property
    def is_weighted(self) -> bool:
        """Whether queries or documents have weights."""
        return self.query_weights is not None or self.document_weights is not None

    @cached_property
    def has_pairs(self) -> bool:
        """Whether any query has two documents of different grades, which every ranker needs."""
        lowest = np.minimum.reduceat(self.grades, self.starts[:-1])
        return bool((np.maximum.reduceat(self.grades, self.starts[:-1]) > lowest).any())

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that models learn from: equal data, equal digest, whatever the file."""
        digest = hashlib.blake2b(digest_size=16)
        parts: Sequence[Array] = stored_arrays(self.features)
        if self.is_sparse:  # the width of the index type says nothing about the data
            parts = [part if part.dtype.kind == "f" else part.astype(np.int64) for part in parts]
            digest.update(f"{self.features.shape}".encode())
        names = [name for name in COLUMNS if name in self.columns and column_of(name).is_digested]
        for part in (*parts, self.grades, self.starts, *(self.columns[name] for name in names)):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def select(self, queries: Sequence[int] | Ints) -> Queries:
        """Return the queries of the given numbers, in that order, without the link to the caller's rows."""
        numbers = np.asarray(queries, dtype=np.int64)
        rows = self.documents_of(numbers)
        starts = np.concatenate([[0], np.cumsum(self.lengths[numbers])]).astype(np.int64)
        selected = self.part(numbers, rows, starts, self.features[rows])
        note_selection(selected, self, numbers)
        return selected

    def part(self, queries: Ints | slice, documents: Ints | slice, starts: Ints, features: Features) -> Queries:
        """Return some of the queries, whose documents have the given starts and features, not looked at again."""
        return replace(
            self,
            features=features,
            grades=self.grades[documents],
            starts=starts,
            query_ids=self.query_ids[queries],
            document_ids=None if self.document_ids is None else self.document_ids[documents],
            rows=None,
            columns={
                name: column_of(name).selected(values, queries, documents) for name, values in self.columns.items()
            },
            features_checked=True,
        )

    def documents_of(self, queries: Ints) -> Ints | slice:
        """Return the rows of the documents of queries, one query after another; of consecutive queries, as a slice."""
        if len(queries) and (np.diff(queries) == 1).all():  # dense features of a run stay a view
            return slice(int(self.starts[queries[0]]), int(self.starts[queries[-1] + 1]))
        lengths = self.lengths[queries]
        ends = np.cumsum(lengths)
        first = np.repeat(self.starts[queries] - (ends - lengths), lengths)
        return first + np.arange(ends[-1] if len(ends) else 0)

    def in_caller_order(self, values: Array) -> Array:
        """Return values, (n_documents,), in the order of the rows that the caller gave."""
        return put_back(values, self.rows)

    def weighted_by(self, query_weights: Weights) -> Queries:
        """Return the same queries with other weights: an array (n_queries,), or a mapping from query id to weight.

        An array (n_documents,) has the weight of the query of each of the caller's rows, as scikit-learn divides it.
        """
        return self.given(query_weights=query_weights)

    def given(self, labels: Mapping[str, str] | None = None, /, **columns: Any) -> Queries:
        """Return the same queries with columns that a caller gives, of documents in the caller's order.

        None leaves a column as it is. labels are what messages call columns, by default their names.
        """
        found = {name: values for name, values in columns.items() if values is not None}
        if not found:
            return self
        dated = is_dates(found["times"]) if "times" in found else self.dated
        checked = {
            name: column_of(name).given(values, (labels or {}).get(name, name), self) for name, values in found.items()
        }
        return replace(self.replaced(**checked), dated=dated, features_checked=True)

    def replaced(self, **columns: Array | None) -> Queries:
        """Return the same queries with other columns, in the order of these queries; None removes one."""
        present = {name: values for name, values in {**self.columns, **columns}.items() if values is not None}
        return replace(self, columns=present, features_checked=True)

    def with_columns(self, columns: Ints | None) -> Queries:
        """Return the same queries described by some of their features, in the order of columns; by all for None."""
        if columns is None:
            return self
        features = self.features[:, columns]
        if not self.is_sparse:
            features = np.ascontiguousarray(features)
        names = None if self.feature_names is None else tuple(self.feature_names[k] for k in columns)
        described = self._described(columns)
        return replace(self, features=features, feature_names=names, columns=described, features_checked=True)

    def with_features(self, features: Features) -> Queries:
        """Return the same queries described by other features; names that do not fit are dropped.

        Constraints stay with the first features; further ones have none.
        """
        columns = np.arange(features.shape[1])
        names = self.feature_names if len(columns) == self.n_features else None
        described = self._described(np.where(columns < self.n_features, columns, -1))
        return replace(self, features=features, feature_names=names, columns=described)

    def without_features(self) -> Queries:
        """Return the same queries described by a single feature that is 0, which takes little memory."""
        return self.with_features(np.zeros((self.n_documents, 1), dtype=np.float32))

    def _described(self, columns: Ints) -> dict[str, Array]:
        """Return the columns where documents have the features of these numbers, and none where one is -1."""
        return {name: column_of(name).described(values, columns) for name, values in self.columns.items()}

    def constrained(self, monotone: Monotone) -> Queries:
        """Return the same queries with other monotone constraints, given as in from_arrays."""
        return self.given(monotone=monotone)


def concatenate(parts: Sequence[Queries]) -> Queries:
    """Return the queries of all parts, one part after another; a query id may occur in several parts.

    Raises DataError where the parts disagree on the number of features.
    """
    if len({part.n_features for part in parts}) != 1:
        counts = ", ".join(str(part.n_features) for part in parts)
        raise DataError(f"the parts have {counts} features: they must describe documents by the same features.")
    stack = sparse.vstack if any(part.is_sparse for part in parts) else np.concatenate
    features = stack([part.features for part in parts])
    offsets = np.concatenate([[0], np.cumsum([part.n_documents for part in parts])])
    starts = np.concatenate([[0], *[part.starts[1:] + offset for part, offset in zip(parts, offsets, strict=False)]])
    query_ids = np.concatenate([part.query_ids.astype(object) for part in parts])
    have_ids = all(part.document_ids is not None for part in parts)
    ids = np.concatenate([np.asarray(part.document_ids, dtype=object) for part in parts]) if have_ids else None
    grades = np.concatenate([part.grades for part in parts])
    if sparse.issparse(features):
        features = sparse.csr_array(features)
    return Queries(
        features,
        grades,
        starts.astype(np.int64),
        query_ids,
        ids,
        parts[0].feature_names,
        has_missing=any(part.has_missing for part in parts),
        encoding=parts[0].encoding,
        columns=joined_columns([(part, slice(None)) for part in parts]),
        dated=any(part.dated for part in parts),
    )
