"""Where the documents of a query stand among each other: columns computed from each feature, and trees on them.

KINDS of n_features each stand one after another: column c is of feature c % n_features and of kind c // n_features.

value     the feature itself
rank      0 for the lowest value of the query to 1 for the highest, equal values their mean rank; 0.5 of a value alone
zscore    the value less the mean of the query, by the standard deviation there; 0 where the feature does not vary
gap       the highest value of the query less the value
share     the value by the highest of the query; 0 where none is above 0

A missing value is missing in all of them, and the others are compared without it. All but the value are rounded to
single precision, so that data of either precision get the same columns. Nothing depends on the order of the documents.

Files of these models are those of models of trees (ranktune.solvers.models.tree_model) on these columns; within lists
the kinds of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Features, Floats, Ints, Matrix, as_ints, dense
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import name_of
from ranktune.solvers.data.scaling import MIN_SPREAD
from ranktune.solvers.models.base import Fields, Model, Origin
from ranktune.solvers.models.files import Content
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees

KINDS = ("value", "rank", "zscore", "gap", "share")
_VALUE, _RANK, _ZSCORE, _GAP, _SHARE = range(len(KINDS))
SIGNS = (1, 1, 1, -1, 1)
"""Whether each kind rises or falls with the value of the document."""
PHRASES = (
    "",
    "rank within the query",
    "z-score within the query",
    "distance to the highest of the query",
    "share of the highest of the query",
)
BLOCK_ROWS = 4096
"""Documents whose columns are computed at a time."""
LARGEST = float(np.finfo(np.float32).max)


def columns_within(features: Features, starts: Ints, columns: Ints) -> Matrix:
    """Return some columns, by their numbers, of documents grouped by starts: (n_documents, n_columns).

    They have the type of features, and are dense. Cost: the features that they are of, and sorting each by query.
    """
    n_documents, n_features = features.shape
    used, feature = np.unique(columns % n_features, return_inverse=True)
    result = np.empty((n_documents, len(columns)), dtype=features.dtype)
    for first, last in blocks(starts, BLOCK_ROWS):
        a, b = int(starts[first]), int(starts[last])
        values = np.ascontiguousarray(dense(features[a:b][:, used]).T, dtype=np.float64)
        filled = np.empty((len(columns), b - a))
        _fill(values, as_ints(starts[first : last + 1] - a), as_ints(feature), as_ints(columns // n_features), filled)
        result[a:b] = filled.T
    return result


def signs_within(signs: Ints, n_kinds: int = len(KINDS)) -> Ints:
    """Return the monotone constraints of the columns of the first kinds from those of the features, (n_features,)."""
    return np.concatenate([sign * signs for sign in SIGNS[:n_kinds]])


def column_name(column: int, n_features: int, names: Sequence[str] | None) -> str:
    """Return what a column is called: by its feature and its kind."""
    name, phrase = name_of(column % n_features, names), PHRASES[column // n_features]
    return f"{name}, {phrase}" if phrase else name


@compiled
def _fill(values: Matrix, starts: Ints, feature: Ints, kind: Ints, out: Matrix) -> None:
    """Set the rows of out, (n_columns, n_documents), to columns of the features in the rows of values."""
    for j in range(len(feature)):
        x, to = values[feature[j]], out[j]
        for q in range(len(starts) - 1):
            a, b = starts[q], starts[q + 1]
            if kind[j] == _VALUE:
                for i in range(a, b):
                    to[i] = x[i]
            elif kind[j] == _RANK or kind[j] == _ZSCORE:
                _by_order(x[a:b], kind[j] == _RANK, to[a:b])
            else:
                _by_highest(x[a:b], kind[j] == _GAP, to[a:b])


@compiled
def _by_order(x: Floats, ranks: bool, out: Floats) -> None:
    """Set out to the ranks or the z-scores of the values of a query."""
    order = np.argsort(x)  # missing values last
    m = len(x)
    while m > 0 and np.isnan(x[order[m - 1]]):
        m -= 1
        out[order[m]] = np.nan
    if m == 0:
        return
    if ranks:
        _set_ranks(x, order, m, out)
        return
    low, half = x[order[0]], 0.5 * x[order[m - 1]] - 0.5 * x[order[0]]  # halves: the range of doubles overflows
    if half < MIN_SPREAD:
        for k in range(m):
            out[order[k]] = 0.0
        return
    mean = 0.0
    for k in range(m):  # in the order of the values: the sum of the same values is the same
        mean += (0.5 * x[order[k]] - 0.5 * low) / half / m
    variance = 0.0
    for k in range(m):
        variance += ((0.5 * x[order[k]] - 0.5 * low) / half - mean) ** 2 / m
    for k in range(m):
        score = ((0.5 * x[order[k]] - 0.5 * low) / half - mean) / np.sqrt(variance)
        out[order[k]] = np.float64(np.float32(score))


@compiled
def _set_ranks(x: Floats, order: Ints, m: int, out: Floats) -> None:
    """Set out to the ranks of the first m values of an order."""
    first = 0
    while first < m:
        last = first
        while last + 1 < m and x[order[last + 1]] == x[order[first]]:
            last += 1
        rank = 0.5 if m == 1 else 0.5 * (first + last) / (m - 1)
        for k in range(first, last + 1):
            out[order[k]] = np.float64(np.float32(rank))
        first = last + 1


@compiled
def _by_highest(x: Floats, gaps: bool, out: Floats) -> None:
    """Set out to the distances to the highest of the values of a query, or to their shares of it."""
    highest = -np.inf
    for i in range(len(x)):
        if x[i] > highest:
            highest = x[i]
    for i in range(len(x)):
        if np.isnan(x[i]):
            out[i] = np.nan
        elif gaps:
            out[i] = np.float64(np.float32(min(highest - x[i], LARGEST)))
        else:
            share = x[i] / highest if highest > 0.0 else 0.0
            out[i] = np.float64(np.float32(max(share, -LARGEST)))


@dataclass(frozen=True, eq=False, repr=False)
class WithinModel(Model):
    """A model of trees whose splits compare features, and where a document stands by them within its query.

    Whoever predicts says which rows are a query, and gives all documents of it.

    Parameters
    ----------
    inner : TreeModel
        The trees, of the columns that ranktune.solvers.models.within makes of the features.
    solver : str
        Name of the solver that fitted the model.
    parameters, feature_names, metric, fingerprint, created, version, encoding, monotone : optional
        As in LinearModel.

    Raises
    ------
    DataError
        The model does not keep a constraint of monotone, or the number of names differs from that of the features.

    Examples
    --------
    The second feature column of one feature is its rank within the query:

    >>> from ranktune.solvers.models.tree_model import TreeModel
    >>> from ranktune.solvers.models.trees import stumps
    >>> from ranktune.solvers.models.within import WithinModel
    >>> model = WithinModel(TreeModel(stumps(features=[1], thresholds=[0.5], weights=[1.0]), 5, ""), "LambdaMART")
    >>> model.predict([[7.0], [8.0], [1.0], [2.0]], group=[2, 2])
    array([0., 1., 0., 1.])
    """

    inner: TreeModel
    solver: str

    def __post_init__(self) -> None:
        """Check the names and constraints."""
        self._check_origin("feature")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return self.inner.n_features // len(KINDS)

    @property
    def used_features(self) -> Ints:
        """The features that columns in the splits are made of, ascending."""
        return np.unique(self.inner.used_features % self.n_features)

    @property
    def bytes(self) -> int:
        """Memory of the trees."""
        return self.inner.bytes

    @property
    def takes_missing(self) -> bool:
        """Whether features may be missing (NaN)."""
        return self.inner.takes_missing

    @property
    def needs_queries(self) -> bool:
        """True: documents are compared with the others of their query."""
        return True

    def _violation(self, signs: Ints) -> int | None:
        column = self.inner._violation(signs_within(signs))
        return None if column is None else column % self.n_features

    def _spread(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Fields:
        of_kinds = np.concatenate([columns + kind * n_features for kind in range(len(KINDS))])
        return {"inner": self.inner.on_columns(of_kinds, len(KINDS) * n_features, None)}

    @cached_property
    def _compact(self) -> tuple[Ints, Trees]:
        """The columns that splits compare, and the trees of these columns alone."""
        columns = self.inner.used_features if self.inner.nonzeros else np.zeros(1, dtype=np.int64)
        place = np.zeros(self.inner.n_features, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        return columns, self.inner.trees.on_columns(place)

    def _scores(self, queries: Queries) -> Floats:
        columns, trees = self._compact
        return trees.scores(columns_within(queries.features, queries.starts, columns))

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        content, arrays = self.inner._content()
        return {**content, "kind": "within", "within": list(KINDS)}, arrays

    @classmethod
    def fields_of(
        cls, path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str] = ()
    ) -> Fields:
        """Return the trees, of the manifest at path."""
        if content.get("within") != list(KINDS):
            raise ModelFormatError(
                f"{path} has the columns {str(content.get('within'))[:80]} of each feature: this RankTune knows "
                f"{', '.join(KINDS)}. Update it."
            )
        trees = TreeModel.fields_of(path, content, len(KINDS) * n_features, origin)
        return {"inner": TreeModel(**trees, solver=origin["solver"])}
