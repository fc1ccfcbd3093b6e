"""Models whose score is the sum of the values of trees. Their files add trees, splits and arrays.

trees   number of trees T          splits   number of splits S of all trees together
arrays  T + 4 S + (S + T) numbers, one array after another: splits of each tree, (T,); feature (S,), threshold (S,),
        left child (S,) and right child (S,) of each split; value of each leaf, (S + T,)
missing true if arrays end with S further numbers: 1 for a split that sends a missing value left, else 0

ranktune.solvers.models.trees defines the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Fields, Model, Origin
from ranktune.solvers.models.files import AGAIN, MAX_ENTRIES, Content, field_of, optional_field, read_numbers
from ranktune.solvers.models.monotone import tree_violation
from ranktune.solvers.models.trees import Int32s, Trees


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel(Model):
    """A model whose score is the sum of the values of trees.

    Parameters
    ----------
    trees : Trees
        The trees, with the weight of each already in its leaves.
    columns : int
        Number of features that predict expects.
    solver : str
        Name of the solver that fitted the model.
    parameters, feature_names, metric, fingerprint, created, version, encoding, monotone : optional
        As in LinearModel.

    Raises
    ------
    DataError
        The model does not keep a constraint of monotone.
        A tree uses a column that does not exist, or the number of names differs from columns.

    Examples
    --------
    >>> from ranktune.solvers import TreeModel
    >>> from ranktune.solvers.models.trees import stumps
    >>> model = TreeModel(stumps(features=[0, 2], thresholds=[0.5, 1.0], weights=[2.0, -1.0]), 3, "RankBoost")
    >>> model.predict([[1.0, 0.0, 0.0], [1.0, 0.0, 4.0]])
    array([2., 1.])
    """

    trees: Trees
    columns: int
    solver: str

    def __post_init__(self) -> None:
        """Check that the columns of all splits exist."""
        if len(self.trees.features) and self.trees.features[-1] >= self.columns:
            raise DataError(f"a tree uses column {self.trees.features[-1]} of {self.columns} features, counted from 0.")
        self._check_origin("feature")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return self.columns

    @property
    def used_features(self) -> Ints:
        """The columns that splits compare, ascending."""
        return self.trees.features

    def _violation(self, signs: Ints) -> int | None:
        return tree_violation(self.trees, signs)

    @property
    def bytes(self) -> int:
        """A feature, a threshold and two children for each split, and the leaves."""
        return 20 * self.trees.n_splits + 8 * len(self.trees.value)

    @property
    def takes_missing(self) -> bool:
        """Whether features may be missing (NaN)."""
        return self.trees.missing_left is not None

    def _spread(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Fields:
        return {"trees": self.trees.on_columns(columns), "columns": n_features}

    def _scores(self, queries: Queries) -> Floats:
        return self.trees.scores(queries.features)

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        counts, arrays = packed(self.trees)
        return {"kind": "trees", **counts}, {"arrays": arrays}

    @classmethod
    def fields_of(
        cls, path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str] = ()
    ) -> Fields:
        """Return the trees, of the manifest at path, and the number of features."""
        return {"trees": unpacked(path, content), "columns": n_features}


def packed(trees: Trees) -> tuple[dict[str, object], Floats]:
    """Return trees as counts, for the manifest, and one array. Raises ModelFormatError where they are too large."""
    parts = (np.diff(trees.starts), trees.feature, trees.threshold, *trees.children.T, trees.value)
    sides = () if trees.missing_left is None else (trees.missing_left,)
    arrays = np.concatenate([*parts, *sides]).astype(np.float64)
    if len(arrays) > MAX_ENTRIES:
        raise ModelFormatError(f"the trees take {len(arrays)} numbers, at most {MAX_ENTRIES} fit. Grow fewer.")
    counts: dict[str, object] = {"trees": trees.n_trees, "splits": trees.n_splits}
    return counts | ({"missing": True} if sides else {}), arrays


def unpacked(path: Path, content: Content) -> Trees:
    """Return the trees of the manifest at path. Raises ModelFormatError or DataError where they are invalid."""
    T, S = (field_of(path, content, name, int) for name in ("trees", "splits"))
    if not (0 < T <= MAX_ENTRIES and 0 <= S <= MAX_ENTRIES):
        raise ModelFormatError(f"{path} claims {T} trees with {S} splits: at most {MAX_ENTRIES}. {AGAIN}")
    sided = optional_field(path, content, "missing", bool) or False
    arrays = read_numbers(path, content.get("arrays"), 2 * T + 5 * S + sided * S)
    splits, feature, threshold, left, right, value, sides = np.split(arrays, np.cumsum([T, S, S, S, S, S + T]))
    if not np.isin(sides, (0.0, 1.0)).all():
        raise ModelFormatError(f"{path}: the sides of missing values must be 0 or 1. {AGAIN}")
    counts, features = _whole(path, splits), _whole(path, feature)
    children = _whole(path, np.column_stack([left, right]))
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return Trees(features, threshold, children, value, starts, sides == 1.0 if sided else None)


def _whole(path: Path, values: Floats) -> Int32s:
    """Return values as whole numbers. Raises ModelFormatError where they are not, or too large."""
    if not (np.abs(values) <= 2 * MAX_ENTRIES).all() or (values != np.floor(values)).any():
        raise ModelFormatError(f"{path}: splits, features and children must be whole numbers. {AGAIN}")
    return np.ascontiguousarray(values).astype(np.int32)
