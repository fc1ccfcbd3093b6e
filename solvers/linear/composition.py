"""Linear rankers composed of a loss, a pair weight, a penalty and an optimizer.

Optimizers are one-pass (ranktune.solvers.optimizers.one_pass: query by query, partial_fit) or batch
(ranktune.solvers.optimizers.batch: all queries at every step). Each declares what it needs of the other parts, and how
features can be scaled for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, cast

import numpy as np

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.blocks.blocked import BlockedQueries, Data, factors_of
from ranktune.solvers.core.arrays import Floats, Ids, Ints, Sizes
from ranktune.solvers.core.checks import check_choice, check_count, check_random_state
from ranktune.solvers.core.errors import IncompatibleParts, RankTuneWarning
from ranktune.solvers.data.list_scaling import list_scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.second_order import CoordinateDescent, Newton
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.losses.penalties import L1, L2, Penalty
from ranktune.solvers.optimizers.base import BatchOptimizer, check_parts
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN, Batch, GradientSteps
from ranktune.solvers.optimizers.one_pass import ONE_PASS, OnePass
from ranktune.solvers.optimizers.proximal import FISTA

Optimizer: TypeAlias = OnePass | Batch

OPTIMIZERS = (*ONE_PASS, LBFGS, OWLQN, FISTA, GradientSteps)
"""Those that take every loss with what they need."""


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
        elif isinstance(self.optimizer, Newton | CoordinateDescent):
            self.optimizer.check(self.loss, self.penalty)

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
        self, loss: Loss, penalties: Sequence[Penalty], optimizer: BatchOptimizer, data: Data, multiplier: Floats
    ) -> Iterator[Iterator[Step]]:
        """Yield the steps of a fit for each of penalties, to be taken before the next, which starts where it ended.

        Features count as multiplied by multiplier, (n_features,). Warns (RankTuneWarning) if an optimizer that should
        have converged did not.
        """
        for steps in optimizer.follow(loss, penalties, data, multiplier=multiplier):
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

    scaled_within_queries: ClassVar[bool] = True

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
        self.multiplier_ = self._factors(queries)
        self.coef_ = np.zeros(queries.n_features)
        self.n_lists_seen_, self._averaged = 0, False
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
            multiplier=self.multiplier_,
            scores=scores if len(scores) else None,
        )
        for weights, step in steps:
            self.coef_, self.n_lists_seen_ = weights * self.multiplier_, step.iteration
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
        if self.imputation_ is not None or (isinstance(X, Queries) and X.has_missing):
            return self._predict_by_model(X, qid, group)
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

    def _fit_blocks(self, data: BlockedQueries) -> None:
        for _ in self._fit_parts(self._parts(), data):
            pass

    def _fit_parts(self, parts: Parts, data: Data) -> Iterator[Step]:
        assert isinstance(parts.optimizer, Batch)
        (steps,) = self._path_of(parts, [parts.penalty], data)
        return steps

    def _path_of(self, parts: Parts, penalties: Sequence[Penalty], data: Data) -> Iterator[Iterator[Step]]:
        """Yield the steps for each of penalties in place of that of parts; take them before the next."""
        assert isinstance(parts.optimizer, Batch)
        multiplier = factors_of(data, self.scaling, within_queries=True)
        return self._minimise(parts.loss, penalties, parts.optimizer, data, multiplier)


def no_penalty(optimizer: Optimizer) -> Penalty:
    """Return a penalty of strength zero that optimizer accepts."""
    return L1(0.0) if "truncate" in optimizer.needs.penalty else L2(0.0)
