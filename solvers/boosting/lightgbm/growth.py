"""Trees that LightGBM grows, converted to Trees.

LightGBM is loaded when a model is fitted (library). Its trees are converted at once, so that prediction, saving and
loading do not need it. With one thread and one seed, two fits give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.lightgbm.bins import rows_of
from ranktune.solvers.boosting.lightgbm.library import Booster, Data, Parameters
from ranktune.solvers.boosting.objectives import MakeObjective, Objective
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.models.trees import ANY_VALUE, Trees, joined, one_tree


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
        data.describe(self.targets, self.queries.lengths, weights, self.start)
        return data

    def growth(self, seed: int) -> LightGBMGrowth:
        """Return the growth of trees on the data."""
        booster = Booster(self._described, {**self.parameters, "seed": seed})
        objective = None if self.objective is None else self.objective(self.queries, self.targets, seed)
        return LightGBMGrowth(booster, self.factor, self.queries.has_missing, objective)


class LightGBMGrowth:
    """Trees that LightGBM grows, for its objective or a given objective; factor multiplies their values."""

    def __init__(self, booster: Booster, factor: float, has_missing: bool, objective: Objective | None) -> None:
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


def trees_of(text: str, has_missing: bool) -> Trees:
    """Return the trees in the text of a booster of numerical features, with sides for missing values if there are."""
    body = text[text.index("\nTree=") :].partition("\nend of trees")[0]
    return joined([_tree(_fields(part), has_missing) for part in body.split("\nTree=")[1:]])


def _fields(part: str) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in part.splitlines() if "=" in line)


def _tree(fields: Mapping[str, str], has_missing: bool) -> Trees:
    if int(fields["num_leaves"]) == 1:
        return one_tree([], [], [], [], [float(fields["leaf_value"].split()[0])], [] if has_missing else None)
    whole = {name: _whole(fields[name]) for name in ("split_feature", "left_child", "right_child")}
    threshold, value = ([float(k) for k in fields[name].split()] for name in ("threshold", "leaf_value"))
    threshold = [min(limit, ANY_VALUE) for limit in threshold]  # inf tells missing values from all others
    sides = _sides(_whole(fields["decision_type"]), threshold) if has_missing else None
    return one_tree(whole["split_feature"], threshold, whole["left_child"], whole["right_child"], value, sides)


def _whole(text: str) -> list[int]:
    return [int(k) for k in text.split()]


def _sides(decisions: Sequence[int], threshold: Sequence[float]) -> list[bool]:
    """Return whether a missing value goes left at each split.

    Bit 1 of a decision is the side of missing values if bits 2 and 3 are 2, which is where LightGBM has seen some; at
    other splits they count as 0.
    """
    pairs = zip(decisions, threshold, strict=True)
    return [bool(bits & 2) if bits >> 2 & 3 == 2 else limit >= 0.0 for bits, limit in pairs]
