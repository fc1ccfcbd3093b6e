"""Trees that LightGBM grows, converted to Trees.

LightGBM is loaded when a model is fitted (library). Its trees are converted at once, so that prediction, saving and
loading do not need it. With one thread and one seed, two fits give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.lightgbm.bins import rows_of
from ranktune.solvers.boosting.lightgbm.library import Data, Parameters, TreeBooster
from ranktune.solvers.boosting.objectives import BoostingObjective, MakeObjective
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.models.other_libraries.lightgbm import trees_of
from ranktune.solvers.models.trees import Trees


@dataclass(frozen=True, eq=False)
class LightGBMData(TrainingData):
    """Training data in the bins of LightGBM, which grows trees on them; queries have no features.

    rows are those of bins that the documents have, all for None. objective makes the objective where LightGBM
    does not have it; factor multiplies the values of the trees.
    """

    bins: Data
    rows: Ints | None
    parameters: Parameters
    objective: MakeObjective | None = None
    factor: float = 1.0

    def part(self, numbers: Ints) -> Self:
        """Return the data of the queries of these numbers, ascending."""
        rows = rows_of(self.queries, numbers)
        return replace(super().part(numbers), rows=rows if self.rows is None else self.rows[rows])

    @cached_property
    def _described(self) -> Data:
        """The bins of the documents, with targets, weights and first scores."""
        data = self.bins if self.rows is None else self.bins.subset(self.rows, self.parameters)
        weights = self.queries.weight_of_document if self.queries.is_weighted else None
        data.describe(self.targets, self.queries.lengths, weights, self.start, self.queries.positions)
        return data

    def growth(self, seed: int) -> LightGBMGrowth:
        """Return the growth of trees on the data."""
        booster = TreeBooster(self._described, {**self.parameters, "seed": seed})
        objective = None if self.objective is None else self.objective(self.queries, self.targets, seed)
        return LightGBMGrowth(booster, self.factor, self.queries.has_missing, objective)


class LightGBMGrowth:
    """Trees that LightGBM grows, for its objective or a given objective; factor multiplies their values."""

    def __init__(
        self, booster: TreeBooster, factor: float, has_missing: bool, objective: BoostingObjective | None
    ) -> None:
        self._booster, self._factor, self._has_missing, self._objective = booster, factor, has_missing, objective
        self._rounds, self._over = 0, False

    def grow(self) -> bool:
        """Grow one more round; return False, and add nothing, where no further split improves the fit."""
        if self._over:
            return False
        if self._objective is None:
            self._over = self._booster.update()
        else:
            self._over = self._booster.update_by(*self._objective.derivatives(self._booster.scores(), self._rounds))
        if self._over and self._rounds > 0:
            return False
        self._rounds += 1  # a first tree without splits is kept: its value is a constant
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        trees = trees_of(self._booster.text(first, last - first), self._has_missing)
        return trees if self._factor == 1.0 else trees.scaled(self._factor)
