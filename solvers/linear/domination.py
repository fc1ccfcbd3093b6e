"""DominationRank: a linear model in which every document should score above all lower-graded ones of its query.

    minimise  sum over q of a_q sum over i of log(1 + sum over j with y_j < y_i of exp(s_j - s_i + u_i - u_j))
              + l1 sum |w_r| + l2 / 2 sum w_r^2

s = X v, v = M w the weights on the raw features (coef_), M the scaling; u the margin of a grade, a_q the weight of a
query under average. Under L1 most weights become exactly zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.path_parameter import PathParameter
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.checks import check_choice, check_count, check_positive
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.core.space import Choice, Float, Parameter, When
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import check_scaling, query_factors
from ranktune.solvers.linear.domination_descent import CURVATURES, DominationProblem
from ranktune.solvers.losses.domination import DominationLoss, Margin
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty

PENALTIES = ("l1", "l2", "elastic_net")


class DominationRank(LinearRanker):
    """Linear ranking by the domination loss, sparse under L1, by coordinate descent.

    Minimises
    ``sum over documents i of a_q log(1 + sum over j with y_j < y_i of exp(s_j - s_i + u_i - u_j)) + penalty``

    for the scores s and margins u. No pair is ever stored, and dense features are not copied. Cost of an
    iteration, dense: n_documents k^2 for k features that are or ought to be nonzero ("exact"), or k passes of
    exponentials over the documents (the bounds); sparse: the nonzeros of those features.

    Parameters
    ----------
    penalty : {"l1", "l2", "elastic_net"}, default="l1"
        "elastic_net" is both.
    l1, l2 : float, default=0.01, 0.1
        Strengths of ``sum |w|`` and of ``1/2 sum w^2``, positive; one that penalty leaves out is ignored.
    grades : {"all", "two"}, default="all"
        "all": a document should beat those of every lower grade; "two": only relevant ones against the rest.
    margin : {"none", "grade"}, sequence of float or callable, default="none"
        "grade": a document should lead by the difference of grades times margin_scale. A sequence has one margin for
        each grade of the training data, from the lowest up; a callable takes the Queries and returns one for each
        document. They too are multiplied by margin_scale.
    margin_scale : float, default=1.0
        See margin; at least 0.
    relevant_from : float, optional
        grades="two": the lowest relevant grade; by default all above the lowest of the training data.
    scaling : {"standard", "minmax", "none"}, default="standard"
        As if features were divided by their standard deviation about the means of the queries, by their largest range
        within a query, or not at all. Features that are constant in every query get 0.
    average : {"documents", "queries", "none"}, default="documents"
        "none": the sum of the paper, whose best strengths grow with the data; "documents": the mean over the documents
        that have others to beat; "queries": the mean over queries of each query's mean.
    curvature : {"exact", "tight", "paper"}, default="exact"
        "exact": second derivatives at the current weights, and a line search; "tight", "paper": bounds that hold
        everywhere, Popoviciu's or the paper's, and no line search. The optimum is the same.
    tol : float, default=1e-05
        Stop when no feature is further from its optimality condition than tol times the largest gradient at zero
        weights.
    max_iterations : int, default=200
        Iterations at most; reaching them warns (RankTuneWarning) and keeps the best weights.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    objective_ : float
        The value that is minimised, at ``coef_``.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether tol was reached.

    References
    ----------
    Stevens, Bengio & Singer, "Efficient Learning of Sparse Ranking Functions".

    Examples
    --------
    >>> from ranktune.solvers import DominationRank
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> DominationRank(l1=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(1)
    array([4.5, 0. ])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("penalty", PENALTIES),
        Float("l1", 1e-4, 0.1, log=True, when=When("penalty", ("l1", "elastic_net"))),
        Float("l2", 1e-3, 10.0, log=True, when=When("penalty", ("l2", "elastic_net"))),
        Choice("grades", ("all", "two")),
        Choice("margin", ("none", "grade")),
        Float("margin_scale", 0.05, 5.0, log=True, when=When("margin", ("grade",))),
        Choice("scaling", ("standard", "minmax")),
        Choice("average", ("documents", "queries")),
    )
    weighted: ClassVar[bool] = True
    path_parameter: ClassVar[Any] = PathParameter("l1", lambda ranker: "l2" if ranker.penalty == "l2" else "l1")
    path_increasing: ClassVar[bool] = False
    path_expensive: ClassVar[bool] = True

    def __init__(
        self,
        penalty: str = "l1",
        *,
        l1: float = 0.01,
        l2: float = 0.1,
        grades: str = "all",
        margin: Margin = "none",
        margin_scale: float = 1.0,
        relevant_from: float | None = None,
        scaling: str = "standard",
        average: str = "documents",
        curvature: str = "exact",
        tol: float = 1e-5,
        max_iterations: int = 200,
    ) -> None:
        self.penalty = penalty
        self.l1 = l1
        self.l2 = l2
        self.grades = grades
        self.margin = margin
        self.margin_scale = margin_scale
        self.relevant_from = relevant_from
        self.scaling = scaling
        self.average = average
        self.curvature = curvature
        self.tol = tol
        self.max_iterations = max_iterations

    def _check_parameters(self) -> None:
        self._penalty()
        self._loss()
        check_scaling(self.scaling)
        check_choice("curvature", self.curvature, CURVATURES)
        check_positive("tol", self.tol)
        check_count("max_iterations", self.max_iterations)

    def _penalty(self) -> Penalty:
        check_choice("penalty", self.penalty, PENALTIES)
        for name in ("l1", "l2"):
            if self.penalty in (name, "elastic_net"):
                check_positive(name, getattr(self, name))
        if self.penalty == "elastic_net":
            return ElasticNet(float(self.l1), float(self.l2))
        return L1(float(self.l1)) if self.penalty == "l1" else L2(float(self.l2))

    def _loss(self) -> DominationLoss:
        return DominationLoss(self.grades, self.margin, self.margin_scale, self.relevant_from, self.average)

    def _problem(self, queries: Queries) -> DominationProblem:
        multiplier = None if self.scaling == "none" else query_factors(queries, self.scaling)
        return DominationProblem(queries, self._loss(), multiplier, self.curvature)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        yield from self._minimise(self._problem(queries))

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Start with the strongest; each starts where the one before ended."""
        problem = self._problem(queries)
        for value in values:
            self.set_params(**{str(self.path_parameter): value})
            for _ in self._minimise(problem):
                pass
            yield value

    def _minimise(self, problem: DominationProblem) -> Iterator[Step]:
        penalty = self._penalty()
        for step in problem.steps(penalty, float(self.tol), int(self.max_iterations)):
            self.coef_ = problem.weights * problem.multiplier
            self.objective_, self.n_iter_ = step.objective, step.iteration
            self.converged_ = step.violation <= self.tol
            if step.iteration > 0:
                yield step
        if not self.converged_:
            warnings.warn(
                f"DominationRank stopped after {self.n_iter_} iterations at a violation of {step.violation:.2g} of the "
                f"gradient at zero, above tol={self.tol:g}. The best weights are kept; raise max_iterations or tol, or "
                "scale features.",
                RankTuneWarning,
                stacklevel=2,
            )
