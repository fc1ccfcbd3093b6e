"""Linear rankers that an optimizer fits, composed of a loss, a pair weight, a penalty and the optimizer.

A ranker names its parts, or has them as objects: a point of a grid, whose tables are in ranktune.solvers.linear.parts.
Optimizers are one-pass (query by query, partial_fit) or batch (all queries at every step). Each declares what it needs
of the other parts, and how features can be scaled for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.blocks.blocked import BlockedQueries, Data, factors_of
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import IncompatibleParts, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.parts import LOSSES, OPTIMIZERS, PAIR_WEIGHTS, PENALTIES, has_pairs, is_one_pass
from ranktune.solvers.linear.second_order import CoordinateDescent, Newton
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pair_weights import PairWeight, Uniform
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.losses.penalties import L1, L2, Penalty
from ranktune.solvers.optimizers.base import BatchOptimizer, check_parts
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN, Batch, GradientSteps
from ranktune.solvers.optimizers.one_pass import ONE_PASS, OnePass
from ranktune.solvers.optimizers.proximal import FISTA
from ranktune.solvers.optimizers.schedules import SCHEDULES

Optimizer: TypeAlias = OnePass | Batch

GENERAL = (*ONE_PASS, LBFGS, OWLQN, FISTA, GradientSteps)
"""Those that take every loss with what they need."""


class Composition(NamedTuple):
    """The parts of a ranker, by name or as objects."""

    loss: str | Loss
    pair_weight: str | PairWeight | None
    penalty: str | Penalty | None
    optimizer: str | Optimizer


@dataclass(frozen=True)
class Parts:
    """The parts of a ranker. Raises IncompatibleParts if they do not compose."""

    loss: Loss
    penalty: Penalty
    optimizer: Optimizer

    def __post_init__(self) -> None:
        """Check that the parts compose."""
        check_parts(self.loss, self.penalty, self.optimizer, GENERAL)
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
    """Base of linear rankers that minimise one function of all queries; a subclass defines _path.

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
    objective_: float
    n_iter_: int
    converged_: bool

    def _data(self, queries: Queries) -> Data:
        """Return the data that are learned from."""
        return queries

    def _path(self, data: Data, values: Sequence[float | int] | None) -> Iterator[Iterator[Step]]:
        """Yield the steps of a fit for each value of the path parameter, None for that of the ranker.

        They are to be taken before the next, which starts where they ended.
        """
        raise NotImplementedError

    def _steps(self, queries: Queries) -> Iterator[Step]:
        return self._steps_on(self._data(queries))

    def _steps_on(self, data: Data) -> Iterator[Step]:
        for steps in self._path(data, None):
            yield from steps

    def _fit_blocks(self, data: BlockedQueries) -> None:
        for _ in self._steps_on(data):
            pass

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Begin with the strongest penalty; each goes on from where the one before ended."""
        for value, steps in zip(values, self._path(self._data(queries), values), strict=True):
            for _ in steps:
                pass
            yield value

    def _keep(self, optimizer: BatchOptimizer, steps: Iterator[tuple[Floats, Step]]) -> Iterator[Step]:
        """Take over what each step leads to. Warns (RankTuneWarning) if it should have converged and did not."""
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


class ComposedRanker(MinimisingRanker):
    """Base of linear rankers that are composed of parts, which a subclass names; their settings are its parameters."""

    scaling: str

    def _composition(self) -> Composition:
        """Return the parts."""
        raise NotImplementedError

    def _parts(self) -> Parts:
        loss, pair_weight, penalty, optimizer = self._composition()
        made = self._optimizer(optimizer)
        return Parts(self._loss(loss, pair_weight), self._penalty(penalty, made), made)

    def _loss(self, loss: Any, pair_weight: Any) -> Loss:
        if isinstance(loss, str):
            weight = {"weight": self._pair_weight(pair_weight)} if has_pairs(loss) else {}
            named: Loss = LOSSES[loss].made(self, **weight)
            return named
        if isinstance(pair_weight, str | None):
            return cast(Loss, loss)
        if not hasattr(loss, "weight"):
            raise IncompatibleParts(
                f"{type(loss).__name__} has no pair weight to replace by {type(pair_weight).__name__}: it does "
                "not look at pairs. Leave pair_weight out, or take a pairwise loss."
            )
        return cast(Loss, replace(loss, weight=pair_weight))

    def _pair_weight(self, pair_weight: Any) -> PairWeight:
        if pair_weight is None:
            return Uniform()
        return cast(PairWeight, PAIR_WEIGHTS[pair_weight].made(self) if isinstance(pair_weight, str) else pair_weight)

    def _penalty(self, penalty: Any, optimizer: Optimizer) -> Penalty:
        if penalty is None or penalty == "none":
            return L1(0.0) if "truncate" in optimizer.needs.penalty else L2(0.0)
        return cast(Penalty, PENALTIES[penalty].made(self) if isinstance(penalty, str) else penalty)

    def _optimizer(self, optimizer: Any) -> Optimizer:
        if not isinstance(optimizer, str):
            return cast(Optimizer, optimizer)
        settings: Any = self
        schedule = {"schedule": SCHEDULES[settings.schedule](settings.eta0)} if is_one_pass(optimizer) else {}
        return cast(Optimizer, OPTIMIZERS[optimizer].made(self, **schedule))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("scaling", self.scaling, self._parts().optimizer.needs.scalings)

    def _path(self, data: Data, values: Sequence[float | int] | None) -> Iterator[Iterator[Step]]:
        parts = self._parts()
        assert isinstance(parts.optimizer, Batch)
        penalties = [parts.penalty] if values is None else [self._alike(value)._parts().penalty for value in values]
        multiplier = factors_of(data, self.scaling, within_queries=True)
        for steps in parts.optimizer.follow(parts.loss, penalties, data, multiplier=multiplier):
            yield self._keep(parts.optimizer, steps)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        counts_steps = getattr(self._parts().optimizer, "planned", False)
        return (LinearRanker if counts_steps else MinimisingRanker)._steps_on_path(self, queries, values)


class OnePassRanker(ComposedRanker, PassRanker):
    """Base of linear rankers that may have a one-pass optimizer, and then learn query by query."""

    scaled_within_queries: ClassVar[bool] = True

    @property
    def _way(self) -> type[PassRanker | ComposedRanker]:
        """The base that fits with the optimizer."""
        return PassRanker if is_one_pass(self._composition().optimizer) else ComposedRanker

    def _steps(self, queries: Queries) -> Iterator[Step]:
        return self._way._steps(self, queries)

    def _counts(self, queries: Queries) -> Iterator[int]:
        return self._way._counts(self, queries)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        return self._way._steps_on_path(self, queries, values)

    def _fit_blocks(self, data: BlockedQueries) -> None:
        self._way._fit_blocks(self, data)

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
