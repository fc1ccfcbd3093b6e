"""Models whose score is the sum of the values of trees. Their files add trees, splits and arrays.

trees   number of trees T          splits   number of splits S of all trees together
arrays  T + 4 S + (S + T) numbers, one array after another: splits of each tree, (T,); feature (S,), threshold (S,),
        left child (S,) and right child (S,) of each split; value of each leaf, (S + T,)
missing true if arrays end with S further numbers: 1 for a split that sends a missing value left, else 0

ranktune.solvers.models.trees defines the numbers.

Whether trees keep monotone constraints is checked tree by tree, exactly and without data. A tree rises with a feature
if any two leaves that documents reach by other values of that feature alone have rising values. Such leaves lie on the
two sides of a split on the feature, and their boxes, the values of all other features that lead there, have values in
common. First the values of each side are bounded: where all of the left are at most those of the right, nothing is left
to compare. Where every tree rises, their sum does. Missing values of the feature are exempt: a leaf that only documents
without it reach is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Fields, Model, Origin
from ranktune.solvers.models.files import AGAIN, MAX_ENTRIES, Content, field_of, optional_field, read_numbers
from ranktune.solvers.models.trees import ANY_VALUE, Int32s, Trees


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


def tree_violation(trees: Trees, signs: Ints) -> int | None:
    """Return a feature with which a tree falls or rises against its sign, (n_features,); None if none does."""
    if not signs[trees.features].any():
        return None
    suspects = np.zeros(trees.n_splits, dtype=np.bool_)
    _mark_by_bounds(trees.feature, trees.threshold, trees.children, trees.value, signs, suspects)
    sides = trees.zero_left if trees.missing_left is None else trees.missing_left
    for tree in np.unique(np.searchsorted(trees.starts, np.flatnonzero(suspects), side="right") - 1).tolist():
        a, b = int(trees.starts[tree]), int(trees.starts[tree + 1])
        features, place = np.unique(trees.feature[a:b], return_inverse=True)
        tree_arrays = trees.threshold[a:b], trees.children[a:b], sides[a:b], place.astype(np.int64)
        low, high, missing = _boxes(*tree_arrays, a, a + tree, len(features))
        leaves = trees.value[a + tree : b + tree + 1]
        for split in np.flatnonzero(suspects[a:b]).tolist():
            sign = int(signs[trees.feature[a + split]])
            left, right = (_leaves_below(int(child), trees.children, a + tree) for child in trees.children[a + split])
            if _contradict(left, right, low, high, missing, sign * leaves, int(place[split])):
                return int(trees.feature[a + split])
    return None


@compiled
def _mark_by_bounds(
    feature: Int32s, threshold: Floats, children: Int32s, value: Floats, signs: Ints, out: Mask
) -> None:
    """Mark the splits on features with a sign whose sides have values that overlap or are in the wrong order."""
    S = len(feature)
    lowest, highest = np.empty(S), np.empty(S)
    for s in range(S - 1, -1, -1):
        left, right = children[s, 0], children[s, 1]
        low_left, high_left = (lowest[left], highest[left]) if left >= 0 else (value[~left], value[~left])
        low_right, high_right = (lowest[right], highest[right]) if right >= 0 else (value[~right], value[~right])
        lowest[s], highest[s] = min(low_left, low_right), max(high_left, high_right)
        sign = signs[feature[s]]
        if threshold[s] < ANY_VALUE:
            out[s] = (sign > 0 and high_left > low_right) or (sign < 0 and low_left < high_right)


@compiled
def _boxes(
    threshold: Floats, children: Int32s, sides: Mask, place: Ints, first: int, first_leaf: int, size: int
) -> tuple[Matrix, Matrix, Matrix]:
    """Return the bounds of each leaf of a tree, and 1 where it takes missing values, (n_leaves, size) each.

    place is the number of the feature of each split among the `size` features of the tree; first and first_leaf are
    the numbers of the first split and leaf.
    """
    S = len(threshold)
    low, high, missing = (
        np.full((2 * S + 1, size), -np.inf),
        np.full((2 * S + 1, size), np.inf),
        np.ones((2 * S + 1, size)),
    )
    for s in range(S):
        limit = threshold[s] if threshold[s] < ANY_VALUE else np.inf
        for side in range(2):
            child = children[s, side]
            to = child - first if child >= 0 else S + ~child - first_leaf
            low[to], high[to], missing[to] = low[s], high[s], missing[s]
            if side == 0:
                high[to, place[s]] = min(high[s, place[s]], limit)
            else:
                low[to, place[s]] = max(low[s, place[s]], limit)
            if sides[s] != (side == 0):
                missing[to, place[s]] = 0.0
    return low[S:], high[S:], missing[S:]


def _leaves_below(node: int, children: Int32s, first_leaf: int) -> Ints:
    """Return the numbers in their tree of the leaves below a node."""
    waiting, leaves = [node], []
    while waiting:
        node = waiting.pop()
        if node < 0:
            leaves.append(~node - first_leaf)
        else:
            waiting += children[node].tolist()
    return np.array(leaves, dtype=np.int64)


@compiled
def _contradict(left: Ints, right: Ints, low: Matrix, high: Matrix, missing: Matrix, value: Floats, at: int) -> bool:
    """Return whether a left leaf has a larger value than a right one that feature number `at` alone leads to."""
    for a in left:
        for b in right:
            if value[a] <= value[b] or low[a, at] >= high[a, at] or low[b, at] >= high[b, at]:
                continue
            meets = True
            for f in range(low.shape[1]):
                if f != at and not (
                    max(low[a, f], low[b, f]) < min(high[a, f], high[b, f]) or missing[a, f] * missing[b, f] > 0.0
                ):
                    meets = False
                    break
            if meets:
                return True
    return False
