"""Pegasos on pairs: stochastic subgradient steps for the L1-loss RankSVM, a pair at a time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import RandomState, check_positive
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.space import Choice, Float, Int, Parameter
from ranktune.solvers.online.rows import Rows, add_rows, row_score
from ranktune.solvers.online.sampled_pairs import SampledPairsRanker


class PairwisePegasos(SampledPairsRanker):
    """Pegasos on random pairs: subgradient steps of length 1 / (alpha t) for the regularized pairwise hinge.

    It minimizes alpha / 2 w'w + E max(0, 1 - w'z), z = x_i - x_j of a random pair, y_i > y_j. Step t shrinks w by
    1 - 1/t and adds z / (alpha t) if w'z < 1; so w is the sum of these z over alpha t, and only the sum is kept. Cost:
    the stored values of each pair.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of 1/2 w'w relative to the mean hinge of a pair; positive.
    steps : int, optional
        Pairs that fit draws; by default pairs_per_document for each document.
    pairs_per_document : int, default=10
        Pairs that partial_fit and progressive draw from a query, for each of its documents.
    sampling : {"queries", "documents"}, default="queries"
        How the first document of a pair is drawn: "documents": uniformly from all that have a partner; "queries":
        uniformly from a query that is drawn uniformly. The second one is drawn from those of the same query with
        another grade.
    scaling : {"none", "minmax", "standard"}, default="minmax"
        Whether features are used as they are, or as if divided by their range or standard deviation.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the sampled pairs; None is seed 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    n_pairs_seen_ : int
        Pairs that were learned from.

    References
    ----------
    Shalev-Shwartz et al. 2011, "Pegasos: Primal Estimated sub-GrAdient SOlver for SVM", Mathematical Programming 127.
    Sculley 2009, "Large Scale Learning to Rank", NIPS workshop on advances in ranking (sofia-ml).

    Examples
    --------
    >>> from ranktune.solvers import PairwisePegasos
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = PairwisePegasos().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 2.344, -1.531])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("alpha", 1e-6, 1.0, log=True),
        Choice("scaling", ("standard", "minmax")),
        Choice("sampling", ("queries", "documents")),
        Int("pairs_per_document", 1, 100, log=True),
    )

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        steps: int | None = None,
        pairs_per_document: int = 10,
        sampling: str = "queries",
        scaling: str = "minmax",
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.steps = steps
        self.pairs_per_document = pairs_per_document
        self.sampling = sampling
        self.scaling = scaling
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("alpha", self.alpha)

    def _begin_pairs(self, stretch: Floats) -> None:
        self._stretch, self._total, self._taken = stretch, np.zeros(len(stretch)), 0

    def _learn_pairs(self, rows: Rows, better: Ints, worse: Ints) -> float:
        loss = learn(rows, better, worse, float(self.alpha), self._stretch, self._total, self._taken)
        self._taken += len(better)
        return loss

    def _current(self) -> Floats:
        return self._total / (self.alpha * max(self._taken, 1))


@compiled
def learn(rows: Rows, better: Ints, worse: Ints, alpha: float, stretch: Floats, total: Floats, seen: int) -> float:
    """Add to total the differences with a margin below 1; return the sum of the hinges. seen: steps taken before."""
    loss = 0.0
    for s in range(len(better)):
        t = seen + s
        margin = 0.0
        if t > 0:
            margin = (row_score(rows, better[s], total) - row_score(rows, worse[s], total)) / (alpha * t)
        if margin < 1.0:
            loss += 1.0 - margin
            add_rows(rows, better[s], worse[s], stretch, total)
    return loss
