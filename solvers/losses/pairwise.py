"""What a wrong order costs: losses over the pairs of documents of one query with different grades.

    loss = mean over the queries that have pairs of  (sum of weight(i, j) phi(s_i - s_j)) / (sum of weight(i, j))

over the pairs y_i > y_j of a query; in the mean each query counts as often as its weight says. Each query's loss is a
weighted mean, not the sum that the papers print: then a gradient has the same size whatever the length of the list
(features in [0, 1]: at most 1 a weight for hinge and logistic), one rate suits short and long lists, and no long list
drowns the others. Queries without pairs cost nothing and do not count. Pairs are never stored; weights that depend on
the scores are held constant in the gradient, as LambdaRank does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, as_floats, as_ints
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.grades import number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import pair_kernels as kernels
from ranktune.solvers.losses.base import Evaluate
from ranktune.solvers.losses.pair_kernels import Lists, PairRule
from ranktune.solvers.losses.pair_weights import PairWeight, Uniform

MOST_PAIRS = 4e8
"""Of one list, looked at one by one at every step: a few seconds."""


class PairwiseLoss:
    """What the pairwise losses have in common: they differ in phi."""

    phi: ClassVar[int]
    weight: PairWeight

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,), pair weights held constant.

        Cost for a list of n documents with k grades: n log n log k for hinges under Uniform; n K for weights with a
        cutoff K; n^2 for the logistic under Uniform.
        """
        return self.prepared(queries)(scores)

    def prepared(self, queries: Queries) -> Evaluate:
        """Return value_and_gradient on queries, with the grades read once."""
        rule, lists = self.rule(queries), self.lists(queries)
        weights = as_floats(queries.weight_of_query)

        def evaluate(scores: Floats) -> tuple[float, Floats]:
            gradient = np.empty(queries.n_documents)
            value = kernels.mean_losses(rule, lists, weights, as_floats(scores), gradient)
            return value, gradient

        return evaluate

    def rule(self, queries: Queries) -> PairRule:
        """Return what the kernels need to know of this loss, on lists no longer than those of queries.

        Raises DataError where a list has too many pairs to look at one by one.
        """
        longest = int(queries.lengths.max())
        values = self.weight.ranks(longest)
        self._check_cost(longest, len(values))
        return PairRule(self.phi, float(getattr(self, "margin", 1.0)), values)

    def lists(self, queries: Queries) -> Lists:
        """Return the grades of queries as the kernels read them. Raises DataError for grades the weight cannot use."""
        codes, n_grades = number_grades(queries.grades, queries.starts)
        return Lists(as_ints(queries.starts), codes, n_grades, as_floats(self.weight.worths(queries.grades)))

    def _check_cost(self, longest: int, ranks: int) -> None:
        pairs = float(longest) * (ranks if ranks else 0.5 * longest if self.phi == kernels.LOGISTIC else 1.0)
        if pairs > MOST_PAIRS:
            name = type(self).__name__
            raise DataError(
                f"a list of {longest} documents has about {pairs:.1g} pairs that {name} would look at one by one, more "
                f"than {MOST_PAIRS:.0e}. Weigh pairs by a measure with a cutoff (ndcg, at=10), use a hinge with "
                "uniform weights (which sorts instead), or check the grouping (qid= or group=)."
            )


@dataclass(frozen=True)
class PairwiseHinge(PairwiseLoss):
    """phi(z) = max(0, margin - z). With uniform weights the loss of RankSVM."""

    phi: ClassVar[int] = kernels.HINGE
    weight: PairWeight = field(default_factory=Uniform)
    margin: float = 1.0

    def __post_init__(self) -> None:
        """Check the margin."""
        check_positive("margin", self.margin)


@dataclass(frozen=True)
class PairwiseSquaredHinge(PairwiseLoss):
    """phi(z) = max(0, margin - z)^2. With uniform weights the L2 loss of RankSVM."""

    phi: ClassVar[int] = kernels.SQUARED_HINGE
    weight: PairWeight = field(default_factory=Uniform)
    margin: float = 1.0

    def __post_init__(self) -> None:
        """Check the margin."""
        check_positive("margin", self.margin)


@dataclass(frozen=True)
class PairwiseLogistic(PairwiseLoss):
    """phi(z) = log(1 + exp(-z)): RankNet with uniform weights, LambdaRank with DeltaNDCG.

    Source: Burges et al. 2005, "Learning to Rank using Gradient Descent", eq. 3.
    """

    phi: ClassVar[int] = kernels.LOGISTIC
    weight: PairWeight = field(default_factory=Uniform)
