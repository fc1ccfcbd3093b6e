"""The domination loss: every document should score above all documents of lower grades together.

    loss = sum over q of a_q sum over i with D(i) nonempty of
           x_i log(1 + sum over j in D(i) of x_j exp(s_j - s_i + u_i - u_j))

D(i) are the documents of i's query with lower grades; x is the weight of a document, which counts as x of them; u is
the margin of a grade or of a document; a_q follows from average. Margins only shift the scores, to s - u. The logarithm
is a soft maximum over D(i), which emphasises the top of the list. The loss is convex in the scores s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, as_floats, as_ints
from ranktune.solvers.core.checks import check_choice, check_not_negative
from ranktune.solvers.core.errors import DataError, ParameterError, listed
from ranktune.solvers.data.grades import number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import domination_kernels as kernels
from ranktune.solvers.losses.base import Composable, Evaluate
from ranktune.solvers.losses.domination_kernels import DominationLists

GRADES = ("two", "all")
MARGINS = ("none", "grade")
AVERAGES = ("none", "documents", "queries")

Margin: TypeAlias = str | Sequence[float]
"""How u is given; see DominationLoss."""

LARGEST_MARGIN = 1e8
"""Beyond it float64 keeps too few digits of a score next to a margin."""


@dataclass(frozen=True)
class DominationLoss(Composable):
    """The domination loss: every document should score above all documents of lower grades together.

    Query weights multiply the loss of a query; averages are weighted by them. Queries of one grade do not count.

    Parameters
    ----------
    grades : {"all", "two"}, default="all"
        "all" compares a document with those of every lower grade, "two" relevant documents with the others.
    margin : {"none", "grade"} or sequence of float, default="none"
        The margin u of a grade: 0, the grade itself, or one number for each distinct grade of the queries from the
        lowest up (for the two classes under grades="two"), not decreasing.
    margin_scale : float, default=1.0
        The factor of all margins.
    relevant_from : float or None, default=None
        The lowest relevant grade under grades="two". None: all above the lowest of the queries.
    average : {"none", "documents", "queries"}, default="queries"
        "none" is the sum, as in the paper; "documents" the mean over the documents with lower grades below them;
        "queries" the mean over queries of the mean over these documents of a query.

    References
    ----------
    Stevens, Bengio & Singer, "Efficient Learning of Sparse Ranking Functions".

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import DominationLoss, Queries
    >>> queries = Queries.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> value, gradient = DominationLoss().value_and_gradient(np.zeros(3), queries)
    >>> round(value, 4), gradient.round(4).tolist()
    (0.8959, [0.4167, -0.0833, -0.3333])
    """

    optimizers: ClassVar[tuple[str, ...]] = ("coordinate_descent",)
    grades: str = "all"
    margin: Margin = "none"
    margin_scale: float = 1.0
    relevant_from: float | None = None
    average: str = "queries"

    def __post_init__(self) -> None:
        """Check what needs no data."""
        check_choice("grades", self.grades, GRADES)
        check_choice("average", self.average, AVERAGES)
        check_not_negative("margin_scale", self.margin_scale)
        if isinstance(self.margin, str):
            check_choice("margin", self.margin, MARGINS)
        else:
            object.__setattr__(self, "margin", _checked_margins(self.margin))
        lowest = self.relevant_from
        if lowest is not None and (
            isinstance(lowest, bool) or not isinstance(lowest, int | float | np.number) or not np.isfinite(lowest)
        ):
            raise ParameterError(
                f"relevant_from={lowest!r}: it must be a finite grade. Use None for all above the lowest."
            )

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,). Cost: O(n_documents)."""
        return _evaluator(self.lists(queries))(scores)

    def prepared(self, queries: Queries) -> Evaluate:
        """Return value_and_gradient on queries, with grades and margins read once.

        Raises ParameterError as lists does, and DataError where no query has two levels.
        """
        lists = self.lists(queries)
        check_dominance(lists, queries.n_documents)
        return _evaluator(lists)

    def lists(self, queries: Queries) -> DominationLists:
        """Return the levels, margins and weights of queries as the kernels read them.

        Raises ParameterError where there is not one margin a grade.
        """
        if self.grades == "two":
            lowest = queries.grades.min()
            relevant = queries.grades > lowest if self.relevant_from is None else queries.grades >= self.relevant_from
            grades = relevant.astype(np.float64)
        else:
            grades = as_floats(queries.grades)
        starts = as_ints(queries.starts)
        codes, n_grades = number_grades(grades, starts)
        first_level, level, order, bounds = kernels.number_levels(starts, codes, n_grades)
        margins = self._margins(grades[order[bounds[:-1]]])
        copies = queries.copies
        weights = self._weights(queries, codes, n_grades, copies)
        return DominationLists(starts, first_level, level, order, bounds, margins, weights, as_floats(copies))

    def _margins(self, grades: Floats) -> Floats:
        """Return the u of each level, (n_levels,), from its grade."""
        if self.margin == "none":
            return np.zeros(len(grades))
        if self.margin == "grade":
            return self._scaled(grades)
        distinct, number = np.unique(grades, return_inverse=True)
        if self.grades == "two":
            distinct, number = np.array([0.0, 1.0]), grades.astype(np.int64)
        if len(self.margin) != len(distinct):
            of_grades = f"the grades {listed([f'{grade:g}' for grade in distinct], 8)}"
            classes = "two classes, relevant or not" if self.grades == "two" else of_grades
            raise ParameterError(
                f"margin has {len(self.margin)} values for {classes}: give one value a grade, from the lowest up, "
                'or margin="grade" with a margin_scale.'
            )
        return self._scaled(np.asarray(self.margin, dtype=np.float64)[number])

    def _scaled(self, margins: Floats) -> Floats:
        """Return margins times margin_scale. Raises ParameterError where they become too large to add to scores."""
        most = max(float(np.abs(margins).max()), 1e-300)
        if float(self.margin_scale) > LARGEST_MARGIN / most:
            raise ParameterError(
                f"margin_scale={self.margin_scale!r} makes a margin of more than {LARGEST_MARGIN:g} from {most:g}: "
                "scores would drown in it. Lower margin_scale."
            )
        return float(self.margin_scale) * margins

    def _weights(self, queries: Queries, codes: Codes, n_grades: Codes, copies: Floats) -> Floats:
        """Return a_q, (n_queries,)."""
        weights = queries.weight_of_query.astype(np.float64)
        if self.average == "none":
            return weights
        above = np.add.reduceat((codes > 0) * copies, queries.starts[:-1])
        if self.average == "documents":
            return weights / max(float(weights @ above), np.finfo(np.float64).tiny)
        total = float(weights[n_grades > 1].sum())
        return weights / np.where(above > 0.0, above, 1.0) / max(total, np.finfo(np.float64).tiny)


def _evaluator(lists: DominationLists) -> Evaluate:
    def evaluate(scores: Floats) -> tuple[float, Floats]:
        state = kernels.new_state(lists)
        return float(kernels.evaluate(lists, as_floats(scores), state)), state.gradient

    return evaluate


def check_dominance(lists: DominationLists, n_documents: int) -> None:
    """Raise DataError where no query has two levels, which grades="two" can bring about."""
    if len(lists.weights) == lists.first_level[-1]:
        raise DataError(
            f"there is nothing to learn from n_samples = {n_documents}: no query has both relevant and other "
            'documents. Lower relevant_from, or use grades="all".'
        )


def _checked_margins(margin: Iterable[float]) -> tuple[float, ...]:
    try:
        values = tuple(float(value) for value in margin)
    except (TypeError, ValueError):
        raise ParameterError(
            f"margin={margin!r}: it must be one of {', '.join(MARGINS)}, or a sequence of numbers, one a grade."
        ) from None
    if not np.isfinite(values).all() or (np.diff(values) < 0.0).any():
        raise ParameterError(
            f"margin={list(values)}: margins must be finite and must not fall from a grade to the next higher one. "
            "Sort them, from that of the lowest grade up."
        )
    return values
