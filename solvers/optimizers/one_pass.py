"""Optimizers that visit each list once a pass: FOBOS, RDA, PSGD, TGD. Memory: a few vectors of weights, and one list.

At list t, with gradient g, rate eta, of all weights or of each, and the penalty l1 |w| + l2 / 2 |w|^2
(S(a, b) = sign(a) max(0, |a| - b)):

FOBOS   w = S(w - eta g, eta l1) / (1 + eta l2)
RDA     w = -S(G, l1) / (l2 + 1 / (eta t)), G the mean of all gradients so far
PSGD    w = w - eta (g + l2 w), and every k lists w_r = 0 where |w_r| < threshold
TGD     w = w - eta g, and every k lists w_r = S(w_r, k eta l1) where |w_r| <= threshold

A list without pairs is skipped. Sparse lists cost their nonzeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Annotated, ClassVar, cast

import numpy as np

from ranktune.solvers.base.passes import mixed, orders
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.parameters import Param, Range, part, unchecked
from ranktune.solvers.data.blocked import BlockedQueries, Data, OpenBlock
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import rows_of
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.optimizers import one_pass_kernels as kernels
from ranktune.solvers.optimizers.base import Needs, Optimizer, Parts, Progress
from ranktune.solvers.optimizers.one_pass_kernels import OnePassSettings, OnePassState


@part
class Schedule:
    """A rate that the one-pass kernels know by its code; eta0 is that of the first list, or of a gradient of one."""

    eta0: Annotated[float, Param("The rate of the first list.")] = 1.0
    code: ClassVar[int]


@part
class InverseRoot(Schedule):
    """The rate eta0 / sqrt(t), under which the average loss of a convex problem converges.

    {parameters}

    Examples
    --------
    >>> from ranktune.solvers import FOBOS
    >>> from ranktune.solvers.optimizers.one_pass import InverseRoot
    >>> FOBOS(InverseRoot(0.5)).schedule
    InverseRoot(eta0=0.5)
    """

    code: ClassVar[int] = kernels.INVERSE_ROOT


@part
class Constant(Schedule):
    """The rate eta0 at every list, for data whose distribution changes.

    {parameters}

    Examples
    --------
    >>> from ranktune.solvers import FOBOS
    >>> from ranktune.solvers.optimizers.one_pass import Constant
    >>> FOBOS(Constant(0.1)).schedule
    Constant(eta0=0.1)
    """

    eta0: Annotated[float, Param("The rate.")] = 1.0
    code: ClassVar[int] = kernels.CONSTANT


@part
class AdaGrad(Schedule):
    """The rate eta0 / sqrt(sum of the weight's squared gradients so far, this one included).

    Weights of rare features move further than those of frequent ones.

    {parameters}

    References
    ----------
    Duchi, Hazan & Singer 2011, "Adaptive Subgradient Methods for Online Learning", JMLR 12.

    Examples
    --------
    >>> from ranktune.solvers import FOBOS
    >>> from ranktune.solvers.optimizers.one_pass import AdaGrad
    >>> FOBOS(AdaGrad(0.3)).schedule
    AdaGrad(eta0=0.3)
    """

    eta0: Annotated[float, Param("The size of the first step of every weight.")] = 0.1
    code: ClassVar[int] = kernels.ADAGRAD


SCHEDULES: Mapping[str, Callable[[float], Schedule]] = {
    "sqrt": InverseRoot,
    "constant": Constant,
    "adagrad": AdaGrad,
}
"""The schedules by the names that solvers give them."""


MIN_LISTS_BETWEEN_REPORTS = 1000
"""With many features it is a tenth of their number instead, so that reports cost little."""

OVERFLOW = 1e100
"""Weights of this size show that steps grow without bound, well before float64 overflows."""


@part
class OnePassOptimizer(Optimizer):
    """A one-pass optimizer; the kernels implement each under its code."""

    code: ClassVar[int]
    planned: ClassVar[bool] = True
    losses: ClassVar[str] = "pairwise"
    needs: ClassVar[Needs] = Needs(loss=("rule", "lists"), penalty=("strengths",))
    schedule: Annotated[
        Schedule, Param("The rate of each list: InverseRoot, Constant or AdaGrad, of schedules.", check=unchecked)
    ] = field(default_factory=InverseRoot)

    def check(self, loss: Loss, penalty: Penalty) -> None:
        """Raise ParameterError where steps would overshoot."""
        self.rule(penalty)

    def rule(self, penalty: Penalty) -> OnePassSettings:
        """Return the rule of the kernels."""
        l1, l2 = penalty.strengths
        threshold, every = float(getattr(self, "threshold", 0.0)), int(getattr(self, "every", 1))
        return OnePassSettings(self.code, self.schedule.code, float(self.schedule.eta0), l1, l2, threshold, every)

    def start(self, n_features: int) -> OnePassState:
        """Return the state before the first list: all weights zero."""
        vector, squares, clock = np.zeros((3, n_features))
        return OnePassState(vector, squares, clock, np.zeros(n_features, dtype=np.int64), np.zeros(3))

    def weights(self, penalty: Penalty, state: OnePassState) -> Floats:
        """Return the weights as they are now, (n_features,); state does not change. Cost: n_features."""
        weights = np.empty(len(state.vector))
        kernels.weights_of(self.rule(penalty), state, np.arange(len(weights)), weights)
        return weights + 0.0  # -0.0 is 0.0

    def fit(self, parts: Parts, data: Data) -> Iterator[Progress]:
        """Yield what is reached, at intervals of many queries; of data in blocks, what the blocks give on average."""
        if isinstance(data, BlockedQueries):
            weights = mixed(data.workers.map(_learnt_alone, parts))
            yield Progress(weights, Step(parts.visits.passes, float("nan")), {"_averaged": True}, parts.visits.passes)
            return
        state, seed = self.start(data.n_features), parts.visits.random_state
        generator = None if seed is None else np.random.default_rng(seed)
        for number, order in enumerate(orders(data.n_queries, int(parts.visits.passes), generator)):
            for progress in self.learn(state, parts, data, order):
                yield progress._replace(done=number + progress.done)

    def learn(
        self, state: OnePassState, parts: Parts, queries: Queries, order: Ints, scores: Floats | None = None
    ) -> Iterator[Progress]:
        """Take one step for each query in order, changing state; yield what is reached at intervals.

        scores, (n_documents,), is overwritten for the queries in order: the scores of their documents before the step
        of their query. The iteration of a step counts the queries visited so far; its objective is the mean loss of
        the queries since the last one, each before its step, plus the penalty. What is done is 1 at the end of order, 0
        before. Raises ParameterError if the weights overflow.
        """
        loss, penalty = cast(PairwiseLoss, parts.loss), parts.penalty
        rule, pairs, lists = self.rule(penalty), loss.rule(queries), loss.lists(queries)
        rows, targets = rows_of(queries.features), np.zeros(0) if scores is None else scores
        factors = np.ones(len(state.vector)) if parts.multiplier is None else parts.multiplier
        block = max(MIN_LISTS_BETWEEN_REPORTS, len(state.vector) // 10)
        for first in range(0, len(order), block):
            part, before = order[first : first + block], state.now[0]
            total = kernels.learn(rows, part, lists, pairs, rule, state, factors, parts.visits.scaled, targets)
            weights = self.weights(penalty, state)
            if not (np.abs(weights) < OVERFLOW).all():
                raise ParameterError(
                    f"the weights overflowed within {int(state.now[0])} lists: eta0={self.schedule.eta0:g} is too "
                    "large for these features. Lower eta0, scale the features (scaling='standard'), or use the "
                    "schedule adagrad."
                )
            step = Step(int(state.now[0]), total / max(state.now[0] - before, 1.0) + penalty.value(weights))
            fitted = {"n_lists_seen_": step.iteration, "state_": state, "multiplier_": factors, "_averaged": False}
            yield Progress(weights * factors, step, fitted, int(first + block >= len(order)))


def _learnt_alone(block: OpenBlock, parts: Parts) -> tuple[int, Floats]:
    """Return the number of queries of a block, and the weights learned from it alone; zeros where it has no pairs."""
    queries = block.queries
    if not queries.has_pairs:
        return 0, np.zeros(queries.n_features)
    *_, last = parts.optimizer.fit(parts, queries)
    return queries.n_queries, last.weights


@part
class FOBOS(OnePassOptimizer):
    """Forward-backward splitting: a gradient step, then the proximal step of the penalty.

    {parameters}

    References
    ----------
    Duchi & Singer 2009, "Efficient Online and Batch Learning Using Forward Backward Splitting", JMLR 10.

    Examples
    --------
    >>> from ranktune.solvers import FOBOS, L1, Ranker
    >>> ranker = Ranker(penalty=L1(1e-4), optimizer=FOBOS())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    code: ClassVar[int] = kernels.FOBOS


@part
class RDA(OnePassOptimizer):
    """Regularised dual averaging: the best weights for the mean gradient; sparser than FOBOS at the same strength.

    {parameters}

    References
    ----------
    Xiao 2010, "Dual Averaging Methods for Regularized Stochastic Learning and Online Optimization", JMLR 11.

    Examples
    --------
    >>> from ranktune.solvers import L1, RDA, Ranker
    >>> ranker = Ranker(penalty=L1(1e-4), optimizer=RDA())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    code: ClassVar[int] = kernels.RDA


@part
class _Truncating(OnePassOptimizer):
    """A one-pass optimizer that truncates weights at regular intervals."""

    threshold: Annotated[float, Param("Weights of smaller size become zero.", check=check_not_negative)] = 0.0
    every: Annotated[int, Param("The number of lists from one truncation to the next.")] = 100


@part
class PSGD(_Truncating):
    """Pruned gradient descent: at regular intervals, weights smaller than threshold become zero.

    It takes no L1, which has no gradient at 0. eta0 times the strength of L2 must be below 1, or a step overshoots
    (AdaGrad, whose rates are not known in advance, stops at zero instead).

    {parameters}

    Examples
    --------
    >>> from ranktune.solvers import L2, PSGD, Ranker
    >>> ranker = Ranker(penalty=L2(1e-4), optimizer=PSGD())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    code: ClassVar[int] = kernels.PSGD
    needs: ClassVar[Needs] = Needs(loss=("rule", "lists"), penalty=("strengths", "gradient"))
    penalties: ClassVar[tuple[str, ...]] = ("l2",)
    searched: ClassVar[Mapping[str, Range]] = {"l2": Range(low=1e-6, high=1e-1, log=True, default=1e-3)}

    def rule(self, penalty: Penalty) -> OnePassSettings:
        """Return the rule of the kernels. Raises ParameterError if steps would overshoot."""
        rule = super().rule(penalty)
        if rule.schedule != kernels.ADAGRAD and rule.eta0 * rule.l2 >= 1.0:
            raise ParameterError(
                f"eta0={rule.eta0:g} times l2={rule.l2:g} is {rule.eta0 * rule.l2:g}: PSGD subtracts eta l2 w, which "
                "overshoots zero from 1 on. Lower one of them, or use FOBOS or RDA."
            )
        return rule


@part
class TGD(_Truncating):
    """Truncated gradient descent: at regular intervals, weights up to threshold shrink as L1 would have shrunk them.

    It takes L1 only.

    {parameters}

    References
    ----------
    Langford, Li & Zhang 2009, "Sparse Online Learning via Truncated Gradient", JMLR 10.

    Examples
    --------
    >>> from ranktune.solvers import L1, Ranker, TGD
    >>> ranker = Ranker(penalty=L1(1e-4), optimizer=TGD())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    code: ClassVar[int] = kernels.TGD
    needs: ClassVar[Needs] = Needs(loss=("rule", "lists"), penalty=("strengths", "truncate"))
    penalties: ClassVar[tuple[str, ...]] = ("l1",)
    searched: ClassVar[Mapping[str, Range]] = {"l1": Range(low=1e-6, high=1e-1, log=True, default=1e-3)}
    threshold: Annotated[float, Param("Weights of this size or smaller shrink.", check=check_not_negative)] = 1.0


ONE_PASS = (FOBOS, PSGD, RDA, TGD)
