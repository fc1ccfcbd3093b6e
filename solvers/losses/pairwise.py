"""Losses over the pairs of documents of one query with different grades.

    loss = mean over the queries that have pairs of  (sum of weight(i, j) phi(s_i - s_j)) / (sum of weight(i, j))

over the pairs y_i > y_j of a query; the mean over queries is weighted by the query weights. The weights of the two
documents of a pair multiply its weight; ranks do not depend on them. The loss of a query is a
weighted mean of its pairs, not the sum that the papers print: gradients then have the same size for short and long
lists (features in [0, 1]: at most 1 a weight for hinge and logistic), one rate suits both, and no long list dominates.
average="none" is the papers' sum, over pairs and over queries. Queries without pairs do not count. Pairs are never
stored; weights that depend on the scores are held constant in the gradient, as in LambdaRank.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, ClassVar
from zlib import crc32

import numpy as np

from ranktune.solvers.core.arrays import Floats, as_floats, as_ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, part, unchecked
from ranktune.solvers.data.grades import copies_of, number_grades, with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import pair_kernels as kernels
from ranktune.solvers.losses import vector_loops as losses
from ranktune.solvers.losses.base import NO_GRADES, Composable, Evaluate
from ranktune.solvers.losses.pair_kernels import PairLists, PairRule
from ranktune.solvers.losses.pair_weights import NoisyWeight, PairWeight, Uniform
from ranktune.solvers.losses.smoothed import kernels as noisy
from ranktune.solvers.losses.smoothed.draws import table_of

AVERAGES = ("queries", "none")

WEIGHT = Param("The weight of each pair.", check=unchecked)
AVERAGE = Param(
    '"queries": the mean over queries of the weighted mean over the pairs of each; "none": the sum over all pairs.',
    choices=AVERAGES,
)

MAX_PAIRS = 4e8
"""Of one list, for a loss that visits each pair at every step: a few seconds."""


class PairwiseLoss(Composable):
    """A loss over pairs; subclasses differ in phi."""

    phi: ClassVar[int]
    weight: PairWeight
    average: str

    @property
    def _samples(self) -> int:
        """The noisy rankings that the weights are means over, 0 without noise."""
        return int(getattr(self.weight, "samples", 0))

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, pair weights held constant.

        The cost for a list of n documents with k grades is n log n log k for hinges under Uniform, n K for weights with
        a cutoff K, and n^2 for the logistic loss under Uniform.

        Parameters
        ----------
        scores : ndarray of shape (n_documents,)
            In the order of queries.
        queries : Queries
            The documents and their grades.

        Returns
        -------
        value : float
            The loss.
        gradient : ndarray of shape (n_documents,)
            Its derivative by each score.

        Raises
        ------
        DataError
            If the pair weight cannot take the grades, or a list has too many pairs for a loss that visits each.
        """
        return self.prepared(queries)(scores)

    def prepared(self, queries: Queries, others: Floats = NO_GRADES) -> Evaluate:
        """Return value_and_gradient on queries, with the grades numbered once; others are grades of further queries."""
        rule, lists = self.rule(queries), self.lists(queries, others)
        weights = as_floats(queries.weight_of_query)

        def evaluate(scores: Floats) -> tuple[float, Floats]:
            gradient = np.empty(queries.n_documents)
            value = kernels.mean_losses(rule, lists, weights, as_floats(scores), gradient)
            return value, gradient

        return evaluate

    def rule(self, queries: Queries) -> PairRule:
        """Return this loss in the form of the kernels, for lists no longer than those of queries.

        Raises DataError if a list has too many pairs for a loss that visits each.
        """
        longest = int(queries.lengths.max())
        values = self.weight.ranks(longest)
        self._check_cost(longest, len(values) * max(self._samples, 1))
        margin, noise = float(getattr(self, "margin", 1.0)), None
        if isinstance(self.weight, NoisyWeight):
            noise = noisy.NoisyRule(self.weight.kind, values, self._samples, table_of(0), True, self.phi, margin)
        return PairRule(self.phi, margin, values, self.average == "queries", noise)

    def lists(self, queries: Queries, others: Floats = NO_GRADES) -> PairLists:
        """Return the grades in the form of the kernels. Raises DataError for grades that the weight cannot take."""
        codes, n_grades = number_grades(queries.grades, queries.starts)
        keys = np.zeros(queries.n_queries, dtype=np.int64)
        if self._samples:  # noise by the name of a query is the same wherever the query stands
            keys[:] = [crc32(str(name).encode()) for name in queries.query_ids]
        starts, gains = as_ints(queries.starts), self.gains(queries, others)
        return PairLists(starts, codes, as_ints(n_grades), gains, keys, copies_of(queries))

    def gains(self, queries: Queries, others: Floats = NO_GRADES) -> Floats:
        """Return u of each document, which is divided by Z of its list where losses are sums, so that it matters."""
        gains = self.weight.gains(np.append(queries.grades, others) if len(others) else queries.grades)
        gains, ideal = as_floats(gains[: queries.n_documents]), getattr(self.weight, "ideal", None)
        if self.average != "none" or ideal is None:
            return gains
        highest: Floats = np.repeat(ideal(gains, queries.starts), queries.lengths)
        return as_floats(np.divide(gains, highest, out=np.zeros_like(gains), where=highest > 0.0))

    def weight_of(self, queries: Queries) -> float | None:
        """Return the weight of the queries that have pairs; None where the losses of queries add up."""
        if self.average == "none":
            return None
        return float(queries.weight_of_query[with_pairs(queries)].sum())

    def _check_cost(self, longest: int, ranks: int) -> None:
        pairs = float(longest) * (ranks if ranks else 0.5 * longest if self.phi == losses.LOGISTIC else 1.0)
        if pairs > MAX_PAIRS:
            name = type(self).__name__
            raise DataError(
                f"a list of {longest} documents has about {pairs:.1g} pairs that {name} would look at one by one, more "
                f"than {MAX_PAIRS:.0e}. Weigh pairs by a measure with a cutoff (ndcg, at=10), use a hinge with "
                "uniform weights (which sorts instead), or check the grouping (qid= or group=)."
            )


@part
class _Hinge(PairwiseLoss):
    """The parameters of both hinges."""

    weight: Annotated[PairWeight, WEIGHT] = field(default_factory=Uniform)
    margin: Annotated[float, Param("The difference of scores from which a pair costs nothing; positive.")] = 1.0
    average: Annotated[str, AVERAGE] = "queries"


@part
class PairwiseHinge(_Hinge):
    """The hinge loss of pairs, phi(z) = max(0, margin - z). With uniform weights this is the L1 loss of RankSVM.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import PairwiseHinge, Queries
    >>> queries = Queries.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> value, gradient = PairwiseHinge().value_and_gradient(np.array([0.0, 0.5, 2.0]), queries)
    >>> round(value, 4), gradient.round(4).tolist()
    (0.1667, [0.3333, -0.3333, 0.0])
    """

    phi: ClassVar[int] = losses.HINGE
    smooth: ClassVar[bool] = False
    optimizers: ClassVar[tuple[str, ...]] = ("newton",)


@part
class PairwiseSquaredHinge(_Hinge):
    """The squared hinge loss of pairs, phi(z) = max(0, margin - z)^2. With uniform weights: the L2 loss of RankSVM.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import PairwiseSquaredHinge, Queries
    >>> queries = Queries.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> value, _ = PairwiseSquaredHinge().value_and_gradient(np.array([0.0, 0.5, 2.0]), queries)
    >>> round(value, 4)
    0.0833
    """

    phi: ClassVar[int] = losses.SQUARED_HINGE
    bounded_slope: ClassVar[bool] = False
    optimizers: ClassVar[tuple[str, ...]] = ("newton",)


@part
class PairwiseLogistic(PairwiseLoss):
    """The logistic loss of pairs, phi(z) = log(1 + exp(-z)): RankNet; LambdaRank with DeltaNDCG as weight.

    {parameters}

    References
    ----------
    Burges et al. 2005, "Learning to Rank using Gradient Descent", ICML, eq. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import DeltaNDCG, PairwiseLogistic, Queries
    >>> queries = Queries.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> value, _ = PairwiseLogistic(DeltaNDCG(10)).value_and_gradient(np.zeros(3), queries)
    >>> round(value, 4)
    0.6931
    """

    phi: ClassVar[int] = losses.LOGISTIC
    weight: Annotated[PairWeight, WEIGHT] = field(default_factory=Uniform)
    average: Annotated[str, AVERAGE] = "queries"
