"""Linear rankers composed of a loss, a pair weight, a penalty and an optimizer.

Optimizers are one-pass (ranktune.solvers.optimizers.one_pass: query by query, partial_fit) or batch
(ranktune.solvers.optimizers.batch: all queries at every step). Each declares what it needs of the other parts, and how
features can be scaled for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.ranker import LinearRanker, Step
from ranktune.solvers.core.arrays import Floats, Ids, Ints, Sizes
from ranktune.solvers.core.checks import RandomState, check_choice, check_count, check_random_state
from ranktune.solvers.core.errors import IncompatibleParts, ParameterError, RankTuneWarning
from ranktune.solvers.data.list_scaling import list_scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import query_factors
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pair_weights import PairWeight
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLoss
from ranktune.solvers.losses.penalties import L1, L2, Penalty
from ranktune.solvers.optimizers.base import BatchOptimizer, check_parts
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN, Batch, GradientSteps
from ranktune.solvers.optimizers.one_pass import FOBOS, ONE_PASS, OnePass

Optimizer: TypeAlias = OnePass | Batch

OPTIMIZERS = (*ONE_PASS, LBFGS, OWLQN, GradientSteps)


@dataclass(frozen=True)
class Parts:
    """The parts of a ranker. Raises IncompatibleParts if they do not compose."""

    loss: Loss
    penalty: Penalty
    optimizer: Optimizer

    def __post_init__(self) -> None:
        """Check that the parts compose."""
        check_parts(self.loss, self.penalty, self.optimizer, OPTIMIZERS)
        if isinstance(self.optimizer, OnePass):
            self.optimizer.rule(self.penalty)

    @property
    def one_pass(self) -> OnePass:
        """The optimizer, which must be a one-pass one. Raises IncompatibleParts if it is not."""
        if isinstance(self.optimizer, OnePass):
            return self.optimizer
        raise IncompatibleParts(
            f"{type(self.optimizer).__name__} looks at all lists at every step: it cannot go on with new ones alone. "
            "Call fit on all of them, or take a one-pass optimizer, such as FOBOS()."
        )


class MinimisingRanker(LinearRanker):
    """Base of linear rankers that a batch optimizer fits."""

    weighted: ClassVar[bool] = True
    objective_: float
    n_iter_: int
    converged_: bool

    def _minimise(
        self, loss: Loss, penalties: Sequence[Penalty], optimizer: BatchOptimizer, queries: Queries, multiplier: Floats
    ) -> Iterator[Iterator[Step]]:
        """Yield the steps of a fit for each of penalties, to be taken before the next, which starts where it ended.

        Features count as multiplied by multiplier, (n_features,). Warns (RankTuneWarning) if an optimizer that should
        have converged did not.
        """
        for steps in optimizer.follow(loss, penalties, queries, multiplier=multiplier):
            yield self._keep(optimizer, steps)

    def _keep(self, optimizer: BatchOptimizer, steps: Iterator[tuple[Floats, Step]]) -> Iterator[Step]:
        for self.coef_, step in steps:
            self.objective_, self.n_iter_ = step.objective, step.iteration
            self.converged_ = step.violation <= optimizer.tol
            yield step
        if not (self.converged_ or optimizer.planned):
            warnings.warn(
                f"{type(self).__name__} stopped before it converged: after {step.iteration} iterations the gradient is "
                f"{step.violation:.2g} of that at zero, above tol={optimizer.tol:g}. Its best weights are kept; raise "
                "max_iterations or tol, scale the features, or strengthen the penalty.",
                RankTuneWarning,
                stacklevel=2,
            )


class OnePassRanker(PassRanker):
    """Base of linear rankers that learn query by query; a subclass defines its parts."""

    scaling: str

    def _parts(self) -> Parts:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_count("passes", self.passes)
        check_choice("scaling", self.scaling, self._parts().optimizer.needs.scalings)
        check_random_state(self.random_state, "the queries are visited in their order")

    def _has_begun(self) -> bool:
        return hasattr(self, "state_")

    def _begin(self, queries: Queries) -> np.random.Generator | None:
        self.state_ = self._parts().one_pass.start(queries.n_features)
        self.coef_ = np.zeros(queries.n_features)
        self.n_lists_seen_ = 0
        return None if self.random_state is None else np.random.default_rng(self.random_state)

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        parts = self._parts()
        steps = parts.one_pass.learn(
            self.state_,
            cast(PairwiseLoss, parts.loss),  # Parts has checked that it has what one-pass optimizers need
            parts.penalty,
            queries,
            order,
            scaled=self.scaling == "list",
            scores=scores if len(scores) else None,
        )
        for self.coef_, step in steps:
            self.n_lists_seen_ = step.iteration
            yield step

    def predict(self, X: object, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Score documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or Queries
            The features.
        qid, group : array-like, optional
            Which rows are a query, as in fit. Needed if scaling is "list"; with neither, all rows are one query.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores in the order of the rows; higher is better.
        """
        if self.scaling != "list":
            return super().predict(X, qid=qid, group=group)
        self._check_fitted("coef_")
        if isinstance(X, Queries):
            queries = X
        else:
            documents = self._validated(X, reset=False)
            queries = Queries.from_arrays(documents, np.zeros(documents.shape[0]), qid=qid, group=group)
        return queries.in_caller_order(list_scores(queries.features, queries.starts, self.coef_))


class BatchRanker(MinimisingRanker):
    """Base of linear rankers that use all queries at every step; a subclass defines the parts."""

    scaling: str

    def _parts(self) -> Parts:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_choice("scaling", self.scaling, self._parts().optimizer.needs.scalings)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        return self._fit_parts(self._parts(), queries)

    def _fit_parts(self, parts: Parts, queries: Queries) -> Iterator[Step]:
        assert isinstance(parts.optimizer, Batch)
        (steps,) = self._path_of(parts, [parts.penalty], queries)
        return steps

    def _path_of(self, parts: Parts, penalties: Sequence[Penalty], queries: Queries) -> Iterator[Iterator[Step]]:
        """Yield the steps for each of penalties in place of that of parts; take them before the next."""
        assert isinstance(parts.optimizer, Batch)
        multiplier = query_factors(queries, self.scaling)
        return self._minimise(parts.loss, penalties, parts.optimizer, queries, multiplier)


class Ranker(OnePassRanker, BatchRanker):
    """A linear ranker composed of a loss, a pair weight, a penalty and an optimizer.

    partial_fit is for one-pass optimizers, query_weights for batch ones: one step twice as long is not two steps.

    Parameters
    ----------
    loss : Loss, optional
        Such as SoftmaxCrossEntropy(); by default PairwiseHinge().
    weight : PairWeight, optional
        Such as DeltaNDCG(10), in place of the pair weight of a pairwise loss.
    penalty : Penalty, optional
        Such as L1(1e-4); by default none.
    optimizer : optimizer, optional
        A one-pass optimizer, such as FOBOS(AdaGrad(0.1)), or a batch one: LBFGS(), OWLQN(), GradientSteps(). By default
        FOBOS().
    passes : int, default=1
        How often a one-pass optimizer visits the queries; batch optimizers have max_iterations of their own.
    scaling : {"none", "list", "standard", "minmax"}, default="none"
        "none": features as they are. With one-pass optimizers also "list": divided by their range within each query, so
        that predict needs qid or group. With batch optimizers also "standard" and "minmax": as if divided by their
        standard deviation about the means of the queries, or by their largest range within a query.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the order of the queries in each pass of a one-pass optimizer; None keeps their order.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the features; of the raw ones unless scaling is "list".
    n_lists_seen_ : int
        Queries with pairs that a one-pass optimizer has learned from.
    objective_ : float
        The value that a batch optimizer minimises, at coef_.
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
    >>> ranker = Ranker(PairwiseLogistic(), penalty=L2(0.1), optimizer=LBFGS())
    >>> ranker.fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(3)
    array([ 1.338, -0.961])
    """

    def __init__(
        self,
        loss: Loss | None = None,
        weight: PairWeight | None = None,
        penalty: Penalty | None = None,
        optimizer: Optimizer | None = None,
        *,
        passes: int = 1,
        scaling: str = "none",
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.weight = weight
        self.penalty = penalty
        self.optimizer = optimizer
        self.passes = passes
        self.scaling = scaling
        self.random_state = random_state

    def _parts(self) -> Parts:
        loss: Any = PairwiseHinge() if self.loss is None else self.loss
        if self.weight is not None:
            if not hasattr(loss, "weight"):
                raise IncompatibleParts(
                    f"{type(loss).__name__} has no pair weight to replace by {type(self.weight).__name__}: it does not "
                    "look at pairs. Leave weight out, or take a pairwise loss."
                )
            loss = replace(loss, weight=self.weight)
        optimizer = FOBOS() if self.optimizer is None else self.optimizer
        return Parts(loss, no_penalty(optimizer) if self.penalty is None else self.penalty, optimizer)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        parts = self._parts()
        if isinstance(parts.optimizer, OnePass):
            return super()._steps(queries)
        return self._fit_parts(parts, queries)

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        if queries.query_weights is not None:
            raise ParameterError(
                "one-pass optimizers cannot weigh queries: leave query_weights out, or take LBFGS(), OWLQN() or "
                "GradientSteps()."
            )
        return super()._learn(queries, order, scores)


def no_penalty(optimizer: Optimizer) -> Penalty:
    """Return a penalty of strength zero that optimizer accepts."""
    return L1(0.0) if "truncate" in optimizer.needs.penalty else L2(0.0)
