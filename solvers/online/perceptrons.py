"""Perceptrons for ranking: on pairs, with a committee of hypotheses, and on grades with thresholds (Prank)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.grades import shared_levels
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import MatrixRows, add_row, row_score, rows_of
from ranktune.solvers.online import kernels
from ranktune.solvers.online.base import PASSES, OnlineRanker, PairwiseOnlineRanker, blocks_of_work
from ranktune.solvers.online.kernels import OnlineState, UpdateRule, new_state
from ranktune.solvers.online.pairs import ORDERS, visits

MAX_GRADES = 64
"""Different grades that Prank tells apart; of more, such as click rates, neighbours are merged."""


@with_parameters
class PairwisePerceptron(PairwiseOnlineRanker):
    """The perceptron on pairs of documents, also called Prank (pairwise).

    A pair (i, j), y_i > y_j, z = x_i - x_j, that is not ranked correctly (w'z <= 0), takes the step w += z from w = 0.
    Cost: the stored values of each pair.

    {parameters}

    {attributes}
    cumulative_loss_ : float
        The number of mistakes.

    References
    ----------
    Rosenblatt 1958, "The Perceptron", Psychological Review 65; on pairs as in Wang et al. 2015, "SOLAR: Scalable Online
    Learning Algorithms for Ranking", ACL.

    Examples
    --------
    >>> from ranktune.solvers import PairwisePerceptron
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = PairwisePerceptron().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 1.094, -1.429])
    """

    passes: Annotated[int, PASSES] = 1

    space_order = ("scaling", "passes")

    def _rule(self) -> UpdateRule:
        return UpdateRule(kernels.PERCEPTRON, 1.0)


@with_parameters
class CommitteePerceptron(PairwiseOnlineRanker):
    """The pairwise perceptron with a committee of the hypotheses that ranked the longest runs of pairs correctly.

    On a mistake the current hypothesis replaces the one of the shortest run in the committee if its run of correct
    pairs is longer; then it takes the perceptron's step and starts a new run. Cost: the stored values of each pair;
    n_features for each hypothesis that enters.

    {parameters}

    {attributes}
    coef_ : ndarray of shape (n_features,)
        The mean of the committee, weighted by its runs; the current hypothesis is a candidate too.
    cumulative_loss_ : float
        The number of mistakes.

    References
    ----------
    Elsas, Carvalho & Carbonell 2008, "Fast Learning of Document Ranking Functions with the Committee Perceptron", WSDM.

    Examples
    --------
    >>> from ranktune.solvers import CommitteePerceptron
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = CommitteePerceptron(size=2).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 1.094, -1.429])
    """

    size: Annotated[int, Param("Hypotheses in the committee.", low=1, high=50, log=True)] = 20

    space_order = ("size", "scaling", "passes")

    def _rule(self) -> UpdateRule:
        return UpdateRule(kernels.COMMITTEE, 1.0)

    def _new_state(self, stretch: Floats) -> OnlineState:
        return new_state(stretch, committee=np.zeros((int(self.size), len(stretch))))


def _sorted(grades: Sequence[float]) -> Floats:
    return np.unique(np.asarray(grades, dtype=np.float64))


def _check_grades(name: str, grades: Sequence[float] | None) -> None:
    if grades is not None and (len(_sorted(grades)) < 2 or not np.isfinite(_sorted(grades)).all()):
        raise ParameterError(f"{name}={grades!r}: give at least two different grades, such as (0, 1, 2).")


@with_parameters
class Prank(OnlineRanker):
    """Prank (pointwise): a perceptron that predicts grades by a score and thresholds between the grades.

    With grades 1..k and thresholds b_1 <= .. <= b_(k-1), the predicted grade of a document is the least r with
    w'x < b_r, else k. If it is wrong, each threshold on the wrong side of w'x, or equal to it, moves by 1 in the right
    direction, and w += x times the number of thresholds that moved down minus those that moved up. A document of weight
    k is visited k times in a row; the last step is shorter where k is no whole number. Features count by
    their values, not by their differences within a query, so that queries of one document or grade are used too.

    {parameters}

    {attributes}
    thresholds_ : ndarray of shape (n_grades - 1,)
        The thresholds between the grades.
    grades_ : ndarray of shape (n_grades,)
        The grades, ascending.
    n_documents_seen_ : int
        Documents that were learned from.
    cumulative_loss_ : float
        The sum of the distances between predicted grades and grades.

    References
    ----------
    Crammer & Singer 2001, "Pranking with Ranking", NIPS 14.

    Examples
    --------
    >>> from ranktune.solvers import Prank
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = Prank(passes=5).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 1.094, -1.429])
    """

    grades: Annotated[
        Sequence[float] | None,
        Param(
            "All grades; by default those of the first training data. Of more than 64, neighbours are merged.",
            check=_check_grades,
        ),
    ] = None
    _: KW_ONLY
    passes: Annotated[int, PASSES] = 1
    pair_order: Annotated[
        str,
        Param(
            'The order of the documents of a query: "shuffled": it depends on their features and grades only; "rows": '
            "the order of rows.",
            choices=ORDERS[:2],
            searched=(),
        ),
    ] = "shuffled"

    path_parameter: ClassVar[str | None] = "passes"

    def _start(self, queries: Queries, stretch: Floats) -> None:
        seen, _ = shared_levels(queries.grades, MAX_GRADES)
        self.grades_ = seen if self.grades is None else _sorted(self.grades)
        self.thresholds_ = np.zeros(len(self.grades_) - 1)
        self._stretch, self._weights, self._counters = stretch, np.zeros(queries.n_features), np.zeros(3)
        self._publish()

    def _publish(self) -> None:
        """Set the fitted attributes."""
        self.coef_ = self._weights.copy()
        self.n_queries_seen_, self.n_documents_seen_ = int(self._counters[0]), int(self._counters[1])
        self.cumulative_loss_ = float(self._counters[2])
        self._check_finite()

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        levels = self._levels(queries.grades)
        rows, visited = rows_of(queries.features), visits(queries, self.pair_order)
        starts = as_ints(queries.starts)
        state = self._stretch, self._weights, self.thresholds_, self._counters
        copies = queries.copies
        work = np.asarray(queries.lengths * float(4 * queries.n_features + len(self.grades_)), dtype=np.float64)
        for part in blocks_of_work(order, work):
            before = self._counters.copy()
            learn(rows, levels, as_floats(copies), starts, visited, part, *state, scores)
            self._publish()
            _, documents, loss = self._counters - before
            yield Step(self.n_queries_seen_, loss / max(documents, 1.0))

    def _levels(self, grades: Floats) -> Ints:
        if self.grades is None and len(self.grades_) == MAX_GRADES:
            return np.searchsorted(0.5 * (self.grades_[1:] + self.grades_[:-1]), grades).astype(np.int64)
        levels = np.searchsorted(self.grades_, grades)
        found = self.grades_[np.minimum(levels, len(self.grades_) - 1)] == grades
        if not found.all():
            raise DataError(
                f"grade {grades[~found][0]:g} is not among those of the first training data, {self.grades_.tolist()}. "
                "Give all grades by grades=."
            )
        return levels.astype(np.int64)


@compiled
def learn(
    rows: MatrixRows,
    levels: Ints,
    copies: Floats,
    starts: Ints,
    visits: Ints,
    order: Ints,
    stretch: Floats,
    weights: Floats,
    thresholds: Floats,
    counters: Floats,
    scores: Floats,
) -> None:
    """Update from the documents of the queries in order; before each query, write its scores unless scores is empty.

    levels (n_documents,) grades numbered from 0; copies (n_documents,) how often each document counts; visits
    (n_documents,) rows in the order of visits; thresholds (n_grades - 1,); counters: queries, documents, sum of the
    distances between predicted grades and grades.
    """
    for q in order:
        if len(scores) > 0:
            for i in range(starts[q], starts[q + 1]):
                scores[i] = row_score(rows, i, weights)
        counters[0] += 1.0
        for p in range(starts[q], starts[q + 1]):
            i, left = visits[p], copies[visits[p]]
            counters[1] += 1.0
            while left > 0.0 and learn_document(rows, i, levels[i], left, stretch, weights, thresholds, counters):
                left -= 1.0


@inlined
def learn_document(
    rows: MatrixRows,
    i: int,
    level: int,
    left: float,
    stretch: Floats,
    weights: Floats,
    thresholds: Floats,
    counters: Floats,
) -> bool:
    """Update from document i, whose grade is number level: thresholds below level must be below its score.

    The step has the length left, at most 1. Return whether its grade was not predicted.
    """
    score, length = row_score(rows, i, weights), min(left, 1.0)
    predicted = len(thresholds)
    for r in range(len(thresholds)):
        if score < thresholds[r]:
            predicted = r
            break
    if predicted == level:
        return False
    counters[2] += length * abs(predicted - level)
    total = 0.0
    for r in range(len(thresholds)):
        side = length if level > r else -length
        if (score - thresholds[r]) * side <= 0.0:
            total += side
            thresholds[r] -= side
    for r in range(1, len(thresholds)):  # by shorter steps, those that moved could pass those that did not
        at = r if total > 0.0 else len(thresholds) - r
        low, high = thresholds[at - 1], thresholds[at]
        thresholds[at - 1], thresholds[at] = (low, max(low, high)) if total > 0.0 else (min(low, high), high)
    add_row(rows, i, total, stretch, weights)
    return True
