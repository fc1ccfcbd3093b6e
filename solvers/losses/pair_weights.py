"""The weights of pairs of documents: all 1, the change of a metric when the two swap places, or means of weights.

A metric of the form sum over the first K ranks r of v_r u_(r) / Z changes by |u_i - u_j| |v_rank(i) - v_rank(j)| / Z
when i and j swap. So a weight is given by u, the gain of a document, v, the discount of a rank, and Z, the highest sum
that a list can have. Z cancels where a loss is the weighted mean over the pairs of a list.

The means are over noisy rankings, those of a Plackett-Luce model of the scores. Their noise is the same throughout a
fit, so that equal scores have equal weights; it differs by query, and by the place of a document in its query.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, part
from ranktune.solvers.losses.smoothed import kernels
from ranktune.solvers.metrics.judgements import Judgements, discounts, gains, relative_gains
from ranktune.solvers.metrics.presets import AUTO, GAINS

RELEVANT = 1.0
"""The lowest grade that recall counts as relevant, where a grade is that high."""


class PairWeight(Protocol):
    """The protocol of pair weights."""

    def gains(self, grades: Floats) -> Floats:
        """Return u, (n_documents,), not decreasing with the grade. Raises DataError for grades that it cannot take."""

    def ranks(self, longest: int) -> Floats:
        """Return v, (K,), not increasing, positive, K at most longest; empty if all pairs weigh 1."""

    # ideal(gains, starts) may return Z of each list, given the gain of each document; without it all are 1.


@dataclass(frozen=True)
class Uniform:
    """The weight 1 for every pair.

    Examples
    --------
    >>> from ranktune.solvers import PairwiseHinge, Uniform
    >>> PairwiseHinge() == PairwiseHinge(Uniform())
    True
    """

    def gains(self, grades: Floats) -> Floats:
        """Return the grades, which uniform weights do not use."""
        return grades

    def ranks(self, longest: int) -> Floats:
        """Return an empty array: no rank counts more than another."""
        return np.zeros(0)


@dataclass(frozen=True)
class DeltaNDCG:
    """The change of NDCG@at when the two documents of a pair swap places (discount 1 / log2(rank + 1)).

    Parameters
    ----------
    at : int or None, default=10
        The cutoff. None is the whole list, whose pairs then all count.
    gain : {"exp2", "linear", "auto"}, default="exp2"
        "exp2" is 2^grade - 1, for grades from 0 to 30; "linear" is the grade itself, at least 0. "auto" is "exp2" if
        all grades are whole numbers from 0 to 30, else the grade less the lowest of all, for any finite grades.

    References
    ----------
    Burges, Ragno & Le 2006, "Learning to Rank with Nonsmooth Cost Functions", NIPS (LambdaRank).

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import DeltaNDCG
    >>> DeltaNDCG(2).gains(np.array([0.0, 1.0, 2.0])).tolist(), DeltaNDCG(2).ranks(3).round(3).tolist()
    ([0.0, 1.0, 3.0], [1.0, 0.631])
    """

    at: int | None = 10
    gain: str = "exp2"

    def __post_init__(self) -> None:
        """Check the cutoff and the gain."""
        if self.at is not None:
            check_count("at", self.at)
        check_choice("gain", self.gain, (*GAINS, AUTO))

    def gains(self, grades: Floats) -> Floats:
        """Return the gain of each grade."""
        if self.gain == AUTO:
            return relative_gains(grades)
        try:
            return gains(grades, self.gain)
        except DataError as error:
            raise DataError(f"{error} Pairs can also be weighed otherwise: weight='uniform' or 'recall'.") from None

    def ranks(self, longest: int) -> Floats:
        """Return 1 / log2(rank + 1)."""
        return discounts(longest if self.at is None else min(self.at, longest))

    def ideal(self, gains: Floats, starts: Ints) -> Floats:
        """Return the DCG of the best ranking of each list, (n_lists,), given the gain of each document."""
        return Judgements(gains, starts).ideal("linear", "log2", self.at)


@dataclass(frozen=True)
class DeltaRecall:
    """The change of recall@at: zero unless one document is relevant (grade >= 1), and one is among the first at.

    If all grades are below 1, such as click rates, every document above the lowest grade is relevant.

    Parameters
    ----------
    at : int, default=10
        The cutoff.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import DeltaRecall
    >>> DeltaRecall(2).gains(np.array([0.0, 1.0, 2.0])).tolist(), DeltaRecall(2).ranks(3).tolist()
    ([0.0, 1.0, 1.0], [1.0, 1.0])
    """

    at: int = 10

    def __post_init__(self) -> None:
        """Check the cutoff."""
        check_count("at", self.at)

    def gains(self, grades: Floats) -> Floats:
        """Return 1 where the document is relevant, else 0."""
        relevant = grades >= RELEVANT if grades.max() >= RELEVANT else grades > grades.min()
        return relevant.astype(np.float64)

    def ranks(self, longest: int) -> Floats:
        """Return ones."""
        return np.ones(min(self.at, longest))

    def ideal(self, gains: Floats, starts: Ints) -> Floats:
        """Return the relevant documents of each list, (n_lists,), given the gain of each document."""
        return np.add.reduceat(gains, starts[:-1])


@part
class NoisyWeight:
    """A weight that is a mean over noisy rankings."""

    kind: ClassVar[int]
    _: KW_ONLY
    samples: Annotated[int, Param("The noisy rankings of each query.")] = 10


@part
class NoisyNDCG(NoisyWeight):
    """The mean change of NDCG@at over noisy rankings when the two documents of a pair swap places.

    {parameters}

    References
    ----------
    Bruch et al. 2020, "A Stochastic Treatment of Learning to Rank Scoring Functions", WSDM, for noise on scores.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import NoisyNDCG, PairwiseLogistic, Queries
    >>> queries = Queries.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> value, _ = PairwiseLogistic(NoisyNDCG(10)).value_and_gradient(np.zeros(3), queries)
    >>> round(value, 4)
    0.6931
    """

    kind: ClassVar[int] = kernels.SUM
    at: Annotated[int, Param("The cutoff.")] = 10
    gain: Annotated[str, Param("As of DeltaNDCG.", choices=(*GAINS, AUTO))] = AUTO

    def gains(self, grades: Floats) -> Floats:
        """Return the gain of each grade."""
        return DeltaNDCG(self.at, self.gain).gains(grades)

    def ranks(self, longest: int) -> Floats:
        """Return 1 / log2(rank + 1)."""
        return DeltaNDCG(self.at, self.gain).ranks(longest)

    def ideal(self, gains: Floats, starts: Ints) -> Floats:
        """Return that of DeltaNDCG."""
        return DeltaNDCG(self.at, self.gain).ideal(gains, starts)


@part
class NoisyNeighbours(NoisyWeight):
    """The difference of the grades of documents at successive ranks of noisy rankings, as YetiRank has it.

    {parameters}

    References
    ----------
    Gulin et al. 2011, "Winning the Transfer Learning Track of Yahoo!'s Learning to Rank Challenge with YetiRank",
    PMLR 14.

    Examples
    --------
    >>> from ranktune.solvers import NoisyNeighbours
    >>> NoisyNeighbours(decay=0.5).ranks(3).tolist()
    [1.0, 0.5, 0.25]
    """

    kind: ClassVar[int] = kernels.NEIGHBOURS
    truncation: Annotated[int, Param("The ranks whose documents make a pair with the next one.")] = 30
    decay: Annotated[float, Param("What a rank counts, as a factor of what the one above it counts.")] = 0.85

    def gains(self, grades: Floats) -> Floats:
        """Return the grades."""
        return grades

    def ranks(self, longest: int) -> Floats:
        """Return decay to the power of the ranks above."""
        return np.asarray(float(self.decay) ** np.arange(min(self.truncation, longest)))
