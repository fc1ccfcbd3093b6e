"""Pegasos on pairs: stochastic subgradient steps for the L1-loss RankSVM, a pair at a time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.space import Choice, Float, Int, Parameter
from ranktune.solvers.online.rows import Rows, add_rows, row_score
from ranktune.solvers.online.sampled_pairs import SampledPairsRanker


class PairwisePegasos(SampledPairsRanker):
    """Pegasos on pairs drawn at random: the regularised pairwise hinge, minimised by steps of 1 / (alpha t).

    alpha               strength of 1/2 w'w against the mean hinge of a pair; positive
    steps               pairs that fit draws; None: pairs_per_document for each document
    pairs_per_document  pairs that partial_fit and progressive draw from a query, for each of its documents
    sampling            "documents": the first document of a pair is drawn alike from all that have a partner;
                        "queries": a query first, then one of its documents. The second one, in both, alike from those
                        of the same query with another grade
    scaling             "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    random_state        a seed or numpy.random.Generator that draws the pairs; None: as seed 0

    minimise alpha / 2 w'w + E max(0, 1 - w'z), z = x_i - x_j of a pair drawn, y_i > y_j. Step t decays w by 1 - 1/t and
    adds z / (alpha t) if w'z < 1; so w is the sum of those z over alpha t, and only the sum is kept: a step costs the
    stored values of the pair. Fitted: coef_ (n_features,), n_pairs_seen_.
    Source: Shalev-Shwartz et al. 2011, "Pegasos", Mathematical Programming 127; Sculley 2009, "Large Scale Learning to
    Rank", NIPS workshop on advances in ranking (sofia-ml).
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
        random_state: Any = None,
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
    """Add to total the differences that lacked a lead of 1; return the sum of the hinges. seen: steps taken before."""
    loss = 0.0
    for s in range(len(better)):
        t = seen + s
        lead = 0.0
        if t > 0:
            lead = (row_score(rows, better[s], total) - row_score(rows, worse[s], total)) / (alpha * t)
        if lead < 1.0:
            loss += 1.0 - lead
            add_rows(rows, better[s], worse[s], stretch, total)
    return loss
