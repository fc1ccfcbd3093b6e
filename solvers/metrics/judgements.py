"""Gains, ideal DCG and other values that depend on the grades alone, computed once for each data set."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from ranktune.solvers.core.arrays import Array, Codes, Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.grades import NO_COPIES, count_pairs, number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.kernels import discounted_sums, rank
from ranktune.solvers.metrics.presets import AUTO, CLICK_COLUMNS, DISCOUNTS, GAINS, HIGHEST_GRADE

P = ParamSpec("P")
T = TypeVar("T")

_NO_TIEBREAK = np.zeros(0)


def remembered(compute: Callable[Concatenate[Judgements, P], T]) -> Callable[Concatenate[Judgements, P], T]:
    """Return a method that computes once, for the same judgements and arguments."""

    @wraps(compute)
    def recalled(self: Judgements, /, *arguments: P.args, **named: P.kwargs) -> T:
        key = (compute.__name__, *arguments, *named.items())
        if key not in self.computed:
            self.computed[key] = compute(self, *arguments, **named)
        return cast(T, self.computed[key])

    return recalled


class Judgements:
    """The grades of documents grouped by query, with a cache of the values that metrics derive from them.

    grades        (n_documents,) float64
    starts        (n_queries + 1,) first document of each query, and the number of documents
    document_ids  (n_documents,) for ties=docid, or None
    copies        (n_documents,) the weights of documents: factors of gains, relevance and pairs; empty: 1
    clicks        what a click log tells, as Queries.clicks has it, or None
    pool          the judgements by which the best order and the relevant documents are known; without others these

    The arrays must not change afterwards.
    """

    def __init__(
        self,
        grades: Floats,
        starts: Ints,
        document_ids: Array | None = None,
        copies: Floats = NO_COPIES,
        clicks: Floats | None = None,
        pool: Judgements | None = None,
    ) -> None:
        self.grades, self.copies, self._clicks = as_floats(grades), copies, clicks
        self.starts = as_ints(starts)
        self.document_ids = document_ids
        self.pool = pool or self
        if not np.isfinite(self.grades).all():
            row = int(np.flatnonzero(~np.isfinite(self.grades))[0])
            raise DataError(f"the grade of document {row} is {self.grades[row]}: grades must be finite.")
        self.lengths = np.diff(self.starts)
        if len(self.starts) < 2 or self.starts[0] != 0 or self.starts[-1] != len(self.grades) or self.lengths.min() < 1:
            raise DataError("starts must rise from 0 to the number of documents, with at least one document per query.")
        self.computed: dict[Hashable, object] = {}

    @staticmethod
    def of(queries: Queries) -> Judgements:
        """Return the judgements of queries, the same object as long as queries lives."""
        judgements = _of_queries.get(queries)
        if judgements is None:
            judgements = Judgements(queries.grades, queries.starts, queries.document_ids, clicks=queries.clicks)
            _of_queries[queries] = judgements
        return judgements

    def ranks(self, at: int | None) -> int:
        """Return how many ranks can count in any query: the longest query's length, or at if that is less."""
        longest = int(self.lengths.max())
        return longest if at is None else min(at, longest)

    @remembered
    def gains(self, gain: str) -> Floats:
        """Return the gain of each document, (n_documents,)."""
        return self._weighed(gains(self.grades, gain))

    @remembered
    def discounts(self, discount: str, at: int | None) -> Floats:
        """Return what each of ranks(at) ranks counts."""
        return discounts(self.ranks(at), discount)

    @remembered
    def ideal(self, gain: str, discount: str, at: int | None) -> Floats:
        """Return the highest possible DCG@at, (n_queries,)."""
        gains, k = self.gains(gain), self.ranks(at)
        order, by_rank = rank(gains, _NO_TIEBREAK, self.starts, k), self.discounts(discount, at)
        return discounted_sums(gains, order, gains, self.starts, k, by_rank, False)

    @remembered
    def by_grade(self) -> Ints:
        """Return the documents of each query, highest grade first, (n_documents,)."""
        return rank(self.grades, _NO_TIEBREAK, self.starts, self.ranks(None))

    @remembered
    def relevance(self, lowest: float) -> Floats:
        """Return 1 for each document whose grade is at least lowest, else 0, (n_documents,)."""
        return self._weighed((self.grades >= lowest).astype(np.float64))

    @remembered
    def relevant(self, lowest: float) -> Floats:
        """Return the number of relevant documents of each query, (n_queries,)."""
        return self._sums(self.relevance(lowest))

    @remembered
    def stops(self, highest: float) -> Floats:
        """Return the probability of stopping at each document, on a scale of grades up to highest, (n_documents,)."""
        return stop_probabilities(self.grades, highest)

    @remembered
    def top(self) -> Floats:
        """Return 1 for each document that has the highest grade of its query, else 0, (n_documents,)."""
        highest = np.repeat(np.maximum.reduceat(self.grades, self.starts[:-1]), self.lengths)
        return np.asarray(self.grades == highest, dtype=np.float64)

    @remembered
    def levels(self) -> tuple[Codes, Codes]:
        """Return the number of each document's grade in its query, lowest 0, and how many grades each query has."""
        return number_grades(self.grades, self.starts)

    @remembered
    def relevance_levels(self, lowest: float) -> tuple[Codes, Codes]:
        """Return levels() of relevance(lowest)."""
        return number_grades(self.relevance(lowest), self.starts)

    @remembered
    def above_lowest(self) -> Floats:
        """Return the number of documents above the lowest grade of each query, (n_queries,)."""
        return self._sums((self.levels()[0] > 0).astype(np.float64))

    @remembered
    def pairs(self) -> Floats:
        """Return the pairs of documents of different grades in each query, (n_queries,), as often as they count."""
        return count_pairs(self.starts, *self.levels(), copies=self.copies)

    @remembered
    def clicked(self, column: str) -> Floats:
        """Return a column of what a click log tells, (n_documents,). Raises DataError where the data have no log."""
        if self._clicks is None:
            raise DataError(
                "ips, snips and dr measure clicks, and these data come without a click log. Give clicks=LOG to tune or "
                "evaluate, or choose a metric of grades, such as ndcg@10."
            )
        return np.ascontiguousarray(self._clicks[:, CLICK_COLUMNS.index(column)])

    def examined(self, at: int | None) -> Floats:
        """Return the examination of each of ranks(at) ranks, which stands beside the documents of the longest query."""
        first = self.starts[np.argmax(self.lengths)]
        return self.clicked("examination")[first : first + self.ranks(at)]

    @remembered
    def tiebreak(self, ties: str) -> Floats:
        """Return what orders documents of equal scores, higher first, (n_documents,); empty for the given order."""
        if ties == "pessimistic":
            return -self.grades
        if ties == "optimistic":
            return self.grades
        if ties == "reverse":
            return np.arange(float(len(self.grades)))
        if ties == "docid":
            return self._order_of_ids()
        return _NO_TIEBREAK

    def _order_of_ids(self) -> Floats:
        if self.document_ids is None:
            raise DataError(
                "ties=docid puts tied documents in the order of their ids, and these documents have none. "
                "Give data with ids of documents, or choose ties=input or ties=average."
            )
        ids = np.asarray(self.document_ids)
        if ids.dtype.kind != "U":  # as text, whose order is the one of its UTF-8 bytes
            ids = np.array([i.decode("utf-8", "replace") if isinstance(i, bytes) else str(i) for i in ids.tolist()])
        return np.unique(ids, return_inverse=True)[1].ravel().astype(np.float64)

    def _weighed(self, values: Floats) -> Floats:
        return values * self.copies if len(self.copies) else values

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.starts[:-1])


_of_queries: weakref.WeakKeyDictionary[Queries, Judgements] = weakref.WeakKeyDictionary()


def gains(grades: Floats, kind: str = "auto") -> Floats:
    """Return the gain of each grade: 2^grade - 1 (exp2) or the grade itself (linear: the same array).

    "auto" is exp2 if all grades are whole numbers from 0 to 30, else linear. Raises DataError for a negative grade,
    and under exp2 for one above 30.
    """
    if kind not in (AUTO, *GAINS):
        raise ParameterError(f"gain '{kind}' is unknown. {nearest(kind, (AUTO, *GAINS))}")
    grades = np.ascontiguousarray(grades, dtype=np.float64)
    _refuse(grades, ~(grades >= 0), f"gain={kind} needs grades of at least 0. Add a constant to all grades")
    if kind == "linear" or (kind == AUTO and not can_double(grades)):
        return grades
    rule = "gain=exp2 (2^grade - 1) needs"
    high = grades > HIGHEST_GRADE
    _refuse(grades, high, f"{rule} grades of at most {HIGHEST_GRADE}. Use gain=linear, or number the grades from 0 up")
    gain: Floats = np.exp2(grades) - 1.0
    return gain


def relative_gains(grades: Floats) -> Floats:
    """Return gains(grades, "auto"), where grades may be negative: then, and above 30, less the lowest grade."""
    return gains(grades) if can_double(grades) else grades - grades.min()


def stop_probabilities(grades: Floats, highest: float) -> Floats:
    """Return the probability that a user stops at a document of each grade, (2^grade - 1) / 2^highest.

    Raises DataError for a grade that is negative or above highest. Source: Chapelle et al. 2009, "Expected reciprocal
    rank for graded relevance".
    """
    _refuse(grades, grades < 0.0, "err needs grades of at least 0. Add a constant to all grades")
    rule = f"err has grades up to highest={highest:g}. Give the highest grade of the scale, such as"
    _refuse(grades, grades > highest, f"{rule} err@10:highest={grades.max():g}")
    stops: Floats = (np.exp2(grades) - 1.0) / np.exp2(highest)
    return stops


def can_double(grades: Floats) -> bool:
    """Return whether the gain "auto" of the grades is 2^grade - 1: whether all are whole numbers from 0 to 30."""
    return bool(grades.min() >= 0.0 and grades.max() <= HIGHEST_GRADE and not (grades % 1.0).any())


def deciding(grades: Floats) -> Floats:
    """Return the few grades that conventions depend on: the lowest, the highest, and one with a fraction, if any."""
    fractions = grades % 1.0 != 0.0
    return np.concatenate([[grades.min(), grades.max()], grades[fractions][:1]])


def discounts(n: int, kind: str = "log2") -> Floats:
    """Return what ranks 1..n count: 1 / log2(rank + 1) (log2), or 1, then 1 / log2(rank) from rank 2 on (letor)."""
    if kind not in DISCOUNTS:
        raise ParameterError(f"discount '{kind}' is unknown. {nearest(kind, DISCOUNTS)}")
    rank = np.arange(1.0, n + 1.0)
    counts: Floats = 1.0 / np.log2(rank + 1.0 if kind == "log2" else np.maximum(rank, 2.0))
    return counts


def _refuse(grades: Floats, bad: Array, rule: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"document {row} has grade {grades[row]:g}: {rule}.")
