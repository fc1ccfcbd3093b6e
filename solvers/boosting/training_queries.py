"""The queries that trees are grown on, in memory or in blocks, and checks and parameters that several rankers share.

A library keeps the features of blocks in bins. Labels, weights and metrics need no features, so that those of blocks
are read a block at a time: into bins, to score them by the model that boosting starts from, and, of some queries, to
hold them out or to fit that model. Further columns, computed from the features within each query, are computed once for
all fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.core.checks import check_not_negative, check_positive
from ranktune.solvers.core.errors import DataError, ParameterError, warn
from ranktune.solvers.core.parameters import Check, Param
from ranktune.solvers.data.blocked import BlockedQueries, LocalBlocks, OpenBlock
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.origins import Kept, origin_of
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.judgements import gains, relative_gains
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.within import KINDS, columns_within, signs_within

NONE, RANKS, ALL = CHOICES = ("none", "ranks", "all")
N_KINDS = {NONE: 1, RANKS: 2, ALL: len(KINDS)}
"""The kinds of columns, of KINDS the first ones, the features among them."""
MAX_FEATURES = 2_000
"""Features of which further columns are made: of more, they would take too long and too much memory."""
MAX_KEPT = 2
"""Data sets whose columns are kept in a process."""
MAX_KEPT_BYTES = 2**30
"""Of the columns of a data set that are kept; more are computed for each fit."""
MIN_SHARE = 0.05
"""Of the documents of a data set: of a smaller part of it the columns are computed for themselves."""

WIDENED: Kept[Queries] = Kept(MAX_KEPT)
"""The last data sets with further columns."""


def widened(queries: Queries, within: str) -> Queries:
    """Return queries with the further columns; for "none" the queries themselves.

    For queries that were selected from others, the columns are selected from those of the others.
    """
    if within == NONE:
        return queries
    origin, numbers = origin_of(queries)
    n_bytes = origin.n_documents * origin.n_features * N_KINDS[within] * origin.features.dtype.itemsize
    if n_bytes > MAX_KEPT_BYTES or queries.n_documents < MIN_SHARE * origin.n_documents:
        return _computed(queries, within)
    whole = WIDENED.of(origin, within, lambda: _computed(origin, within))
    return whole if origin is queries else whole.select(numbers)


def possible(queries: Queries, within: str) -> str:
    """Return which further columns training queries get: none, with a RankTuneWarning, where they can have none."""
    if within == NONE or not (reason := _refused(queries)):
        return within
    warn(f"within_query={within!r} is left out: {reason}")
    return NONE


def kinds_of(queries: Queries, within: str) -> int:
    """Return how many kinds of columns training queries get, the features among them."""
    return 1 if _refused(queries) else N_KINDS[within]


def _refused(queries: Queries) -> str:
    """Return why features have no further columns, or an empty string."""
    if queries.is_sparse:
        return "the features are sparse, and what they are within their queries would not be."
    if queries.n_features > MAX_FEATURES:
        return f"there are {queries.n_features} features, and at most {MAX_FEATURES} are compared within queries."
    return ""


def _computed(queries: Queries, within: str) -> Queries:
    n_kinds = N_KINDS[within]
    columns = np.arange(queries.n_features * n_kinds)
    features = columns_within(queries.features, queries.starts, columns)
    signs = None if queries.monotone is None else signs_within(queries.monotone, n_kinds)
    queries = queries.replaced(monotone=None)
    return replace(queries, features=features, feature_names=None, features_checked=True).replaced(monotone=signs)


@dataclass(frozen=True)
class InMemory:
    """Queries in memory, or mapped as a whole."""

    plain: Queries
    within: str = NONE

    @cached_property
    def queries(self) -> Queries:
        """The queries with all columns."""
        return widened(self.plain, self.within)

    def select(self, numbers: Ints) -> Queries:
        """Return the queries of these numbers."""
        return self.plain.select(numbers)

    def scores(self, model: Model) -> Floats:
        """Return the scores of all documents by a model, (n_documents,)."""
        return scores_of(model, self.plain)


class InBlocks:
    """Queries in blocks of this process; only those with documents of different grades if pairs is true.

    monotone has the constraints of all columns, which queries, without features, does not have.
    Raises DataError for sparse features, and ParameterError where other processes hold the blocks.
    """

    def __init__(self, data: BlockedQueries, *, pairs: bool, within: str = NONE) -> None:
        if not isinstance(data.workers, LocalBlocks):
            raise ParameterError(
                "trees are grown in one process, from the bins of all blocks: leave workers out. On a Dask cluster "
                "lightgbm.DaskLGBMRanker and xgboost.dask grow them."
            )
        if data.extent.is_sparse:
            raise DataError("blocks of sparse features cannot be binned block by block: call fit on all documents.")
        self._workers, self._pairs, self.within = data.workers, pairs, within
        parts = data.workers.map(_without_features, pairs)
        self._first = np.cumsum([0, *(0 if part is None else part.n_queries for part in parts)])
        self.queries = concatenate([part for part in parts if part is not None])
        self.monotone = None if data.monotone is None else signs_within(data.monotone, N_KINDS[within])

    def select(self, numbers: Ints) -> Queries:
        """Return the queries of these numbers, ascending, with their features, in memory."""
        ends = np.searchsorted(numbers, self._first)
        of_blocks = [numbers[a:b] - first for (a, b), first in zip(pairwise(ends), self._first[:-1], strict=True)]
        following = iter(of_blocks)
        parts = self._workers.map(lambda block: _selected(block, self._pairs, next(following)))
        return concatenate([part for part in parts if part is not None])

    def scores(self, model: Model) -> Floats:
        """Return the scores of all documents by a model, (n_documents,)."""
        return np.concatenate(self._workers.map(_scored, self._pairs, model))

    def features(self) -> Iterator[Array]:
        """Yield the columns of a block after the other."""
        yield from self._workers.each(_features, self._pairs, self.within)


TrainingQueries: TypeAlias = InMemory | InBlocks
"""Queries to grow trees on: queries has their grades, weights and lengths, and not always their features."""


def scores_of(model: Model, queries: Queries) -> Floats:
    """Return the scores of the documents in the order that they have in queries."""
    scores = model.predict(queries)
    return scores if queries.rows is None else scores[queries.rows]


def _numbers(block: OpenBlock, pairs: bool) -> Ints:
    return np.flatnonzero(with_pairs(block.queries)) if pairs else np.arange(block.queries.n_queries)


def _without_features(block: OpenBlock, pairs: bool) -> Queries | None:
    """Return the queries of a block with a column of zeros as features; None without any."""
    numbers = _numbers(block, pairs)
    if len(numbers) == 0:
        return None
    part = block.queries.without_features().select(numbers)
    return replace(part, encoding=None, document_ids=None).replaced(baseline=None, monotone=None)


def _selected(block: OpenBlock, pairs: bool, numbers: Ints) -> Queries | None:
    return block.queries.select(_numbers(block, pairs)[numbers]) if len(numbers) else None


def _scored(block: OpenBlock, pairs: bool, model: Model) -> Floats:
    scores = scores_of(model, block.queries)
    return scores[block.queries.documents_of(_numbers(block, pairs))]


def _features(block: OpenBlock, pairs: bool, within: str) -> Array:
    queries = widened(block.queries, within)
    rows: Array = np.asarray(queries.features[queries.documents_of(_numbers(block, pairs))])
    return rows


def gains_of(grades: Floats, gain: str) -> Floats:
    """Return the gain of each grade, at least 0, (n_documents,); "auto" is exponential for whole grades from 0 to 30.

    For other grades (negative, fractional, above 30), auto is linear in the difference to the lowest grade. Raises
    DataError for grades that the given gain does not allow.
    """
    if gain == "auto":
        return relative_gains(grades)
    try:
        return gains(grades, "exp2" if gain == "exponential" else "linear")
    except DataError as error:
        message = str(error).replace("gain=exp2", "gain='exponential'").replace("gain=linear", "gain='linear'")
        raise DataError(message) from None


def check_share(name: str, value: float) -> None:
    """Raise ParameterError unless value is a share: above 0, at most 1."""
    check_positive(name, value)
    if value > 1.0:
        raise ParameterError(f"{name}={value!r}: it must be a share of at most 1.")


def check_penalty(name: str, value: float) -> None:
    """Raise ParameterError unless value is at least 0 and far below the largest single-precision number."""
    check_not_negative(name, value)
    if value > 1e30:
        raise ParameterError(f"{name}={value!r}: it must be at most 1e30.")


def whole(low: int, high: int) -> Check:
    """Return the check that a value is a whole number from low to high."""

    def check(name: str, value: object) -> None:
        if isinstance(value, bool) or not (isinstance(value, int | np.integer) and low <= value <= high):
            raise ParameterError(f"{name}={value!r}: it must be a whole number from {low} to {high}.")

    return check


TINY, HUGE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def check_single(values: Floats, what: str) -> None:
    """Raise DataError where values, which the libraries keep in single precision, would become 0 or infinite."""
    size = np.abs(values[values != 0.0])
    limits = np.finfo(np.float32)
    beyond = (size > float(limits.max)) | (size < float(limits.tiny))
    if beyond.any():
        raise DataError(
            f"{what} of {size[beyond][0]:.3g} is beyond single precision, in which trees are grown: "
            f"from {limits.tiny:.2g} to {limits.max:.2g}. Multiply all of them by the same factor."
        )


def check_single_features(queries: Queries, solver: str, least: float = TINY, most: float = HUGE) -> None:
    """Raise DataError where a feature is beyond what a library keeps, or has only values that are 0 to it."""
    X = queries.features
    by_feature = X if isinstance(X, np.ndarray) else X.data[:, None]
    high, low = (np.fmax, np.fmin) if queries.has_missing else (np.maximum, np.minimum)  # the first two pass over NaN
    ends = high.reduce(by_feature, axis=0, initial=0.0), -low.reduce(by_feature, axis=0, initial=0.0)
    sizes = np.maximum(*ends).astype(np.float64)
    beyond = sizes[(sizes > most) | ((sizes > 0.0) & (sizes < least))]
    if len(beyond):
        raise DataError(
            f"the largest value of a feature is {beyond[0]:.3g}: {solver} rounds features to single precision, or cuts "
            f"them off, and keeps {least:.2g} to {most:.2g}. Scale the features."
        )


Gain: TypeAlias = Annotated[
    str,
    Param(
        'The gain of a grade: "exponential": 2^grade - 1, for grades from 0 to 30; "linear": the grade, at least 0; '
        '"auto": exponential for whole grades from 0 to 30, else the difference to the lowest grade.',
        choices=("auto", "exponential", "linear"),
        searched=(),
    ),
]
L2: TypeAlias = Annotated[
    float, Param("Penalty on the values of leaves.", low=1e-2, high=100.0, log=True, check=check_penalty)
]
RowShare: TypeAlias = Annotated[
    float, Param("The share of the documents that is drawn for each tree.", low=0.4, high=1.0, check=check_share)
]
"""Parameters of several rankers."""
