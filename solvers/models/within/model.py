"""Models of trees whose splits also compare documents with the others of their query.

Their files are those of models of trees (ranktune.solvers.models.tree_model), whose columns are those of
ranktune.solvers.models.within.columns; within lists the kinds of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Fields, Model, Origin
from ranktune.solvers.models.files import Content
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees
from ranktune.solvers.models.within.columns import KINDS, columns_within, signs_within


@dataclass(frozen=True, eq=False, repr=False)
class WithinModel(Model):
    """A model of trees whose splits compare features, and where a document stands by them within its query.

    Whoever predicts says which rows are a query, and gives all documents of it.

    Parameters
    ----------
    inner : TreeModel
        The trees, of the columns that ranktune.solvers.models.within.columns makes of the features.
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
    >>> from ranktune.solvers.models.within.model import WithinModel
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
