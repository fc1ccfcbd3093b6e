"""Perceptrons that rank: by grades and thresholds (Prank), by pairs, and by a committee of what pairs taught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import Choice, Int, Parameter
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.online import kernels
from ranktune.solvers.online.base import OnlineRanker, PairwiseOnlineRanker, blocks_of_work
from ranktune.solvers.online.kernels import Rule, State, new_state
from ranktune.solvers.online.pairs import ORDERS, visits
from ranktune.solvers.online.rows import Rows, add_row, row_score, rows_of


class PairwisePerceptron(PairwiseOnlineRanker):
    """The perceptron on pairs of documents, also called Prank (pairwise).

    passes           how often to go through the queries
    scaling          "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    pairs_per_query  learn from that many pairs drawn alike where a query has more; None: from all, once
    pair_order       "shuffled": by features and grades, whatever the order of the rows; "rows": each row with all later
                     ones; "worse": each row with all better ones
    random_state     a seed or numpy.random.Generator that draws the order of the queries in each pass, and pairs;
                     None: the order given, pairs as from seed 0

    A pair (i, j), y_i > y_j, z = x_i - x_j, that is not ranked right (w'z <= 0), takes the step w += z from w = 0.
    Cost: the stored values of a pair. Fitted: coef_ (n_features,), n_queries_seen_, n_pairs_seen_, cumulative_loss_
    (mistakes). Source: Rosenblatt 1958, Psychological Review 65; its use on pairs as in Wang et al. 2015 (SOLAR), ACL.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("scaling", ("standard", "minmax")),
        Int("passes", 1, 10),
        Choice("pairs_per_query", (1000,)),
    )

    def __init__(
        self,
        *,
        passes: int = 1,
        scaling: str = "minmax",
        pairs_per_query: int | None = 1000,
        pair_order: str = "shuffled",
        random_state: Any = None,
    ) -> None:
        self.passes = passes
        self.scaling = scaling
        self.pairs_per_query = pairs_per_query
        self.pair_order = pair_order
        self.random_state = random_state

    def _rule(self) -> Rule:
        return Rule(kernels.PERCEPTRON, 1.0)


class CommitteePerceptron(PairwiseOnlineRanker):
    """The pairwise perceptron, judged by a committee of its hypotheses that ranked the longest runs of pairs right.

    size             hypotheses in the committee
    passes           how often to go through the queries
    scaling          "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    pairs_per_query  learn from that many pairs drawn alike where a query has more; None: from all, once
    pair_order       "shuffled": by features and grades, whatever the order of the rows; "rows": each row with all later
                     ones; "worse": each row with all better ones
    random_state     a seed or numpy.random.Generator that draws the order of the queries in each pass, and pairs;
                     None: the order given, pairs as from seed 0

    On a mistake the hypothesis enters the committee if its run of pairs ranked right beats the shortest one there; then
    it takes the perceptron's step and its run begins anew. coef_ is the mean of the committee weighted by the runs, the
    current hypothesis standing for election too. Cost: the stored values of a pair; n_features for each that enters.
    Fitted: coef_ (n_features,), n_queries_seen_, n_pairs_seen_, cumulative_loss_ (mistakes).
    Source: Elsas, Carvalho & Carbonell 2008, "Fast Learning of Document Ranking Functions with the Committee
    Perceptron", WSDM.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("size", 1, 50, log=True),
        Choice("scaling", ("standard", "minmax")),
        Int("passes", 1, 10),
        Choice("pairs_per_query", (1000,)),
    )

    def __init__(
        self,
        size: int = 20,
        *,
        passes: int = 1,
        scaling: str = "minmax",
        pairs_per_query: int | None = 1000,
        pair_order: str = "shuffled",
        random_state: Any = None,
    ) -> None:
        self.size = size
        self.passes = passes
        self.scaling = scaling
        self.pairs_per_query = pairs_per_query
        self.pair_order = pair_order
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("size", self.size)

    def _rule(self) -> Rule:
        return Rule(kernels.COMMITTEE, 1.0)

    def _new_state(self, stretch: Floats) -> State:
        return new_state(stretch, committee=np.zeros((int(self.size), len(stretch))))


class Prank(OnlineRanker):
    """Perceptron ranking by grades (Prank, pointwise): a score, and thresholds between the grades.

    grades        the grades there are; None: those of the data first learnt from
    passes        how often to go through the queries
    scaling       "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    pair_order    in which order the documents of a query are seen: "shuffled": by features and grades, whatever the
                  order of the rows; "rows": as they stand
    random_state  a seed or numpy.random.Generator that draws the order of the queries in each pass; None: as given

    With grades 1..k and thresholds b_1 <= .. <= b_(k-1), a document is given the least grade r with w'x < b_r, else k.
    If that is wrong, each threshold on the wrong side of w'x (on the score itself is wrong) moves by 1 towards where it
    belongs, and w += x times the thresholds that moved down minus those that moved up. Features matter by their values,
    not by their differences within a query; queries of one document or grade teach as others do.
    Fitted: coef_ (n_features,), thresholds_ (n_grades - 1,), grades_ (n_grades,), n_queries_seen_, n_documents_seen_,
    cumulative_loss_ (sum of the distances in grades).
    Source: Crammer & Singer 2001, "Pranking with Ranking", NIPS 14.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("scaling", ("standard", "minmax")),
        Int("passes", 1, 10),
    )
    path_parameter: ClassVar[str | None] = "passes"

    def __init__(
        self,
        grades: Sequence[float] | None = None,
        *,
        passes: int = 1,
        scaling: str = "minmax",
        pair_order: str = "shuffled",
        random_state: Any = None,
    ) -> None:
        self.grades = grades
        self.passes = passes
        self.scaling = scaling
        self.pair_order = pair_order
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("pair_order", self.pair_order, ORDERS[:2])
        if self.grades is not None:
            self._given_grades()

    def _given_grades(self) -> Floats:
        given = np.unique(np.asarray(self.grades, dtype=np.float64))
        if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all():
            raise ParameterError(f"grades={self.grades!r}: name at least two different grades, such as (0, 1, 2).")
        return given

    def _start(self, queries: Queries, stretch: Floats) -> None:
        self.grades_ = np.unique(queries.grades) if self.grades is None else self._given_grades()
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
        starts = np.require(queries.starts, np.int64, ["C", "W"])
        state = self._stretch, self._weights, self.thresholds_, self._counters
        work = np.asarray(queries.lengths * float(4 * queries.n_features + len(self.grades_)), dtype=np.float64)
        for part in blocks_of_work(order, work):
            before = self._counters.copy()
            learn(rows, levels, starts, visited, part, *state, scores)
            self._publish()
            _, documents, loss = self._counters - before
            yield Step(self.n_queries_seen_, loss / max(documents, 1.0))

    def _levels(self, grades: Floats) -> Ints:
        levels = np.searchsorted(self.grades_, grades)
        known = self.grades_[np.minimum(levels, len(self.grades_) - 1)] == grades
        if not known.all():
            raise DataError(
                f"grade {grades[~known][0]:g} is not among those that learning began with, {self.grades_.tolist()}. "
                "Name all grades there are by grades=."
            )
        return levels.astype(np.int64)


@compiled
def learn(
    rows: Rows,
    levels: Ints,
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

    levels (n_documents,) grades numbered from 0; visits (n_documents,) rows in the order of visits; thresholds
    (n_grades - 1,); counters: queries, documents, sum of the distances between predicted grades and grades.
    """
    for q in order:
        if len(scores) > 0:
            for i in range(starts[q], starts[q + 1]):
                scores[i] = row_score(rows, i, weights)
        counters[0] += 1.0
        for p in range(starts[q], starts[q + 1]):
            learn_document(rows, visits[p], levels[visits[p]], stretch, weights, thresholds, counters)


@compiled
def learn_document(
    rows: Rows, i: int, level: int, stretch: Floats, weights: Floats, thresholds: Floats, counters: Floats
) -> None:
    """Update from document i, whose grade is number level: thresholds below level must be below its score."""
    score = row_score(rows, i, weights)
    counters[1] += 1.0
    predicted = len(thresholds)
    for r in range(len(thresholds)):
        if score < thresholds[r]:
            predicted = r
            break
    if predicted == level:
        return
    counters[2] += abs(predicted - level)
    total = 0.0
    for r in range(len(thresholds)):
        side = 1.0 if level > r else -1.0
        if (score - thresholds[r]) * side <= 0.0:
            total += side
            thresholds[r] -= side
    add_row(rows, i, total, stretch, weights)
