"""Ranker: a linear model composed of a loss, a pair weight, a penalty and an optimizer, by name or as objects."""

from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

from ranktune.solvers.base import vocabulary as words
from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.vocabulary import PathParameter
from ranktune.solvers.core.checks import RandomState
from ranktune.solvers.core.parameters import Param, Range, with_parameters
from ranktune.solvers.core.space import When
from ranktune.solvers.linear import parts
from ranktune.solvers.linear.composition import ComposedRanker, LinearComposition
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pair_weights import PairWeight
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.optimizers.base import Optimizer
from ranktune.solvers.optimizers.one_pass import SCHEDULES

SOFTENED = parts.taking(parts.LOSSES, "temperature")
SCHEDULE = Param(
    'How the rate of one-pass optimizers falls: "adagrad": eta0 / sqrt(sum of squares), for each weight; "sqrt": '
    'eta0 / sqrt(t) at query t; "constant".',
    choices=tuple(SCHEDULES),
)


@with_parameters
class Ranker(ComposedRanker, PassRanker):
    """A linear ranker composed of a loss, a pair weight, a penalty and an optimizer, each by name or as an object.

    Named parts take their settings from the other parameters; objects have their own. partial_fit is for one-pass
    optimizers, query_weights for the others: one step twice as long is not two steps.

    {parameters}

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

    loss: Annotated[
        str | Loss,
        Param(
            "What is minimised, or an object such as SoftmaxCrossEntropy().",
            choices=tuple(parts.LOSSES),
            ranges=parts.loss_ranges(),
            check=parts.by_name(parts.LOSSES),
        ),
    ] = "pairwise_logistic"
    pair_weight: Annotated[
        str | PairWeight | None,
        Param(
            "Of a pairwise loss that is given by name: all pairs alike, or by the change of the metric at rank at if "
            'the two swap places. "smoothed": by the mean change of NDCG in noisy rankings, "yetirank": by the '
            "difference of the grades of neighbours there; their noise is the same throughout a fit. "
            "An object, such as DeltaNDCG(10), also replaces the pair weight of a loss object.",
            choices=tuple(parts.PAIR_WEIGHTS),
            ranges=parts.weight_ranges(),
            check=parts.by_name(parts.PAIR_WEIGHTS),
        ),
    ] = "ndcg"
    penalty: Annotated[
        str | Penalty | None,
        Param(
            "Of the strengths l1 and l2, or an object such as L1(1e-4).",
            choices=tuple(parts.PENALTIES),
            ranges=parts.penalty_ranges(),
            check=parts.by_name(parts.PENALTIES),
        ),
    ] = "elastic_net"
    optimizer: Annotated[
        str | Optimizer,
        Param(
            '"fobos", "rda", "psgd" and "tgd" visit one query after the other, the others use all queries at every '
            "step. Or an object, such as LBFGS().",
            choices=tuple(parts.OPTIMIZERS),
            searched=parts.SEARCHED,
            check=parts.by_name(parts.OPTIMIZERS),
        ),
    ] = "gradient_steps"
    _: KW_ONLY
    at: Annotated[int, words.AT.but(when=When("pair_weight", parts.taking(parts.PAIR_WEIGHTS, "at")))] = 10
    l1: Annotated[float, words.L1.but(ranges=parts.strength_ranges("l1", words.L1.range))] = 0.01
    l2: Annotated[float, words.L2.but(ranges=parts.strength_ranges("l2", Range(low=1e-5, high=10.0, log=True)))] = 0.1
    temperature: Annotated[float, words.TEMPERATURE.but(when=When("loss", SOFTENED))] = 0.3
    eta0: Annotated[float, words.ETA0.but(when=parts.of_optimizer("eta0", *parts.ONE_PASS))] = 0.1
    schedule: Annotated[
        str,
        # Steps of fixed length overflow under an unbounded slope.
        SCHEDULE.but(
            when=(
                When("optimizer", parts.ONE_PASS),
                When("loss", parts.with_bounded_slope(parts.losses_of("fobos"))),
            )
        ),
    ] = "adagrad"
    passes: Annotated[int, words.PASSES.but(when=When("optimizer", parts.ONE_PASS))] = 5
    iterations: Annotated[int, words.ITERATIONS.but(when=parts.of_optimizer("iterations"))] = 100
    threshold: Annotated[float, words.THRESHOLD.but(when=parts.of_optimizer("threshold"))] = 0.01
    scaling: Annotated[str, words.LIST_SCALING] = "standard"
    random_state: Annotated[RandomState, words.RANDOM_ORDER] = None

    space_order: ClassVar[tuple[str, ...]] = ("optimizer", "loss", "pair_weight", "at", "penalty")
    online: ClassVar[bool] = False
    path_parameter: ClassVar[Any] = PathParameter("iterations", lambda ranker: ranker._steps_parameter())

    def _composition(self) -> LinearComposition:
        return LinearComposition(self.loss, self.pair_weight, self.penalty, self.optimizer)

    def _steps_parameter(self) -> str | None:
        """Return the parameter that counts the steps of the named optimizer."""
        if self.optimizer in parts.taking(parts.OPTIMIZERS, "iterations"):
            return "iterations"
        return "passes" if self.optimizer in parts.ONE_PASS else None
