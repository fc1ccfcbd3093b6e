"""Solvers that are points of Ranker's grid, with the defaults of their papers and spaces of their own."""

from dataclasses import KW_ONLY
from typing import Annotated, ClassVar

from ranktune.solvers.base import vocabulary as words
from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.checks import RandomState
from ranktune.solvers.core.declared import Former
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import When
from ranktune.solvers.linear.composition import ComposedRanker, LinearComposition
from ranktune.solvers.linear.parts import (
    ONE_PASS,
    OPTIMIZERS,
    PAIR_WEIGHTS,
    losses_of,
    penalised_by,
    taking,
    with_bounded_slope,
)
from ranktune.solvers.linear.ranker import SCHEDULE
from ranktune.solvers.losses.pairwise import AVERAGES
from ranktune.solvers.names import FORMER

PAIRWISE = losses_of("fobos")
WEIGHTS = {name: weight for name, weight in PAIR_WEIGHTS.items() if not weight.takes("samples")}
"""The pair weights of one ranking."""


@with_parameters
class ElasticRank(ComposedRanker, PassRanker):
    """Linear ranking by passes over the queries, with pairs weighted by a metric and an elastic-net penalty.

    The loss of a query is the weighted mean over its pairs, so that eta0, l1 and l2 mean the same for queries of any
    length; average="none" makes it the sum of the paper.

    {parameters}

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

    loss: Annotated[str, Param("Loss of the score difference of a pair.", choices=PAIRWISE)] = "pairwise_logistic"
    pair_weight: Annotated[
        str,
        Param(
            '"uniform": all pairs alike; "ndcg", "recall": by the change of the metric at rank at if they swap places.',
            choices=tuple(WEIGHTS),
        ),
    ] = "ndcg"
    _: KW_ONLY
    at: Annotated[int, words.AT.but(when=When("pair_weight", taking(WEIGHTS, "at")))] = 10
    margin: Annotated[
        float, Param("The lead from which a pair costs nothing under the hinges (the paper's slack); positive.")
    ] = 1.0
    average: Annotated[
        str,
        Param(
            '"queries": the weighted mean over the pairs of a query; "none": their sum.', choices=AVERAGES, searched=()
        ),
    ] = "queries"
    gain: Annotated[str, words.GAIN] = "auto"
    optimizer: Annotated[str, Param('"psgd" ignores l1, "tgd" l2.', choices=ONE_PASS)] = "fobos"
    schedule: Annotated[str, SCHEDULE.but(when=When("loss", with_bounded_slope(PAIRWISE)))] = "adagrad"
    eta0: Annotated[float, words.ETA0.but(low=3e-3)] = 0.1
    l1: Annotated[
        float, words.L1.but(python='"psgd" ignores it.', when=When("optimizer", penalised_by("l1", ONE_PASS)))
    ] = 1e-3
    l2: Annotated[
        float,
        words.L2.but(
            python='"tgd" ignores it.', low=1e-6, high=1e-1, when=When("optimizer", penalised_by("l2", ONE_PASS))
        ),
    ] = 1e-4
    threshold: Annotated[float, words.THRESHOLD.but(when=When("optimizer", taking(OPTIMIZERS, "threshold")))] = 0.01
    truncate_every: Annotated[int, Param('Queries between two truncations of "psgd" and "tgd".')] = 10
    passes: Annotated[int, words.PASSES] = 5
    scaling: Annotated[str, words.LIST_SCALING.but(searched=("minmax", "standard", "none", "list"))] = "minmax"
    random_state: Annotated[RandomState, words.RANDOM_ORDER] = None

    former: ClassVar[Former] = FORMER["ElasticRank"]
    path_parameter: ClassVar[str | None] = "passes"

    def _composition(self) -> LinearComposition:
        return LinearComposition(
            self.loss, self.pair_weight, OPTIMIZERS[self.optimizer].kind.penalties[-1], self.optimizer
        )


@with_parameters
class LambdaRank(ComposedRanker):
    """Linear ranking by the logistic loss of pairs, weighted by the change of NDCG@at if the two swap places.

    The weights of the pairs follow the current ranking, so the steps descend no single function: there is no line
    search, the number of steps is fixed, and the rates fall as AdaGrad's do. The loss of a query is the weighted mean
    over its pairs. Among equal scores the lower grade stands first, then the order given: at the first step, with all
    scores 0, that order decides which documents of a grade are among the first. Cost of a step: two passes over the
    features and at log-sums a document.

    {parameters}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    objective_ : float
        The loss and the penalty at ``coef_``, the weights of pairs held.
    n_iter_ : int
        Steps done.

    References
    ----------
    Burges, Ragno & Le 2006, "Learning to Rank with Nonsmooth Cost Functions", NIPS.

    Examples
    --------
    >>> from ranktune.solvers import LambdaRank
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> LambdaRank().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(1)
    array([ 2.4, -2.6])
    """

    at: Annotated[
        int | None, words.AT.but(python="Pairs without a document among the first at do not count; None: all ranks.")
    ] = 5
    _: KW_ONLY
    gain: Annotated[str, words.GAIN] = "auto"
    l1: Annotated[float, words.L1] = 0.01
    l2: Annotated[float, words.L2] = 0.1
    eta0: Annotated[float, words.ETA0] = 0.1
    iterations: Annotated[int, words.ITERATIONS] = 100
    scaling: Annotated[str, words.SCALING] = "standard"

    path_parameter: ClassVar[str | None] = "iterations"

    def _composition(self) -> LinearComposition:
        return LinearComposition("pairwise_logistic", "ndcg", "elastic_net", "gradient_steps")


@with_parameters
class ListNet(ComposedRanker):
    """Linear ranking by the cross entropy of softmaxes, the top-one case of ListNet.

    Minimises ``mean over queries of -sum_i p_i log softmax(s)_i + l1 |w| + l2 / 2 |w|^2``,
    ``p = softmax(gain / temperature)``,

    which is convex, by L-BFGS, or OWL-QN if l1 > 0; the paper has gradient steps and no penalty. Queries of one grade
    do not count. Cost: two passes over the features an iteration.

    {parameters}

    {attributes}

    References
    ----------
    Cao, Qin, Liu, Tsai & Li 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML.

    Examples
    --------
    >>> from ranktune.solvers import ListNet
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ListNet().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(2)
    array([ 2.41, -1.91])
    """

    _: KW_ONLY
    gain: Annotated[
        str, Param("The gain of a grade: the grade itself, or 2^grade - 1; for any grades.", choices=("linear", "exp2"))
    ] = "linear"
    temperature: Annotated[float, words.TEMPERATURE] = 0.3
    l1: Annotated[float, words.L1] = 0.01
    l2: Annotated[float, words.L2] = 0.1
    scaling: Annotated[str, words.SCALING] = "standard"
    tol: Annotated[float, words.TOL] = 1e-4
    max_iterations: Annotated[int, words.MAX_ITERATIONS] = 500

    # Not l1: weights become zero and nonzero along it, the curvature of the last steps misleads, and the cost doubles.
    path_parameter: ClassVar[str | None] = "l2"
    path_increasing: ClassVar[bool] = False
    path_expensive: ClassVar[bool] = True

    def _composition(self) -> LinearComposition:
        return LinearComposition("softmax", None, *(("elastic_net", "owlqn") if self.l1 > 0.0 else ("l2", "lbfgs")))
