"""DominationRank: a linear model in which every document should score above all lower-graded ones of its query.

    minimise  sum over q of a_q sum over i of log(1 + sum over j with y_j < y_i of exp(s_j - s_i + u_i - u_j))
              + l1 sum |w_r| + l2 / 2 sum w_r^2

s = X v, v = M w the weights on the raw features (coef_), M the scaling; u the margin of a grade, a_q the weight of a
query under average. Under L1 most weights become exactly zero.
"""

from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

from ranktune.solvers.base.vocabulary import L1, L2, MAX_ITERATIONS, SCALING, PathParameter
from ranktune.solvers.core.checks import check_finite, check_not_negative, check_positive
from ranktune.solvers.core.parameters import Param, unchecked, with_parameters
from ranktune.solvers.core.space import When
from ranktune.solvers.linear.composition import ComposedRanker, LinearComposition
from ranktune.solvers.losses.domination import GRADES, Margin
from ranktune.solvers.optimizers.domination_descent import CURVATURES

PENALTIES = ("l1", "l2", "elastic_net")


@with_parameters
class DominationRank(ComposedRanker):
    """Linear ranking by the domination loss, sparse under L1, by coordinate descent.

    Minimises
    ``sum over documents i of a_q log(1 + sum over j with y_j < y_i of exp(s_j - s_i + u_i - u_j)) + penalty``

    for the scores s and margins u. No pair is ever stored, and dense features are not copied. Cost of an
    iteration, dense: n_documents k^2 for k features that are or ought to be nonzero ("exact"), or k passes of
    exponentials over the documents (the bounds); sparse: the nonzeros of those features.

    {parameters}

    {attributes}

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

    penalty: Annotated[str, Param('"elastic_net" is both.', choices=PENALTIES)] = "l1"
    _: KW_ONLY
    l1: Annotated[
        float,
        L1.but(
            python="Positive, unless penalty leaves it out.",
            low=1e-4,
            high=0.1,
            when=When("penalty", ("l1", "elastic_net")),
        ),
    ] = 0.01
    l2: Annotated[
        float,
        L2.but(
            python="Positive, unless penalty leaves it out.",
            low=1e-3,
            high=10.0,
            when=When("penalty", ("l2", "elastic_net")),
        ),
    ] = 0.1
    grades: Annotated[
        str,
        Param(
            '"all": a document should beat those of every lower grade; "two": only relevant ones against the rest.',
            choices=tuple(reversed(GRADES)),
        ),
    ] = "all"
    margin: Annotated[
        Margin,
        Param(
            '"grade": a document should lead by the difference of grades times margin_scale. A sequence has '
            "one margin for each grade of the training data, from the lowest up. They too are "
            "multiplied by margin_scale.",
            kind='{"none", "grade"} or sequence of float',
            searched=("none", "grade"),
            check=unchecked,
        ),
    ] = "none"
    margin_scale: Annotated[
        float,
        Param(
            "See margin; at least 0.",
            low=0.05,
            high=5.0,
            log=True,
            when=When("margin", ("grade",)),
            check=check_not_negative,
        ),
    ] = 1.0
    relevant_from: Annotated[
        float | None,
        Param(
            'grades="two": the lowest relevant grade; by default all above the lowest of the training data.',
            check=check_finite,
        ),
    ] = None
    scaling: Annotated[str, SCALING] = "standard"
    average: Annotated[
        str,
        Param(
            '"none": the sum of the paper, whose best strengths grow with the data; "documents": the mean over the '
            'documents that have others to beat; "queries": the mean over queries of each query\'s mean.',
            choices=("documents", "queries", "none"),
            searched=("documents", "queries"),
        ),
    ] = "documents"
    curvature: Annotated[
        str,
        Param(
            '"exact": second derivatives at the current weights, and a line search; "tight", "paper": bounds that hold '
            "everywhere, Popoviciu's or the paper's, and no line search. The optimum is the same.",
            choices=CURVATURES,
            searched=(),
        ),
    ] = "exact"
    tol: Annotated[
        float,
        Param(
            "Stop when no feature is further from its optimality condition than tol times the largest gradient at zero "
            "weights."
        ),
    ] = 1e-5
    max_iterations: Annotated[int, MAX_ITERATIONS] = 200

    path_parameter: ClassVar[Any] = PathParameter("l1", lambda ranker: "l2" if ranker.penalty == "l2" else "l1")
    path_increasing: ClassVar[bool] = False
    path_expensive: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("l1", "l2"):
            if self.penalty in (name, "elastic_net"):
                check_positive(name, getattr(self, name))

    def _composition(self) -> LinearComposition:
        return LinearComposition("domination", None, self.penalty, "coordinate_descent")
