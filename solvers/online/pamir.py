"""PAMIR: passive-aggressive steps on random pairs."""

from __future__ import annotations

from typing import ClassVar

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import RandomState, check_positive
from ranktune.solvers.core.space import Choice, Float, Int, Parameter
from ranktune.solvers.online import kernels
from ranktune.solvers.online.kernels import Rule, new_state
from ranktune.solvers.online.rows import Rows
from ranktune.solvers.online.sampled_pairs import SampledPairsRanker


class PAMIR(SampledPairsRanker):
    """PAMIR: passive-aggressive steps (PA-I) on random pairs.

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes the step w += min(C, l / z'z) z
    from w = 0. Cost: the stored values of each pair.

    Parameters
    ----------
    C : float, default=0.001
        The longest step, in multiples of the pair's difference; positive.
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
    Grangier & Bengio 2008, "A Discriminative Kernel-Based Approach to Rank Images from Text Queries", IEEE PAMI 30(8).
    Crammer et al. 2006, "Online Passive-Aggressive Algorithms", JMLR 7.

    Examples
    --------
    >>> from ranktune.solvers import PAMIR
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = PAMIR(C=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 1.176, -0.982])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("C", 1e-6, 1.0, log=True),
        Choice("scaling", ("standard", "minmax")),
        Choice("sampling", ("queries", "documents")),
        Int("pairs_per_document", 1, 100, log=True),
    )

    def __init__(
        self,
        C: float = 1e-3,
        *,
        steps: int | None = None,
        pairs_per_document: int = 10,
        sampling: str = "queries",
        scaling: str = "minmax",
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.steps = steps
        self.pairs_per_document = pairs_per_document
        self.sampling = sampling
        self.scaling = scaling
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("C", self.C)

    def _begin_pairs(self, stretch: Floats) -> None:
        self._state = new_state(stretch)

    def _learn_pairs(self, rows: Rows, better: Ints, worse: Ints) -> float:
        before = self._state.counters[2]
        kernels.learn(rows, better, worse, Rule(kernels.BOUNDED, float(self.C)), self._state)
        return float(self._state.counters[2] - before)

    def _current(self) -> Floats:
        return self._state.weights.copy()
