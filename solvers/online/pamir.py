"""PAMIR: passive-aggressive steps on pairs drawn at random."""

from __future__ import annotations

from typing import Any, ClassVar

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.space import Choice, Float, Int, Parameter
from ranktune.solvers.online import kernels
from ranktune.solvers.online.kernels import Rule, new_state
from ranktune.solvers.online.rows import Rows
from ranktune.solvers.online.sampled_pairs import SampledPairsRanker


class PAMIR(SampledPairsRanker):
    """Passive-aggressive ranking: each pair drawn that lacks a lead of 1 moves the weights until it has it, or by C.

    C                   the longest step, in multiples of the pair's difference; positive
    steps               pairs that fit draws; None: pairs_per_document for each document
    pairs_per_document  pairs that partial_fit and progressive draw from a query, for each of its documents
    sampling            "documents": the first document of a pair is drawn alike from all that have a partner;
                        "queries": a query first, then one of its documents. The second one, in both, alike from those
                        of the same query with another grade
    scaling             "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    random_state        a seed or numpy.random.Generator that draws the pairs; None: as seed 0

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes the step w += min(C, l / z'z) z
    from w = 0 (PA-I). Cost: the stored values of a pair. Fitted: coef_ (n_features,), n_pairs_seen_.
    Source: Grangier & Bengio 2008, "A Discriminative Kernel-Based Approach to Rank Images from Text Queries", IEEE
    PAMI 30(8); Crammer et al. 2006, "Online Passive-Aggressive Algorithms", JMLR 7.
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
        random_state: Any = None,
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
        kernels.learn_listed(rows, better, worse, Rule(kernels.BOUNDED, float(self.C)), self._state)
        return float(self._state.counters[2] - before)

    def _current(self) -> Floats:
        return self._state.weights.copy()
