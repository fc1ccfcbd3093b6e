"""Models whose score is a weighted sum of features. Their files add scaling ("list" or null) and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Content, Model, field_of, optional_field, origin_of
from ranktune.solvers.models.files import read_numbers


@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """A model whose score is a weighted sum of features.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
        One weight per feature.
    solver : str
        Name of the solver that fitted the model.
    parameters : mapping of str to value, default={}
        Parameters of the solver.
    list_scaling : bool, default=False
        Whether the features of each query are first divided by their range in it.
    feature_names : tuple of str, optional
        Names of the features.
    metric, fingerprint, created, version : str, optional
        Where the model comes from: see Model.

    Raises
    ------
    DataError
        The weights are not one-dimensional, or the names do not fit them.

    Examples
    --------
    >>> from ranktune.solvers import LinearModel
    >>> model = LinearModel([2.0, 0.0, -1.0], "RankSVM", feature_names=("bm25", "length", "age"))
    >>> model.predict([[1.0, 5.0, 1.0], [0.0, 5.0, 1.0]])
    array([ 1., -1.])
    >>> model.nonzeros
    2
    """

    weights: Floats
    solver: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    list_scaling: bool = False
    feature_names: tuple[str, ...] | None = None
    metric: str | None = None
    fingerprint: str | None = None
    created: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        """Check the shapes."""
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or len(weights) == 0:
            raise DataError(f"weights have shape {weights.shape}: a linear model needs one weight a feature.")
        object.__setattr__(self, "weights", weights + 0.0)  # our own copy, in which -0.0 is 0.0 and takes no space
        self._check_names("weight")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return len(self.weights)

    @property
    def used_features(self) -> Ints:
        """The columns whose weight is not zero, ascending."""
        return np.flatnonzero(self.weights)

    @property
    def bytes(self) -> int:
        """A weight and an index for each feature that influences the score."""
        return 12 * self.nonzeros

    @property
    def _by_list(self) -> bool:
        return self.list_scaling

    def _scores(self, queries: Queries) -> Floats:
        if not self.list_scaling:
            return scores(queries.features, self.weights)
        from ranktune.solvers.data.list_scaling import scaled_by_list

        return scores(scaled_by_list(queries.features, queries.starts), self.weights)

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        return {"kind": "linear", "scaling": "list" if self.list_scaling else None}, {"weights": self.weights}

    @classmethod
    def read(cls, path: Path, content: Content) -> Self:
        """Return the model of the manifest at path. Raises ModelFormatError where it is not a linear one."""
        n_features = field_of(path, content, "n_features", int)
        scaling = optional_field(path, content, "scaling", str)
        if scaling not in (None, "list"):
            raise ModelFormatError(f"{path} has the unknown scaling '{scaling[:40]}'. Update this RankTune.")
        weights = read_numbers(path, content.get("weights"), n_features)
        return cls(weights=weights, list_scaling=scaling == "list", **origin_of(path, content, n_features))
