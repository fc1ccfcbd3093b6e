"""RankSVM: a linear model that minimises the hinge, or the squared hinge, over all pairs of documents of a query.

    minimise  1/2 w'w + C sum over q of a_q sum over pairs (i, j) of q, y_i > y_j, of h(s_i - s_j)

h(d) = max(0, 1 - d)^2 or max(0, 1 - d); s = X v, v = M w the weights on the raw features (coef_), M the scaling.
No pair is ever stored: the cost of one gradient is a pass over X and n log n for each query's n documents.
"""

from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.linear.composition import ComposedRanker, LinearComposition
from ranktune.solvers.losses.penalties import L2
from ranktune.solvers.optimizers.rank_svm.regularization_path import FIRST_SMOOTHING
from ranktune.solvers.optimizers.rank_svm.summed_objective import HingeLoss


@with_parameters
class RankSVM(ComposedRanker):
    """Linear RankSVM by a truncated Newton method with order statistics.

    Minimises ``1/2 w'w + C sum over queries of a_q sum over pairs y_i > y_j of h(s_i - s_j)``,
    ``h(d) = max(0, 1 - d)^2``,

    for the weights w of the scaled features and their scores s. No pair is ever stored. Stored queries of more than two
    million documents are learned from block by block, with memory that does not grow with them.

    {parameters}

    {attributes}

    References
    ----------
    Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26(4).

    Examples
    --------
    >>> from ranktune.solvers import RankSVM
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = RankSVM(C=1.0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(2)
    array([ 1.08, -0.83])
    >>> ranker.predict(X).round(2)
    array([ 0.89, -0.45,  0.51, -0.39])
    """

    C: Annotated[float, Param("Weight of the loss against 1/2 w'w; positive.", low=1e-4, high=1e2, log=True)] = 0.01
    _: KW_ONLY
    loss: Annotated[
        str,
        Param(
            '"l2": the squared hinge; "l1": the hinge, smoothed until the duality gap is small.', choices=("l2", "l1")
        ),
    ] = "l2"
    pairs: Annotated[
        str,
        Param(
            '"all" that differ in grade; "adjacent": only of grades next to each other among those of the query.',
            choices=("all", "adjacent"),
        ),
    ] = "all"
    scaling: Annotated[
        str,
        Param(
            "As if features were divided by their standard deviation, by their range, or not at all. Constant features "
            "get 0.",
            choices=SCALINGS,
            searched=("standard", "minmax"),
        ),
    ] = "standard"
    average: Annotated[
        str,
        Param(
            '"none": every pair counts 1, so that the best C falls as the data grow; "pairs": all pairs count the '
            'same, those of an average query together 1; "queries": the pairs of every query together 1.',
            choices=("none", "pairs", "queries"),
            searched=("pairs", "queries"),
        ),
    ] = "pairs"
    tol: Annotated[
        float,
        Param(
            "l2: stop when the gradient's norm is at most tol times its norm at zero weights; l1: when the objective "
            "exceeds its lower bound by at most tol times itself. On a path of C, three times tol."
        ),
    ] = 3e-4
    max_iterations: Annotated[
        int, Param("Steps at most; reaching them warns (RankTuneWarning) and keeps the best weights.")
    ] = 100
    threads: Annotated[int, Param("Threads for passes over X; the result is the same, bit for bit if X is dense.")] = 1

    scaled_within_queries: ClassVar[bool] = False
    path_parameter: ClassVar[str | None] = "C"
    path_expensive: ClassVar[bool] = True

    def _composition(self) -> LinearComposition:
        loss: Any = HingeLoss(
            smoothing=None if self.loss == "l2" else FIRST_SMOOTHING,
            adjacent=self.pairs == "adjacent",
            average=self.average,
            threads=self.threads,
        )
        return LinearComposition(loss, None, L2(1.0), "newton", self.C)
