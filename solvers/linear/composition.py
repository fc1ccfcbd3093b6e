"""A ranker put together from parts: loss x pair weight x penalty x optimizer.

Optimizers are one-pass (ranktune.solvers.optimizers.one_pass: list by list, partial_fit) or batch
(ranktune.solvers.optimizers.batch: all lists at every step). What each needs of the other parts, and how features can
be scaled for it, it says itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ranktune.solvers.base.passes import PassRanker, checked_order, orders
from ranktune.solvers.base.ranker import LinearRanker, Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_choice, check_count, check_random_state
from ranktune.solvers.core.errors import IncompatibleParts, ParameterError, RankTuneWarning
from ranktune.solvers.data.list_scaling import list_scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import query_factors
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pair_weights import PairWeight
from ranktune.solvers.losses.pairwise import PairwiseHinge
from ranktune.solvers.losses.penalties import L1, L2, Penalty
from ranktune.solvers.optimizers.base import check_parts
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN, Batch, GradientSteps
from ranktune.solvers.optimizers.one_pass import FOBOS, ONE_PASS, OnePass

Optimizer: TypeAlias = OnePass | Batch

OPTIMIZERS = (*ONE_PASS, LBFGS, OWLQN, GradientSteps)


@dataclass(frozen=True)
class Parts:
    """What a ranker is made of. Raises IncompatibleParts where the parts do not compose."""

    loss: Any
    penalty: Penalty
    optimizer: Optimizer

    def __post_init__(self) -> None:
        """Check that the parts compose."""
        check_parts(self.loss, self.penalty, self.optimizer, OPTIMIZERS)
        if isinstance(self.optimizer, OnePass):
            self.optimizer.rule(self.penalty)


def batch_steps(ranker: LinearRanker, parts: Parts, queries: Queries, multiplier: Floats) -> Iterator[Step]:
    """Learn ranker's coef_ by the batch optimizer of parts; features count as multiplied by multiplier, (n_features,).

    Sets objective_, n_iter_ and converged_ too. Warns once (RankTuneWarning) where an optimizer that should have
    converged did not; the last weights, the best for one that descends, are kept.
    """
    (steps,) = batch_path(ranker, parts, [parts.penalty], queries, multiplier)
    return steps


def batch_path(
    ranker: LinearRanker, parts: Parts, penalties: Sequence[Penalty], queries: Queries, multiplier: Floats
) -> Iterator[Iterator[Step]]:
    """Yield for each of penalties, in place of that of parts, what batch_steps does, to be taken before the next.

    Each goes on from where the one before ended.
    """
    optimizer: Any = parts.optimizer
    for steps in optimizer.follow(parts.loss, penalties, queries, multiplier=multiplier):
        yield _kept(ranker, optimizer, steps)


def _kept(ranker: LinearRanker, optimizer: Any, steps: Iterator[tuple[Floats, Step]]) -> Iterator[Step]:
    fitted: Any = ranker
    step = Step(0, float("nan"))
    for fitted.coef_, step in steps:
        fitted.objective_, fitted.n_iter_ = step.objective, step.iteration
        fitted.converged_ = step.violation <= optimizer.tol
        yield step
    if not (fitted.converged_ or optimizer.planned):
        warnings.warn(
            f"{type(ranker).__name__} stopped before it converged: after {step.iteration} iterations the gradient is "
            f"{step.violation:.2g} of that at zero, above tol={optimizer.tol:g}. Its best weights are kept; raise "
            "max_iterations or tol, scale the features, or strengthen the penalty.",
            RankTuneWarning,
            stacklevel=2,
        )


class OnePassRanker(PassRanker):
    """A linear ranker that learns list by list; a subclass says of which parts it is made."""

    scaling: str
    random_state: Any

    def _parts(self) -> Parts:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_count("passes", self.passes)
        check_choice("scaling", self.scaling, self._parts().optimizer.needs.scalings)
        check_random_state(self.random_state, "the lists are learnt in their order")

    def _passes(self, queries: Queries) -> Iterator[Iterator[Step]]:
        seed = self.random_state
        generator = None if seed is None else np.random.default_rng(seed)
        self._begin(queries)
        for order in orders(queries.n_queries, int(self.passes), generator):
            yield self._learn(queries, order)

    def partial_fit(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> Self:
        """Learn from more lists, once, in their order, going on from what was learnt before.

        Takes what fit takes, whole lists at a time. Calls on the pieces of a data set leave the same bits as fit on all
        of it with passes=1 and random_state=None. Lists without two different grades change nothing.
        """
        queries = self._further(X, y, qid, group)
        for _ in self._learn(queries, np.arange(queries.n_queries)):
            pass
        return self

    def progressive(self, queries: Queries, order: Any = None) -> Floats:
        """Return the score of each document, (n_documents,), given before its list was learnt from.

        For every list named by order (numbers; None: all, as they stand) its documents are scored by the model as it
        is, then the model learns from it, as partial_fit would. Scores of lists that order leaves out are NaN.
        Goes on from what was learnt before; take a new ranker, or a clone, to begin with nothing.
        """
        self._check_parameters()
        numbers = checked_order(queries, order)
        queries = self._further(queries, None, None, None)
        before = np.full(queries.n_documents, np.nan)
        for _ in self._learn(queries, numbers, before):
            pass
        return before

    def _further(self, X: Any, y: Any, qid: Any, group: Any) -> Queries:
        """Return what to learn from next, having begun if nothing was learnt yet."""
        self._check_parameters()
        first = not hasattr(self, "state_")
        queries = self._grouped(X, y, qid, group, reset=first)
        if first:
            self._begin(queries)
        return queries

    def _begin(self, queries: Queries) -> None:
        optimizer: Any = self._parts().optimizer
        self.state_ = optimizer.start(queries.n_features)
        self.coef_ = np.zeros(queries.n_features)
        self.n_lists_seen_ = 0

    def _learn(self, queries: Queries, order: Any, before: Floats | None = None) -> Iterator[Step]:
        parts, scaled = self._parts(), self.scaling == "list"
        optimizer: Any = parts.optimizer
        steps = optimizer.learn(self.state_, parts.loss, parts.penalty, queries, order, scaled=scaled, scores=before)
        for self.coef_, step in steps:
            self.n_lists_seen_ = step.iteration
            yield step

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,), in the order of the rows; higher is better.

        Under scaling="list" features are divided by their range within each list, so say which rows are a list by qid
        or group as in fit; with neither, all rows are one list.
        """
        if self.scaling != "list":
            return super().predict(X, qid=qid, group=group)
        self._check_fitted("coef_")
        if isinstance(X, Queries):
            queries = X
        else:
            X = self._validated(X, reset=False)
            queries = Queries.from_arrays(X, np.zeros(X.shape[0]), qid=qid, group=group)
        return queries.in_caller_order(list_scores(queries.features, queries.starts, self.coef_))


class BatchRanker(LinearRanker):
    """A linear ranker that looks at all lists at every step; a subclass says of which parts it is made."""

    weighted: ClassVar[bool] = True
    scaling: str
    objective_: float
    n_iter_: int
    converged_: bool

    def _parts(self) -> Parts:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_choice("scaling", self.scaling, self._parts().optimizer.needs.scalings)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        return batch_steps(self, self._parts(), queries, query_factors(queries, self.scaling))


class Ranker(OnePassRanker):
    """A linear ranker made of a loss, a pair weight, a penalty and an optimizer.

    loss          such as PairwiseHinge() or SoftmaxCrossEntropy(); None: PairwiseHinge()
    weight        such as DeltaNDCG(10), in place of a pairwise loss's own; None: the loss's own
    penalty       such as L1(1e-4); None: none
    optimizer     one-pass, such as FOBOS(AdaGrad(0.1)), or batch: LBFGS(), OWLQN(), GradientSteps(); None: FOBOS()
    passes        how often a one-pass optimizer goes through the lists; batch ones have max_iterations of their own
    scaling       "none": features as they are. One-pass: "list": divided by their range within each list (predict needs
                  qid). Batch: "standard": as if divided by their standard deviation about the means of the queries,
                  "minmax": by their largest range within a query; coef_ is for the raw features in either case
    random_state  a seed or numpy.random.Generator that draws the order of the lists in each pass; None: as given.
                  Batch optimizers draw nothing

    query_weights are for batch optimizers: a list of weight 2 counts as two. One-pass optimizers refuse them, since one
    step twice as long is not two steps. partial_fit is for one-pass optimizers.
    Fitted: coef_ (n_features,); one-pass: n_lists_seen_; batch: objective_, n_iter_, converged_. Raises
    IncompatibleParts before training where the parts do not compose.
    """

    weighted: ClassVar[bool] = True
    objective_: float
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        loss: Loss | None = None,
        weight: PairWeight | None = None,
        penalty: Penalty | None = None,
        optimizer: Optimizer | None = None,
        *,
        passes: int = 1,
        scaling: str = "none",
        random_state: Any = None,
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
        return batch_steps(self, parts, queries, query_factors(queries, self.scaling))

    def _begin(self, queries: Queries) -> None:
        optimizer = self._parts().optimizer
        if not isinstance(optimizer, OnePass):
            raise IncompatibleParts(
                f"{type(optimizer).__name__} looks at all lists at every step: it cannot go on with new ones alone. "
                "Call fit on all of them, or take a one-pass optimizer, such as FOBOS()."
            )
        super()._begin(queries)

    def _learn(self, queries: Queries, order: Any, before: Floats | None = None) -> Iterator[Step]:
        if queries.query_weights is not None:
            raise ParameterError(
                "one-pass optimizers cannot weigh queries: leave query_weights out, or take LBFGS(), OWLQN() or "
                "GradientSteps()."
            )
        return super()._learn(queries, order, before)


def no_penalty(optimizer: Optimizer) -> Penalty:
    """Return a penalty of strength zero that optimizer takes."""
    return L1(0.0) if "truncate" in optimizer.needs.penalty else L2(0.0)
