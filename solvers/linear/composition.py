"""Linear rankers that an optimizer fits, composed of a loss, a pair weight, a penalty and the optimizer.

A ranker names its parts, or has them as objects: a point of a grid, whose tables are in ranktune.solvers.linear.parts.
Optimizers are one-pass (query by query, partial_fit) or batch (all queries at every step). Each declares what it needs
of the other parts, and how features can be scaled for it, and fits the parts to the data: rankers only make the parts.

Weights of queries and documents are in the data, and a part uses them or does not: see supports. Monotone constraints
are in the data too. Batch optimizers of smooth losses and least squares find the best weights within them; what other
optimizers reach, LinearRanker brings within them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ranktune.solvers.abilities import QUERY_WEIGHTS
from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import IncompatibleParts, warn
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.blocked import BlockedQueries, Data, better_divided, factors_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear import parts as grid
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pair_weights import PairWeight, Uniform
from ranktune.solvers.losses.penalties import L1, L2, Penalty
from ranktune.solvers.optimizers.base import Optimizer, Parts, Progress, check_parts
from ranktune.solvers.optimizers.one_pass import SCHEDULES, OnePassOptimizer


class LinearComposition(NamedTuple):
    """The parts of a ranker, by name or as objects, and the weight of the loss against the penalty."""

    loss: str | Loss
    pair_weight: str | PairWeight | None
    penalty: str | Penalty | None
    optimizer: str | Optimizer
    loss_weight: float = 1.0


class ComposedRanker(LinearRanker):
    """Base of linear rankers that are composed of parts, which a subclass names; their settings are its parameters.

    A subclass with a one-pass optimizer may be a PassRanker too, and then goes on learning query by query.

    Attributes
    ----------
    objective_ : float
        The value that is minimised, at ``coef_``.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether tol was reached.
    """

    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    scaled_within_queries: ClassVar[bool] = True
    scaling: str
    objective_: float
    n_iter_: int
    converged_: bool

    def _composition(self) -> LinearComposition:
        """Return the parts."""
        raise NotImplementedError

    def _parts(self) -> Parts:
        """Return the parts as the parameters say them. Raises IncompatibleParts if they do not compose."""
        loss, pair_weight, penalty, optimizer, loss_weight = self._composition()
        settings: Any = self
        schedule = {"schedule": SCHEDULES[settings.schedule](settings.eta0)} if grid.is_one_pass(optimizer) else {}
        made: Optimizer = self._made(grid.OPTIMIZERS, optimizer, **schedule)
        parts = Parts(
            self._loss(loss, pair_weight),
            self._penalty(penalty, made),
            made,
            float(loss_weight),
            visits=grid.VISITS.made(self, scaled=self.scaling == "list"),
        )
        check_parts(parts.loss, parts.penalty, made, grid.general)
        return parts

    def _made(self, table: Mapping[str, grid.LinearPart], part: object, **arguments: Any) -> Any:
        """Return a part that is given by its name, with the parameters of the ranker, or as it is."""
        return table[part].made(self, **arguments) if isinstance(part, str) else part

    def _adapted(self, path: Sequence[Parts], data: Data) -> list[Parts]:
        """Return the parts of a path with what they take from the data."""
        if self.scaling in ("none", "list"):
            return list(path)
        multiplier = factors_of(data, self.scaling, within_queries=self.scaled_within_queries)
        return [replace(parts, multiplier=multiplier) for parts in path]

    def _loss(self, loss: Any, pair_weight: object) -> Any:
        if isinstance(loss, str):
            weight = Uniform() if pair_weight is None else self._made(grid.PAIR_WEIGHTS, pair_weight)
            return self._made(grid.LOSSES, loss, **({"weight": weight} if grid.has_pairs(loss) else {}))
        if isinstance(pair_weight, str | None):
            return loss
        if not hasattr(loss, "weight"):
            raise IncompatibleParts(
                f"{type(loss).__name__} has no pair weight to replace by {type(pair_weight).__name__}: it does "
                "not look at pairs. Leave pair_weight out, or take a pairwise loss."
            )
        return replace(loss, weight=pair_weight)

    def _penalty(self, penalty: object, optimizer: Optimizer) -> Any:
        if penalty is None or penalty == "none":
            return L1(0.0) if "truncate" in optimizer.needs.penalty else L2(0.0)
        return self._made(grid.PENALTIES, penalty)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("scaling", self.scaling, self._parts().optimizer.needs.scalings)

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use of the data: one-pass optimizers cannot weigh queries."""
        one_pass = grid.is_one_pass(parameters.get("optimizer", getattr(cls, "optimizer", None)))
        return super().supports(parameters) - ({QUERY_WEIGHTS} if one_pass else frozenset())

    def _fitted(self, data: Data) -> Iterator[Progress]:
        parts = self._parts()
        data = _divided(data, parts)
        (parts,) = self._adapted([parts], data)
        yield from self._taken(parts, parts.optimizer.fit(parts, data))

    def _taken(self, parts: Parts, reached: Iterator[Progress]) -> Iterator[Progress]:
        """Take over what each step leads to. Warns (RankTuneWarning) if it should have converged and did not."""
        for progress in reached:
            self.coef_ = progress.weights
            vars(self).update(progress.fitted)
            yield progress
        optimizer = parts.optimizer
        if not (optimizer.planned or self.converged_):
            warn(
                f"{type(self).__name__} stopped before it converged: after {self.n_iter_} iterations "
                f"{optimizer.shortfall(parts.loss).format(progress.step.violation)}, above tol={optimizer.tol:g}. Its "
                "best weights are kept; raise max_iterations or tol, scale the features, or strengthen the penalty."
            )

    def _steps(self, queries: Queries) -> Iterator[Step]:
        for progress in self._fitted(queries):
            yield progress.step

    def _counts(self, queries: Queries) -> Iterator[int]:
        for progress in self._fitted(queries):
            yield progress.done

    def _fit_blocks(self, data: BlockedQueries) -> None:
        for _ in self._fitted(data):
            pass

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        first = self._parts()
        if first.optimizer.planned:  # values are numbers of steps
            yield from super()._steps_on_path(queries, values)
            return
        data = _divided(queries, first)
        path = self._adapted([self._alike(value)._parts() for value in values], data)
        for value, parts, reached in zip(values, path, first.optimizer.follow(path, data), strict=True):
            for _ in self._taken(parts, reached):
                pass
            yield value

    def _has_begun(self) -> bool:
        return hasattr(self, "state_")

    def _begin(self, queries: Queries) -> np.random.Generator | None:
        """Set the state of a one-pass optimizer before the first of queries."""
        (parts,) = self._adapted([self._parts()], queries)
        self.state_ = _one_pass(parts).start(queries.n_features)
        self.multiplier_ = parts.multiplier
        self.coef_ = np.zeros(queries.n_features)
        self.n_lists_seen_, self._averaged = 0, False
        return None

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        """Go on with the queries in order; before each, write the scores of its documents unless scores is empty."""
        parts = replace(self._parts(), multiplier=self.multiplier_)
        for progress in self._taken(parts, _one_pass(parts).learn(self.state_, parts, queries, order, scores)):
            yield progress.step


def _one_pass(parts: Parts) -> OnePassOptimizer:
    if isinstance(parts.optimizer, OnePassOptimizer):
        return parts.optimizer
    raise IncompatibleParts(
        f"{type(parts.optimizer).__name__} looks at all lists at every step: it cannot go on with new ones alone. "
        "Call fit on all of them, or take a one-pass optimizer, such as FOBOS()."
    )


def _divided(data: Data, parts: Parts) -> Data:
    """Return data in blocks where that saves memory, and what is computed of the documents adds up over blocks."""
    adds_up = hasattr(parts.loss, "weight_of") and not isinstance(parts.optimizer, OnePassOptimizer)
    return better_divided(data) if isinstance(data, Queries) and adds_up else data
