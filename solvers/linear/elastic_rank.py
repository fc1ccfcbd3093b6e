"""ElasticRank: a sparse linear ranking model, learnt list by list in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ranktune.solvers.core.checks import check_choice, check_count, check_not_negative
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, When
from ranktune.solvers.linear.composition import OnePassRanker, Parts, no_penalty
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, PairWeight, Uniform
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseLoss, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty
from ranktune.solvers.optimizers.one_pass import FOBOS, PSGD, RDA, TGD, OnePass
from ranktune.solvers.optimizers.schedules import AdaGrad, Constant, InverseRoot, Schedule

LOSSES: Mapping[str, Callable[..., PairwiseLoss]] = {
    "hinge": PairwiseHinge,
    "squared_hinge": PairwiseSquaredHinge,
    "logistic": PairwiseLogistic,
}
WEIGHTS = ("uniform", "ndcg", "recall")
OPTIMIZERS = ("fobos", "rda", "psgd", "tgd")
SCHEDULES: Mapping[str, Callable[[float], Schedule]] = {
    "sqrt": InverseRoot,
    "constant": Constant,
    "adagrad": AdaGrad,
}


class ElasticRank(OnePassRanker):
    """Linear ranking by one pass over the lists, with pairs weighted by a measure and an elastic-net penalty.

    loss            "hinge", "squared_hinge" or "logistic", of the lead of the better document of a pair
    weight          "uniform": all pairs alike; "ndcg", "recall": by what the measure at rank at loses if they swap
    at              how many ranks the measure looks at; without meaning for "uniform"
    gain            what a grade is worth to "ndcg": "exp2" 2^grade - 1, for whole grades from 0 to 30; "linear" the
                    grade, at least 0; "auto" is "exp2" where the grades of the call allow it, else the grade less the
                    lowest: then fractional and negative grades train as well
    l1, l2          strengths of sum |w| and of 1/2 sum w^2; "psgd" ignores l1, "tgd" ignores l2
    optimizer       "fobos", "rda", "psgd" (drops weights below threshold), "tgd" (shrinks those up to threshold)
    eta0            rate of the first list; under "adagrad" of a gradient of any size
    schedule        "sqrt": eta0 / sqrt(t) at list t; "constant"; "adagrad": eta0 / sqrt(sum of squares), a weight
    passes          how often to go through the lists
    scaling         "none": features as they are; "list": divided by their range within each list (predict needs qid)
    threshold, truncate_every   of "psgd" and "tgd"
    random_state    a seed or numpy.random.Generator that draws the order of the lists in each pass; None: as given

    The loss of a list is the weighted mean over its pairs, not their sum, so that eta0, l1 and l2 mean the same for
    lists of any length. Fitted: coef_ (n_features,), n_lists_seen_ (lists with pairs, learnt from).
    Source: Freno, Saveski, Jenatton & Archambeau 2015, "One-Pass Ranking Models for Low-Latency Product
    Recommendations", KDD.
    """

    # Steps of fixed length overflow under the unbounded slope of the squared hinge: there AdaGrad, the default, stays.
    # Unscaled features gained nothing where that was tried, and overflow sooner.
    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("loss", tuple(LOSSES)),
        Choice("weight", WEIGHTS),
        Int("at", 1, 50, log=True, when=When("weight", ("ndcg", "recall"))),
        Choice("optimizer", OPTIMIZERS),
        Choice("schedule", tuple(SCHEDULES), when=When("loss", ("hinge", "logistic"))),
        Float("eta0", 3e-3, 1.0, log=True),
        Float("l1", 1e-6, 1e-1, log=True, when=When("optimizer", ("fobos", "rda", "tgd"))),
        Float("l2", 1e-6, 1e-1, log=True, when=When("optimizer", ("fobos", "rda", "psgd"))),
        Float("threshold", 1e-4, 1.0, log=True, when=When("optimizer", ("psgd", "tgd"))),
        Int("passes", 1, 10),
        Choice("scaling", ("list",)),
    )
    path_parameter: ClassVar[str | None] = "passes"

    def __init__(
        self,
        loss: str = "logistic",
        weight: str = "ndcg",
        *,
        at: int = 10,
        gain: str = "auto",
        l1: float = 1e-3,
        l2: float = 1e-4,
        optimizer: str = "fobos",
        eta0: float = 0.1,
        schedule: str = "adagrad",
        passes: int = 5,
        scaling: str = "list",
        threshold: float = 0.01,
        truncate_every: int = 10,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.weight = weight
        self.at = at
        self.gain = gain
        self.l1 = l1
        self.l2 = l2
        self.optimizer = optimizer
        self.eta0 = eta0
        self.schedule = schedule
        self.passes = passes
        self.scaling = scaling
        self.threshold = threshold
        self.truncate_every = truncate_every
        self.random_state = random_state

    def _parts(self) -> Parts:
        check_choice("loss", self.loss, LOSSES)
        optimizer = self._optimizer()
        return Parts(LOSSES[self.loss](weight=self._weight()), self._penalty(optimizer), optimizer)

    def _weight(self) -> PairWeight:
        check_choice("weight", self.weight, WEIGHTS)
        check_count("at", self.at)
        by_ndcg = DeltaNDCG(self.at, self.gain)
        if self.weight == "uniform":
            return Uniform()
        return by_ndcg if self.weight == "ndcg" else DeltaRecall(self.at)

    def _optimizer(self) -> OnePass:
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        schedule = SCHEDULES[self.schedule](self.eta0)
        if self.optimizer == "fobos":
            return FOBOS(schedule)
        if self.optimizer == "rda":
            return RDA(schedule)
        truncated = PSGD if self.optimizer == "psgd" else TGD
        return truncated(schedule, self.threshold, self.truncate_every)

    def _penalty(self, optimizer: OnePass) -> Penalty:
        check_not_negative("l1", self.l1)
        check_not_negative("l2", self.l2)
        l1 = 0.0 if self.optimizer == "psgd" else self.l1
        l2 = 0.0 if self.optimizer == "tgd" else self.l2
        if l1 > 0.0 and l2 > 0.0:
            return ElasticNet(l1, l2)
        if l1 > 0.0:
            return L1(l1)
        return L2(l2) if l2 > 0.0 else no_penalty(optimizer)
