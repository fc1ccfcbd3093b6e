"""ElasticRank: a sparse linear ranking model, fitted query by query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from ranktune.solvers.core.checks import RandomState, check_choice, check_count, check_not_negative
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, When
from ranktune.solvers.linear.composition import OnePassRanker, Parts, no_penalty
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, PairWeight, Uniform
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseLoss, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty
from ranktune.solvers.optimizers.one_pass import FOBOS, PSGD, RDA, TGD, OnePass
from ranktune.solvers.optimizers.schedules import SCHEDULES

LOSSES: Mapping[str, Callable[..., PairwiseLoss]] = {
    "hinge": PairwiseHinge,
    "squared_hinge": PairwiseSquaredHinge,
    "logistic": PairwiseLogistic,
}
WEIGHTS = ("uniform", "ndcg", "recall")
OPTIMIZERS = ("fobos", "rda", "psgd", "tgd")
SCALINGS = ("minmax", "standard", "none", "list")


class ElasticRank(OnePassRanker):
    """Linear ranking by passes over the queries, with pairs weighted by a metric and an elastic-net penalty.

    The loss of a query is the weighted mean over its pairs, so that eta0, l1 and l2 mean the same for queries of any
    length; average="none" makes it the sum of the paper.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge"}, default="logistic"
        Loss of the score difference of a pair.
    weight : {"ndcg", "recall", "uniform"}, default="ndcg"
        "uniform": all pairs alike; "ndcg", "recall": by the change of the metric at rank at if the two swap places.
    at : int, default=10
        Cutoff of the metric; unused if weight is "uniform".
    margin : float, default=1.0
        The lead from which a pair costs nothing under the hinges (the paper's slack); positive.
    average : {"queries", "none"}, default="queries"
        "queries": the weighted mean over the pairs of a query; "none": their sum.
    gain : {"auto", "exp2", "linear"}, default="auto"
        The gain of a grade in NDCG: "exp2" 2^grade - 1, for whole grades from 0 to 30; "linear" the grade, at least 0;
        "auto" is "exp2" if the grades of the call allow it, else the grade less the lowest.
    l1, l2 : float, default=0.001, 0.0001
        Strengths of ``sum |w|`` and of ``1/2 sum w^2``. "psgd" ignores l1, "tgd" ignores l2.
    optimizer : {"fobos", "rda", "psgd", "tgd"}, default="fobos"
        "psgd" drops weights below threshold, "tgd" shrinks those up to threshold.
    eta0 : float, default=0.1
        Learning rate of the first query; with "adagrad" whatever the size of the gradient.
    schedule : {"adagrad", "sqrt", "constant"}, default="adagrad"
        "sqrt": eta0 / sqrt(t) at query t; "constant"; "adagrad": eta0 / sqrt(sum of squares), for each weight.
    passes : int, default=5
        How often each query is visited.
    scaling : {"minmax", "standard", "none", "list"}, default="minmax"
        As if features were divided by their largest range within a query, by their standard deviation about the means
        of the queries, or not at all. "list", as in the paper: by their range within each query, so that predict needs
        qid or group, and the model cannot be exported.
    threshold : float, default=0.01
        Of "psgd" and "tgd".
    truncate_every : int, default=10
        Queries between two truncations of "psgd" and "tgd".
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the order of the queries in each pass; None keeps their order.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features; of those scaled within each query if scaling is "list".
    n_lists_seen_ : int
        Queries with pairs that were learned from.

    References
    ----------
    Freno, Saveski, Jenatton & Archambeau 2015, "One-Pass Ranking Models for Low-Latency Product Recommendations", KDD.

    Examples
    --------
    >>> from ranktune.solvers import ElasticRank
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = ElasticRank(passes=2).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.predict(X).round(2)
    array([ 0.3 , -0.18,  0.16, -0.16])
    """

    # Steps of fixed length overflow under the unbounded slope of the squared hinge: there AdaGrad, the default, stays.
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
        Choice("scaling", SCALINGS),
    )
    path_parameter: ClassVar[str | None] = "passes"

    def __init__(
        self,
        loss: str = "logistic",
        weight: str = "ndcg",
        *,
        at: int = 10,
        margin: float = 1.0,
        average: str = "queries",
        gain: str = "auto",
        l1: float = 1e-3,
        l2: float = 1e-4,
        optimizer: str = "fobos",
        eta0: float = 0.1,
        schedule: str = "adagrad",
        passes: int = 5,
        scaling: str = "minmax",
        threshold: float = 0.01,
        truncate_every: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.weight = weight
        self.at = at
        self.margin = margin
        self.average = average
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
        margin = {} if self.loss == "logistic" else {"margin": self.margin}
        loss = LOSSES[self.loss](weight=self._weight(), average=self.average, **margin)
        optimizer = self._optimizer()
        return Parts(loss, self._penalty(optimizer), optimizer)

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
