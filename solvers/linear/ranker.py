"""Ranker: a linear model composed of a loss, a pair weight, a penalty and an optimizer, by name or as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.path_parameter import PathParameter
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.base.training_data import QUERY_WEIGHTS
from ranktune.solvers.blocks.blocked import BlockedQueries
from ranktune.solvers.core.checks import RandomState, check_choice, check_count, check_not_negative
from ranktune.solvers.core.errors import IncompatibleParts
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value, When
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.composition import BatchRanker, OnePassRanker, Optimizer, Parts, no_penalty
from ranktune.solvers.linear.second_order import CoordinateDescent, Newton
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, PairWeight, Uniform
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseLoss, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty
from ranktune.solvers.losses.pointwise import LogisticLoss, SquaredInsensitiveLoss
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN, GradientSteps
from ranktune.solvers.optimizers.one_pass import FOBOS, PSGD, RDA, TGD, OnePass
from ranktune.solvers.optimizers.proximal import FISTA
from ranktune.solvers.optimizers.schedules import SCHEDULES

PAIRWISE: Mapping[str, Callable[..., PairwiseLoss]] = {
    "pairwise_hinge": PairwiseHinge,
    "pairwise_squared_hinge": PairwiseSquaredHinge,
    "pairwise_logistic": PairwiseLogistic,
}
OTHER_LOSSES: Mapping[str, Callable[[float], Loss]] = {
    "softmax": lambda temperature: SoftmaxCrossEntropy("linear", temperature),
    "domination": lambda _: DominationLoss(),
    "pointwise_squared": lambda _: SquaredInsensitiveLoss(0.0, "query"),
    "pointwise_logistic": lambda _: LogisticLoss("linear", "query"),
}
LOSSES = (*PAIRWISE, *OTHER_LOSSES)
PAIR_WEIGHTS = ("uniform", "ndcg", "recall")
PENALTIES = ("none", "l1", "l2", "elastic_net")
ONE_PASS: Mapping[str, Callable[..., OnePass]] = {"fobos": FOBOS, "rda": RDA, "psgd": PSGD, "tgd": TGD}
DESCENTS: Mapping[str, Callable[[], Optimizer]] = {
    "newton": Newton,
    "lbfgs": LBFGS,
    "owlqn": OWLQN,
    "fista": FISTA,
    "coordinate_descent": CoordinateDescent,
}
OPTIMIZERS = (*DESCENTS, "gradient_steps", *ONE_PASS)

STEPWISE = ("gradient_steps", *ONE_PASS)
"""Optimizers of pairwise losses whose weights follow the ranking."""
GENERAL = ("lbfgs", "owlqn", "fista")
"""Optimizers of every smooth loss."""
PENALISED = ("owlqn", "fista", "coordinate_descent", "gradient_steps", "fobos", "rda")
"""Optimizers of every penalty."""

GRADIENT_TOLERANCE = 1e-9
"""Relative gradient at which gradient steps end: separable data without a penalty reach it."""

TRUNCATE_EVERY = 10
"""Queries between two truncations of "psgd" and "tgd"."""


class Ranker(OnePassRanker, BatchRanker):
    """A linear ranker composed of a loss, a pair weight, a penalty and an optimizer, each by name or as an object.

    Named parts take their settings from the other parameters; objects have their own. partial_fit is for one-pass
    optimizers, query_weights for the others: one step twice as long is not two steps.

    Parameters
    ----------
    loss : str or Loss, default="pairwise_logistic"
        "pairwise_hinge", "pairwise_squared_hinge", "pairwise_logistic", "softmax", "domination", "pointwise_squared"
        or "pointwise_logistic", or an object such as SoftmaxCrossEntropy().
    pair_weight : {"uniform", "ndcg", "recall"} or PairWeight or None, default="ndcg"
        Of a pairwise loss that is given by name: all pairs alike, or by the change of the metric at rank at if the two
        swap places. An object, such as DeltaNDCG(10), also replaces the pair weight of a loss object.
    penalty : {"none", "l1", "l2", "elastic_net"} or Penalty or None, default="elastic_net"
        Of the strengths l1 and l2, or an object such as L1(1e-4).
    optimizer : str or optimizer, default="gradient_steps"
        "newton", "lbfgs", "owlqn", "fista", "coordinate_descent" and "gradient_steps" use all queries at every step,
        "fobos", "rda", "psgd" and "tgd" visit one query after the other. Or an object, such as LBFGS().
    at : int, default=10
        Cutoff of "ndcg" and "recall".
    temperature : float, default=0.3
        "softmax": divides the grades.
    l1, l2 : float, default=0.01, 0.1
        Strengths of ``sum |w|`` and of ``1/2 sum w^2``; one that penalty leaves out is ignored.
    eta0 : float, default=0.1
        Rate of the first step of "gradient_steps" and of one-pass optimizers.
    schedule : {"adagrad", "sqrt", "constant"}, default="adagrad"
        How the rate of one-pass optimizers falls: for each weight by its gradients so far, by 1 / sqrt(t), or not.
    passes : int, default=5
        How often a one-pass optimizer visits the queries.
    iterations : int, default=100
        Number of "gradient_steps".
    threshold : float, default=0.01
        "psgd" drops weights below it, "tgd" shrinks those up to it.
    scaling : {"standard", "minmax", "none", "list"}, default="standard"
        As if features were divided by their standard deviation about the means of the queries, by their largest range
        within a query, or not at all; with one-pass optimizers also "list": by their range within each query, so that
        predict needs qid or group.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the order of the queries in each pass of a one-pass optimizer; None keeps their order.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the features; of the raw ones unless scaling is "list".
    n_lists_seen_ : int
        Queries with pairs that a one-pass optimizer has learned from.
    objective_ : float
        The value that a batch optimizer minimises, at ``coef_``.
    n_iter_ : int
        Iterations of a batch optimizer.
    converged_ : bool
        Whether a batch optimizer reached its tolerance.

    Raises
    ------
    IncompatibleParts
        Before training, if the parts do not compose.

    Examples
    --------
    >>> from ranktune.solvers import L2, LBFGS, PairwiseLogistic, Ranker
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = Ranker("pairwise_logistic", "uniform", "l2", "lbfgs", l2=0.1, scaling="none")
    >>> ranker.fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(3)
    array([ 1.338, -0.961])
    >>> same = Ranker(PairwiseLogistic(), penalty=L2(0.1), optimizer=LBFGS(), scaling="none")
    >>> same.fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(3)
    array([ 1.338, -0.961])
    """

    # What follows says which parts compose: nothing is suggested that a part refuses. Steps of fixed length overflow
    # under the unbounded slope of the squared hinge; PSGD's eta0 times l2 must stay below 1.
    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("optimizer", OPTIMIZERS),
        Choice("loss", tuple(PAIRWISE), when=When("optimizer", STEPWISE)),
        Choice(
            "loss",
            ("pairwise_squared_hinge", "pairwise_logistic", *OTHER_LOSSES),
            "softmax",
            When("optimizer", GENERAL),
        ),
        Choice(
            "loss",
            ("pairwise_hinge", "pairwise_squared_hinge", "pointwise_squared"),
            "pairwise_squared_hinge",
            When("optimizer", ("newton",)),
        ),
        Choice("loss", ("domination",), "domination", When("optimizer", ("coordinate_descent",))),
        Choice("pair_weight", PAIR_WEIGHTS, when=When("optimizer", STEPWISE)),
        Choice(
            "pair_weight",
            ("uniform",),
            "uniform",
            (When("optimizer", GENERAL), When("loss", ("pairwise_squared_hinge", "pairwise_logistic"))),
        ),
        Choice(
            "pair_weight",
            ("uniform",),
            "uniform",
            (When("optimizer", ("newton",)), When("loss", ("pairwise_hinge", "pairwise_squared_hinge"))),
        ),
        Int("at", 1, 50, log=True, when=When("pair_weight", ("ndcg", "recall"))),
        Choice("penalty", PENALTIES, when=When("optimizer", PENALISED)),
        Choice("penalty", ("l2",), "l2", When("optimizer", ("newton", "lbfgs", "psgd"))),
        Choice("penalty", ("l1",), "l1", When("optimizer", ("tgd",))),
        Float(
            "l1",
            1e-6,
            1e-1,
            log=True,
            when=(When("optimizer", PENALISED), When("penalty", ("l1", "elastic_net"))),
        ),
        Float("l1", 1e-6, 1e-1, 1e-3, log=True, when=When("optimizer", ("tgd",))),
        Float(
            "l2",
            1e-5,
            10.0,
            log=True,
            when=(When("optimizer", PENALISED), When("penalty", ("l2", "elastic_net"))),
        ),
        Float("l2", 1e-5, 10.0, 0.1, log=True, when=When("optimizer", ("newton", "lbfgs"))),
        Float("l2", 1e-6, 1e-1, 1e-3, log=True, when=When("optimizer", ("psgd",))),
        Float("temperature", 0.1, 10.0, log=True, when=When("loss", ("softmax",))),
        Float("eta0", 1e-2, 1.0, log=True, when=When("optimizer", STEPWISE)),
        Choice(
            "schedule",
            tuple(SCHEDULES),
            when=(When("optimizer", tuple(ONE_PASS)), When("loss", ("pairwise_hinge", "pairwise_logistic"))),
        ),
        Int("passes", 1, 10, when=When("optimizer", tuple(ONE_PASS))),
        Int("iterations", 10, 300, log=True, when=When("optimizer", ("gradient_steps",))),
        Float("threshold", 1e-4, 1.0, log=True, when=When("optimizer", ("psgd", "tgd"))),
        Choice("scaling", ("standard", "minmax")),
    )
    online: ClassVar[bool] = False
    path_parameter: ClassVar[Any] = PathParameter("iterations", lambda ranker: ranker._steps_parameter())

    def __init__(
        self,
        loss: str | Loss = "pairwise_logistic",
        pair_weight: str | PairWeight | None = "ndcg",
        penalty: str | Penalty | None = "elastic_net",
        optimizer: str | Optimizer = "gradient_steps",
        *,
        at: int = 10,
        temperature: float = 0.3,
        l1: float = 0.01,
        l2: float = 0.1,
        eta0: float = 0.1,
        schedule: str = "adagrad",
        passes: int = 5,
        iterations: int = 100,
        threshold: float = 0.01,
        scaling: str = "standard",
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.pair_weight = pair_weight
        self.penalty = penalty
        self.optimizer = optimizer
        self.at = at
        self.temperature = temperature
        self.l1 = l1
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.passes = passes
        self.iterations = iterations
        self.threshold = threshold
        self.scaling = scaling
        self.random_state = random_state

    def _parts(self) -> Parts:
        optimizer = self._optimizer()
        return Parts(self._loss(), self._penalty(optimizer), optimizer)

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, LOSSES)
            if self.loss in PAIRWISE:
                return PAIRWISE[self.loss](weight=self._pair_weight())
            return OTHER_LOSSES[self.loss](self.temperature)
        loss: Any = self.loss
        if isinstance(self.pair_weight, str | None):
            return self.loss
        if not hasattr(loss, "weight"):
            raise IncompatibleParts(
                f"{type(loss).__name__} has no pair weight to replace by {type(self.pair_weight).__name__}: it does "
                "not look at pairs. Leave pair_weight out, or take a pairwise loss."
            )
        replaced: Loss = replace(loss, weight=self.pair_weight)
        return replaced

    def _pair_weight(self) -> PairWeight:
        if self.pair_weight is None:
            return Uniform()
        if not isinstance(self.pair_weight, str):
            return self.pair_weight
        check_choice("pair_weight", self.pair_weight, PAIR_WEIGHTS)
        if self.pair_weight == "uniform":
            return Uniform()
        check_count("at", self.at)
        return DeltaNDCG(self.at, "auto") if self.pair_weight == "ndcg" else DeltaRecall(self.at)

    def _penalty(self, optimizer: Optimizer) -> Penalty:
        if self.penalty is None or self.penalty == "none":
            return no_penalty(optimizer)
        if not isinstance(self.penalty, str):
            return self.penalty
        check_choice("penalty", self.penalty, PENALTIES)
        for name in ("l1", "l2"):
            if self.penalty in (name, "elastic_net"):
                check_not_negative(name, getattr(self, name))
        if self.penalty == "elastic_net":
            return ElasticNet(self.l1, self.l2)
        return L1(self.l1) if self.penalty == "l1" else L2(self.l2)

    def _optimizer(self) -> Optimizer:
        if not isinstance(self.optimizer, str):
            return self.optimizer
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.optimizer in DESCENTS:
            return DESCENTS[self.optimizer]()
        if self.optimizer == "gradient_steps":
            check_count("iterations", self.iterations)
            return GradientSteps(GRADIENT_TOLERANCE, self.iterations, self.eta0)
        check_choice("schedule", self.schedule, SCHEDULES)
        schedule = SCHEDULES[self.schedule](self.eta0)
        if self.optimizer in ("psgd", "tgd"):
            return ONE_PASS[self.optimizer](schedule, self.threshold, TRUNCATE_EVERY)
        return ONE_PASS[self.optimizer](schedule)

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use of the data: one-pass optimizers cannot weigh queries.

        Parameters
        ----------
        parameters : mapping of str to value
            The parameters that differ from the defaults.

        Returns
        -------
        frozenset of str
        """
        optimizer: Any = parameters.get("optimizer")
        one_pass = isinstance(optimizer, OnePass) or optimizer in ONE_PASS
        return super().supports(parameters) - ({QUERY_WEIGHTS} if one_pass else frozenset())

    def _steps_parameter(self) -> str | None:
        """Return the parameter that counts the steps of the named optimizer."""
        if self.optimizer == "gradient_steps":
            return "iterations"
        return "passes" if isinstance(self.optimizer, str) and self.optimizer in ONE_PASS else None

    def _steps(self, queries: Queries) -> Iterator[Step]:
        parts = self._parts()
        if isinstance(parts.optimizer, OnePass):
            return super()._steps(queries)
        return self._fit_parts(parts, queries)

    def _fit_blocks(self, data: BlockedQueries) -> None:
        if isinstance(self._parts().optimizer, OnePass):
            OnePassRanker._fit_blocks(self, data)
        else:
            BatchRanker._fit_blocks(self, data)

    def _counts(self, queries: Queries) -> Iterator[int]:
        one_pass = isinstance(self._parts().optimizer, OnePass)
        return super()._counts(queries) if one_pass else LinearRanker._counts(self, queries)
