"""Models whose score is a weighted sum of features. Their files add scaling ("list" or null) and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Features, Floats
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Content, Model, common_fields, field_of
from ranktune.solvers.models.files import read_numbers


@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """A score that is a weighted sum of features.

    weights        (n_features,) float64
    list_scaling   whether the features of each query are first divided by their range in it

    The other fields are those of every Model. Raises DataError where weights are not a flat list of numbers or names do
    not fit them.
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
        object.__setattr__(self, "weights", weights + 0.0)  # our own copy, in which -0.0 is 0.0 and needs no room
        self._check_names("weight")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return len(self.weights)

    @property
    def nonzeros(self) -> int:
        """Number of features that matter."""
        return int(np.count_nonzero(self.weights))

    @property
    def bytes(self) -> int:
        """A weight and a place for each feature that matters."""
        return 12 * self.nonzeros

    @property
    def _by_list(self) -> bool:
        return self.list_scaling

    def _scores(self, queries: Queries) -> Floats:
        return scores(self._scaled(queries), self.weights)

    def _scaled(self, queries: Queries) -> Features:
        if not self.list_scaling:
            return queries.features
        from ranktune.solvers.data.list_scaling import scaled_by_list

        return scaled_by_list(queries.features, queries.starts)

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        return {"kind": "linear", "scaling": "list" if self.list_scaling else None}, {"weights": self.weights}

    @classmethod
    def read(cls, path: Path, content: Content) -> Self:
        """Return the model of the manifest at path. Raises ModelFormatError where it is not a linear one."""
        n_features = field_of(path, content, "n_features", int)
        scaling = field_of(path, content, "scaling", str, type(None))
        if scaling not in (None, "list"):
            raise ModelFormatError(
                f"{path} wants the scaling '{scaling[:40]}', which this RankTune does not know. Update it."
            )
        weights = read_numbers(path, content.get("weights"), n_features)
        return cls(weights=weights, list_scaling=scaling == "list", **common_fields(path, content, n_features))
