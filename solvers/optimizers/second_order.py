"""Newton's method and coordinate descent, for the losses that they are made for.

Newton       the pairwise hinges under uniform weights, by the truncated method with order statistics, and the squared
             error of documents, whose one step is that of LeastSquares
coordinates  the domination loss
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, cast

from ranktune.solvers.core.errors import IncompatibleParts
from ranktune.solvers.core.parameters import Param, Range, part
from ranktune.solvers.data.blocked import Data, blocked
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.pair_weights import Uniform
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseSquaredHinge
from ranktune.solvers.losses.penalties import ElasticNet, Penalty
from ranktune.solvers.optimizers.base import Needs, Parts, Progress, minimised
from ranktune.solvers.optimizers.batch import MAX_ITERATIONS, Batch
from ranktune.solvers.optimizers.domination_descent import CURVATURES, DominationProblem
from ranktune.solvers.optimizers.least_squares import LeastSquares, is_squared_error
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.regularization_path import FIRST_SMOOTHING, Follower, Solution, search
from ranktune.solvers.optimizers.rank_svm.summed_objective import HingeLoss, hinge_objective, pair_totals

PATH_TOLERANCE = 3.0
"""Solutions on a path are compared with each other: they are found to so many times tol."""


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

    needs: ClassVar[Needs] = Needs(penalty=("strengths", "gradient"), scalings=SCALINGS)
    losses: ClassVar[str] = "named"
    penalties: ClassVar[tuple[str, ...]] = ("l2",)
    searched: ClassVar[Mapping[str, Range]] = {"loss": Range(default="pairwise_squared_hinge")}
    tol: Annotated[
        float, Param("Stop at this share of the gradient at zero weights; for the hinge, at this relative duality gap.")
    ] = 3e-4
    max_iterations: Annotated[int, MAX_ITERATIONS] = 100

    def check(self, loss: object, penalty: Penalty) -> None:
        """Raise IncompatibleParts for a loss or a penalty that the method is not made for."""
        pairs = isinstance(loss, PairwiseHinge | PairwiseSquaredHinge) and loss.weight == Uniform()
        is_supported = isinstance(loss, HingeLoss) or is_squared_error(loss)
        if not (is_supported or (pairs and getattr(loss, "margin", None) == 1.0)):
            raise IncompatibleParts(
                f"Newton cannot minimise {loss!r}: it takes the pairwise hinge and squared hinge, with uniform pair "
                "weights and margin 1, and the squared error of documents. LBFGS and OWLQN take any loss."
            )
        if penalty.strengths[1] <= 0.0:
            raise IncompatibleParts("Newton needs L2 of a positive strength: raise l2, or take LBFGS or OWLQN.")

    def shortfall(self, loss: Loss) -> str:
        """Return what the violation of a step is, for messages."""
        return "the relative duality gap is {:.2g}" if _terms(loss).smoothing is not None else super().shortfall(loss)

    def fit(self, parts: Parts, data: Data) -> Iterator[Progress]:
        """Yield what is reached after each step."""
        if is_squared_error(parts.loss):
            yield from LeastSquares().fit(parts, data)
            return
        (strength,) = _strengths([parts], data)
        descent = _descent(parts, strength, data)
        for solution in search(descent, descent.start(), tolerance=self.tol, max_iterations=self.max_iterations):
            yield _reached(solution, parts, self.tol)

    def follow(self, path: Sequence[Parts], data: Data) -> Iterator[Iterator[Progress]]:
        """Yield the solution for each of path, whose strengths fall, each from where the one before leads."""
        if is_squared_error(path[0].loss):
            yield from LeastSquares().follow(path, data)
            return
        strengths, tolerance = _strengths(path, data), PATH_TOLERANCE * self.tol
        descent = _descent(path[-1], strengths[-1], data)
        follower = Follower(descent, tolerance=tolerance, max_iterations=self.max_iterations)
        for parts, strength in zip(path, strengths, strict=True):
            yield iter([_reached(follower.to(strength), parts, tolerance)])


def _terms(loss: Loss) -> HingeLoss:
    """Return a hinge over pairs in the form of blocks."""
    if isinstance(loss, HingeLoss):
        return loss
    average = "queries" if getattr(loss, "average", "none") == "queries" else "none"
    return HingeLoss(smoothing=FIRST_SMOOTHING if isinstance(loss, PairwiseHinge) else None, average=average)


def _strengths(path: Sequence[Parts], data: Data) -> list[float]:
    """Return the C of each of path: the weight of a sum over queries against 1/2 w'w."""
    loss, queries = path[0].loss, 1.0
    if getattr(loss, "average", "none") == "queries" and not isinstance(loss, HingeLoss):  # the mean over queries
        queries = sum(useful for useful, _ in blocked(data).workers.map(pair_totals, _terms(loss)))
    return [parts.loss_weight / parts.penalty.strengths[1] / queries for parts in path]


def _descent(parts: Parts, strength: float, data: Data) -> Descent:
    return Descent(hinge_objective(data, strength, _terms(parts.loss), parts.multiplier))


def _reached(solution: Solution, parts: Parts, tolerance: float) -> Progress:
    raw = solution.weights if parts.multiplier is None else solution.weights * parts.multiplier
    return minimised(raw, solution.step, tolerance, parts.penalty.strengths[1])


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

    def check(self, loss: object, penalty: Penalty) -> None:
        """Raise IncompatibleParts for another loss than the domination loss."""
        if not isinstance(loss, DominationLoss):
            raise IncompatibleParts(
                f"CoordinateDescent cannot minimise {loss!r}: it takes the domination loss. OWLQN and FISTA take any "
                "loss."
            )

    def follow(self, path: Sequence[Parts], data: Data) -> Iterator[Iterator[Progress]]:
        """Yield for each of path what is reached; each goes on where the one before ended."""
        if not isinstance(data, Queries):
            raise IncompatibleParts(
                "CoordinateDescent looks at one feature of all documents after the other, which data in blocks do not "
                "allow: take LBFGS, OWLQN or FISTA, and a pairwise, listwise or pointwise loss."
            )
        problem = DominationProblem(data, cast(DominationLoss, path[0].loss), path[0].multiplier, self.curvature)
        for parts in path:
            yield self._moved(problem, parts)

    def _moved(self, problem: DominationProblem, parts: Parts) -> Iterator[Progress]:
        steps = problem.steps(ElasticNet(*parts.strengths), self.tol, self.max_iterations)
        step = next(steps)
        for step in steps:
            yield minimised(problem.weights * problem.multiplier, step, self.tol, parts.loss_weight)
        if step.iteration == 0:  # the start is the optimum, or no step lowers the objective
            yield minimised(problem.weights * problem.multiplier, step, self.tol, parts.loss_weight)
