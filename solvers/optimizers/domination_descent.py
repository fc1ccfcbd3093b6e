"""Minimising the domination loss with an elastic-net penalty: steps over a working set of features.

    minimise over w   loss(X M w) + l1 sum |w| + l2 / 2 sum w^2       M = diag(multiplier), coef = M w

An iteration computes the gradient of all features, and with it their violations of the optimality conditions, then
updates the working set: the features with a nonzero weight or a violation. The other features cost one product.

Newton      (curvature "exact") minimise the quadratic model by coordinate descent, then search along that
            direction. Dense: second derivatives once an iteration, n_documents |working|^2, after which a sweep
            costs |working|^2. Sparse: a sweep costs the nonzeros; small working sets are spread out and done as dense.
            Documents ranked far below have almost no second derivative, so that steps become too long: at first, and
            again after a shortened step, bounds replace a share of the second derivatives, the stiffness (stiffen).
Bounded     (curvature "tight", "paper") the paper's descent: exact gradient, bounded curvature, one step per feature.

Dense features are read by rows or in blocks of columns, so that no second copy of them exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints, dense
from ranktune.solvers.data import products
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import domination_kernels as kernels
from ranktune.solvers.losses.domination import DominationLoss, check_dominance
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.optimizers import domination_columns as by_column
from ranktune.solvers.optimizers.domination_columns import Columns, DominationTarget, minimise, violations

CURVATURES = ("exact", "tight", "paper")

BLOCK = 1024
"""Features of a dense working set with one matrix of second derivatives; smaller blocks take many more iterations."""

GATHERED = 16
"""Columns copied out of dense rows at a time: the float32 values of a cache line."""

REFRESH = 16
"""Iterations after which scores are recomputed, against the drift of repeated additions."""

SWEEPS = 20_000
"""Maximum of sweeps over the second derivatives of a dense working set: cheap beside computing the derivatives."""

DENSE_BYTES = 32e6
"""Largest sparse working set that is made dense for its second derivatives, in bytes."""

SPARSE_WORK = 5e7
"""Nonzeros that sweeps over sparse columns visit before the model is renewed, after ten sweeps at least."""


ROUNDING = 1e-14
"""Relative rise of the objective that counts as rounding: near the optimum a step gains less than the last digits."""

STIFFER = 10.0
"""Factor of the stiffness: multiplied after a shortened step, to at least 1 / STIFFER, divided after a full one."""


class DominationProblem:
    """The loss of queries at the current weights, and the updates that lower the objective.

    reference is the largest gradient at zero weights: the unit of violations, and the smallest l1 for which all weights
    are zero (somewhat larger if no feature correlates with the grades, so that rounding gives no weights either).
    Raises as DominationLoss.lists and check_dominance do.
    """

    def __init__(self, queries: Queries, loss: DominationLoss, multiplier: Floats | None, curvature: str) -> None:
        self.features = queries.features
        self.lists = loss.lists(queries)
        check_dominance(self.lists, queries.n_documents)
        self.multiplier = np.ones(queries.n_features) if multiplier is None else multiplier
        self.curvature = curvature
        self._state = kernels.new_state(self.lists)
        self._scratch = np.empty(int(queries.lengths.max()))
        self._stiffness, self._delay = 1.0, 1.0
        self._moved, self._further = np.empty((2, queries.n_documents))
        self._columns = self._all_columns() if queries.is_sparse else None
        in_columns = queries.is_sparse or curvature != "exact"
        self._query_of = np.asarray(queries.query_of_document if in_columns else [], dtype=np.int64)
        self.weights, self.scores = np.zeros(queries.n_features), np.empty(queries.n_documents)
        self._times, _ = products.block(self.features, 0, queries.n_documents)
        self.refresh()
        self.gradient = self._gradient()
        self.reference = self._reference()
        self._bounds = None if curvature == "exact" else self._bounded_curvatures(curvature == "tight")

    def steps(self, penalty: Penalty, tolerance: float, max_iterations: int) -> Iterator[Step]:
        """Optimise the weights; yield a Step before the first iteration and after each one.

        Ends when the largest violation is at most tolerance times reference, at max_iterations, or when rounding
        prevents further descent.
        """
        self._delay = 1.0
        l1, l2 = penalty.strengths
        allowed = tolerance * self.reference
        for iteration in range(max_iterations + 1):
            distance = violations(self.weights, self.gradient, l1, l2)
            worst = float(distance.max())
            yield Step(iteration, self.value + penalty.value(self.weights), worst / max(self.reference, 1e-300))
            if worst <= allowed or iteration == max_iterations:
                return
            working = np.flatnonzero((self.weights != 0.0) | (distance > 0.0))
            target = DominationTarget(l1, l2, worst * min(0.1, worst / self.reference))
            if not self._move(working, penalty, target):
                return
            if (iteration + 1) % REFRESH == 0:
                self.refresh()
            self.gradient = self._gradient()

    def refresh(self) -> None:
        """Recompute scores, less the margins of documents, loss and its derivatives by score from the weights."""
        self._times(self.weights * self.multiplier, self.scores)
        self.value = float(kernels.evaluate(self.lists, self.scores, self._state))

    def _gradient(self) -> Floats:
        return self.multiplier * products.transposed(self.features, self._state.gradient)

    def _reference(self) -> float:
        """Return the largest gradient, at least 1e-10 of the terms that it sums, which may cancel."""
        largest, by_score = float(np.abs(self.gradient).max()), np.abs(self._state.gradient)
        total = float(by_score.sum())
        if largest < 1e-3 * total:
            terms = self.multiplier * np.sqrt(products.squares(self.features, by_score) * total)
            return max(largest, 1e-10 * float(terms.max()))
        return largest

    def _move(self, working: Ints, penalty: Penalty, target: DominationTarget) -> bool:
        """Lower the objective by updating the working set; return False if that is no longer possible."""
        if self._bounds is not None:
            return self._bounded_move(working, self._bounds, target)
        kernels.stiffen(self.lists, self.scores, self._state, self._stiffness)
        wide = len(working) > BLOCK or 8.0 * len(working) * len(self.scores) > DENSE_BYTES
        if self._columns is not None and wide:
            nonzeros = int(np.diff(self._columns.indptr)[working].sum())
            direction = by_column.newton_direction(
                self._columns,
                working,
                self.weights,
                self.gradient,
                self.lists,
                self._state,
                self._query_of,
                target,
                max(10, int(SPARSE_WORK / max(nonzeros, 1))),
                self._delay,
                self._moved,
            )
            return self._search(direction, penalty)
        parts = [working[at : at + BLOCK] for at in range(0, len(working), BLOCK)]
        moved = False
        for number, part in enumerate(parts):
            if number > 0:
                self.gradient = self._gradient()
                kernels.stiffen(self.lists, self.scores, self._state, self._stiffness)
            direction = self._dense_direction(part, target)
            self._times(direction * self.multiplier, self._moved)
            moved = self._search(direction, penalty) or moved
        return moved

    def _dense_direction(self, working: Ints, target: DominationTarget) -> Floats:
        features, columns = self.features, working
        if self._columns is not None:
            features, columns = dense(features[:, working]), np.arange(len(working))
        H = kernels.hessian(features, columns, self.lists, self._state)
        factor = self.multiplier[working]
        H *= factor
        H *= factor[:, None]
        direction = np.zeros_like(self.weights)
        direction[working] = minimise(
            H, self.gradient[working], self.weights[working], target.l1, target.l2, 0.01 * target.tolerance, SWEEPS
        )
        return direction

    def _search(self, direction: Floats, penalty: Penalty) -> bool:
        """Go along direction, whose scores are in _moved, by 1, 1/2, 1/4 ... until the objective falls enough.

        Return whether it did, or whether a more careful model is left to try.
        """
        before = penalty.value(self.weights)
        promised = float(self.gradient @ direction) + penalty.value(self.weights + direction) - before
        most = self.value + before
        most += ROUNDING * abs(most)
        length = 1.0
        while promised < 0.0 and length > 1e-9:
            weights, scores = self.weights + length * direction, self._further
            np.multiply(self._moved, length, out=scores)
            scores += self.scores
            if length == 1.0:  # weights that reach zero are exactly zero
                weights[direction == -self.weights] = 0.0
            value = float(kernels.value(self.lists, scores, self._scratch))
            if value + penalty.value(weights) <= most + 1e-4 * length * promised:
                self.weights, self.scores, self._further = weights, scores, self.scores
                self.value = float(kernels.evaluate(self.lists, scores, self._state))
                stiffer = min(1.0, max(STIFFER * self._stiffness, 1.0 / STIFFER))
                self._stiffness = self._stiffness / STIFFER if length == 1.0 else stiffer
                return True
            length *= 0.5
        careful = self._stiffness == 1.0 and self._delay == 0.0
        self._stiffness, self._delay = 1.0, 0.0
        return not careful

    def _bounded_move(self, working: Ints, bounds: Floats, target: DominationTarget) -> bool:
        before = self.weights.copy()
        for part, columns in self._parts(working):
            by_column.bounded_sweep(
                columns, part, self.weights, bounds, self.lists, self._state, self._query_of, target, self.scores
            )
        self.value = float(kernels.evaluate(self.lists, self.scores, self._state))
        return bool((self.weights != before).any())

    def _bounded_curvatures(self, tight: bool) -> Floats:
        lists, result = self.lists, np.zeros(len(self.multiplier))
        lowest = np.repeat(lists.first_level[:-1], np.diff(lists.starts))
        above = np.add.reduceat(np.where(lists.level > lowest, lists.copies, 0.0), lists.starts[:-1])
        for part, columns in self._parts(np.arange(len(result))):
            by_column.add_bounds(columns, part, lists, self._query_of, above, tight, result)
        return result

    def _parts(self, working: Ints) -> Iterator[tuple[Ints, Columns]]:
        """Yield the working set with its columns: all at once if sparse, else in blocks copied out of the rows."""
        if self._columns is not None:
            yield working, self._columns
            return
        rows = np.arange(len(self.scores), dtype=np.int64)
        for at in range(0, len(working), GATHERED):
            part = working[at : at + GATHERED]
            data = np.ascontiguousarray(self.features[:, part].T).reshape(-1)
            indptr = len(rows) * np.arange(len(part) + 1, dtype=np.int64)
            yield part, Columns(data, rows, indptr, True, self.multiplier)

    def _all_columns(self) -> Columns:
        columns: Any = sparse.csc_array(self.features)
        columns.sort_indices()
        rows, indptr = columns.indices.astype(np.int64, copy=False), columns.indptr.astype(np.int64, copy=False)
        return Columns(columns.data, rows, indptr, False, self.multiplier)
