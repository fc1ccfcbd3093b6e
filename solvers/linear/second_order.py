"""Newton's method and coordinate descent as optimizers of a composition, for the losses that they are made for.

    minimise  F(w) = loss(X M w) + l1 |w| + l2 / 2 |w|^2

Newton       the pairwise hinges under uniform weights, by the truncated method of RankSVM, and the squared error of
             documents, by the equations of RidgeRanker
coordinates  the domination loss, by the descent of DominationRank

w, M and violations as in ranktune.solvers.optimizers.batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.blocks.blocked import Data, blocked
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import IncompatibleParts
from ranktune.solvers.core.parameters import Param, Range, part
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.linear.domination_descent import CURVATURES, DominationProblem
from ranktune.solvers.linear.least_squares import LeastSquares
from ranktune.solvers.linear.summed_objective import BlockLoss, hinge_objective, pair_totals
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.of_weights import OfWeights, of_weights
from ranktune.solvers.losses.pair_weights import Uniform
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.losses.pointwise import SquaredInsensitiveLoss
from ranktune.solvers.optimizers.base import Needs
from ranktune.solvers.optimizers.batch import MAX_ITERATIONS, Batch
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.regularization_path import search
from ranktune.solvers.optimizers.rank_svm.smoothed_hinge import FIRST_SMOOTHING

Steps = Iterator[tuple[Floats, Step]]
"""Weights of the raw features, (n_features,), and what was reached with them."""


@part
class Newton(Batch):
    """Truncated Newton with order statistics, as in RankSVM; for the squared error of documents, one exact step.

    It takes PairwiseSquaredHinge and PairwiseHinge (smoothed until the duality gap is small) under Uniform() weights
    with margin 1, SquaredInsensitiveLoss(epsilon=0), and L2 of a positive strength.

    {parameters}

    References
    ----------
    Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26(4).

    Examples
    --------
    >>> from ranktune.solvers import L2, Newton, PairwiseSquaredHinge, Ranker
    >>> ranker = Ranker(PairwiseSquaredHinge(), None, L2(0.1), Newton())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    needs: ClassVar[Needs] = Needs(loss=("value_and_gradient",), penalty=("strengths", "gradient"), scalings=SCALINGS)
    losses: ClassVar[str] = "named"
    penalties: ClassVar[tuple[str, ...]] = ("l2",)
    searched: ClassVar[Mapping[str, Range]] = {"loss": Range(default="pairwise_squared_hinge")}
    tol: Annotated[
        float, Param("Stop at this share of the gradient at zero weights; for the hinge, at this relative duality gap.")
    ] = 3e-4
    max_iterations: Annotated[int, MAX_ITERATIONS] = 100

    @staticmethod
    def check(loss: object, penalty: Penalty) -> None:
        """Raise IncompatibleParts for a loss or a penalty that the method is not made for."""
        pairs = isinstance(loss, PairwiseHinge | PairwiseSquaredHinge) and loss.weight == Uniform()
        squares = isinstance(loss, SquaredInsensitiveLoss) and loss.epsilon == 0.0
        if not (squares or (pairs and getattr(loss, "margin", None) == 1.0)):
            raise IncompatibleParts(
                f"Newton cannot minimise {loss!r}: it takes the pairwise hinge and squared hinge, with uniform pair "
                "weights and margin 1, and the squared error of documents. LBFGS and OWLQN take any loss."
            )
        if penalty.strengths[1] <= 0.0:
            raise IncompatibleParts("Newton needs L2 of a positive strength: raise l2, or take LBFGS or OWLQN.")

    def follow(
        self, loss: Loss, penalties: Iterable[Penalty], data: Data, *, multiplier: Floats | None = None
    ) -> Iterator[Steps]:
        """Yield the steps for each of penalties; each begins anew. See Batch.follow."""
        if isinstance(loss, SquaredInsensitiveLoss):
            factors = np.ones(data.n_features) if multiplier is None else multiplier
            equations, at = LeastSquares(data, factors, loss.centre == "query"), of_weights(loss, data)
            for penalty in penalties:
                yield self._solved(equations, at, factors, penalty)
        elif isinstance(loss, PairwiseHinge | PairwiseSquaredHinge):
            for penalty in penalties:
                yield self._descended(loss, penalty, data, multiplier)

    def _descended(
        self, loss: PairwiseHinge | PairwiseSquaredHinge, penalty: Penalty, data: Data, multiplier: Floats | None
    ) -> Steps:
        _, l2 = penalty.strengths
        smoothing = FIRST_SMOOTHING if isinstance(loss, PairwiseHinge) else None
        summand = BlockLoss(smoothing=smoothing, by_query=loss.average == "queries")
        objective = hinge_objective(data, 1.0 / l2, summand, multiplier)
        if loss.average == "queries":
            objective.C /= sum(useful for useful, _ in blocked(data).workers.map(pair_totals, summand))
        descent = Descent(objective)
        for found in search(descent, descent.start(), tolerance=self.tol, max_iterations=self.max_iterations):
            raw = found.weights if multiplier is None else found.weights * multiplier
            yield raw, Step(found.step.iteration, l2 * found.step.objective, found.step.violation)

    @staticmethod
    def _solved(equations: LeastSquares, at: OfWeights, factors: Floats, penalty: Penalty) -> Steps:
        weights = equations.solve(0.5 * penalty.strengths[1] * equations.weight)  # the loss is a mean over documents
        value, _ = at(factors * weights)
        yield factors * weights, Step(1, value + penalty.value(weights), 0.0)


@part
class CoordinateDescent(Batch):
    """Coordinate descent over the features that are or ought to be nonzero, as in DominationRank.

    It takes DominationLoss and any penalty.

    {parameters}

    References
    ----------
    Stevens, Bengio & Singer, "Efficient Learning of Sparse Ranking Functions".

    Examples
    --------
    >>> from ranktune.solvers import L1, CoordinateDescent, DominationLoss, Ranker
    >>> ranker = Ranker(DominationLoss(), None, L1(0.1), CoordinateDescent())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    losses: ClassVar[str] = "named"
    searched: ClassVar[Mapping[str, Range]] = {}
    tol: Annotated[
        float, Param("Stop when no feature is further from its optimum than tol times the largest gradient at 0.")
    ] = 1e-5
    max_iterations: Annotated[int, MAX_ITERATIONS] = 200
    curvature: Annotated[
        str, Param("Second derivatives, or bounds that hold everywhere; see DominationRank.", choices=CURVATURES)
    ] = "exact"

    @staticmethod
    def check(loss: object, _penalty: Penalty) -> None:
        """Raise IncompatibleParts for another loss than the domination loss."""
        if not isinstance(loss, DominationLoss):
            raise IncompatibleParts(
                f"CoordinateDescent cannot minimise {loss!r}: it takes the domination loss. OWLQN and FISTA take any "
                "loss."
            )

    def follow(
        self, loss: Loss, penalties: Iterable[Penalty], data: Data, *, multiplier: Floats | None = None
    ) -> Iterator[Steps]:
        """Yield the steps for each of penalties; each goes on where the one before ended. See Batch.follow."""
        if not isinstance(data, Queries):
            raise IncompatibleParts(
                "CoordinateDescent looks at one feature of all documents after the other, which data in blocks do not "
                "allow: take LBFGS, OWLQN or FISTA, and a pairwise, listwise or pointwise loss."
            )
        assert isinstance(loss, DominationLoss)
        problem = DominationProblem(data, loss, multiplier, self.curvature)
        for penalty in penalties:
            yield self._moved(problem, penalty)

    def _moved(self, problem: DominationProblem, penalty: Penalty) -> Steps:
        for step in problem.steps(penalty, self.tol, self.max_iterations):
            if step.iteration > 0 or step.violation <= self.tol:  # the start counts where it is the end
                yield problem.weights * problem.multiplier, step
