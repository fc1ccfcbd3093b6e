"""Models whose score is a weighted sum of the scores of other models.

A blend of any number of members has at most three parts: the sum of the linear members' weights, the sum of the weights
of linear members that scale each query's features, and the trees of all members. Members of one kind make one model of
that kind. A model file of kind "blend" adds parts, a list of "linear", "list" and "trees", with weights, list_weights,
and trees, splits and arrays as in ranktune.solvers.models.tree_model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Content, Model, Origin, field_of, origin_of
from ranktune.solvers.models.files import read_numbers
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel, packed, unpacked
from ranktune.solvers.models.trees import joined

_PARTS = ("linear", "list", "trees")


@dataclass(frozen=True, eq=False)
class BlendModel(Model):
    """A model whose score is the sum of the scores of two or three models of different kinds, its parts.

    The other fields are those of Model. Raises DataError where the parts expect different numbers of features.
    """

    parts: tuple[Model, ...]
    solver: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    metric: str | None = None
    fingerprint: str | None = None
    created: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        """Check that the parts are of different kinds and fit together."""
        kinds = [_part_of(part) for part in self.parts]
        if len(kinds) < 2 or len(set(kinds)) < len(kinds):
            raise DataError(f"a blend of the parts {kinds}: give two or three of different kinds.")
        if len({part.n_features for part in self.parts}) > 1:
            raise DataError("the members of a blend expect different numbers of features: fit them on the same data.")
        self._check_names("feature")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return self.parts[0].n_features

    @property
    def used_features(self) -> Ints:
        """The columns that influence the score of a part, ascending."""
        return np.unique(np.concatenate([part.used_features for part in self.parts]))

    @property
    def bytes(self) -> int:
        """Memory of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def _by_list(self) -> bool:
        return any(part._by_list for part in self.parts)

    def _scores(self, queries: Queries) -> Floats:
        total = np.zeros(queries.n_documents)
        for part in self.parts:
            total += part._scores(queries)
        return total

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        content: dict[str, object] = {"kind": "blend", "parts": [_part_of(part) for part in self.parts]}
        arrays = {}
        for part in self.parts:
            if isinstance(part, LinearModel):
                arrays["list_weights" if part.list_scaling else "weights"] = part.weights
            elif isinstance(part, TreeModel):
                counts, arrays["arrays"] = packed(part.trees)
                content |= counts
        return content, arrays

    @classmethod
    def read(cls, path: Path, content: Content) -> Self:
        """Return the model of the manifest at path. Raises ModelFormatError where it is not one of this kind."""
        n_features = field_of(path, content, "n_features", int)
        kinds = field_of(path, content, "parts", list)
        if not 2 <= len(kinds) <= len(_PARTS) or sorted(set(map(str, kinds))) != sorted(map(str, kinds)):
            raise ModelFormatError(f"{path} claims the parts {str(kinds)[:80]}: there must be two or three, each once.")
        origin = origin_of(path, content, n_features)
        try:
            return cls(tuple(_read_part(path, content, kind, n_features, origin) for kind in kinds), **origin)
        except DataError as error:
            raise ModelFormatError(f"{path}: {error} Save the model again.") from None


def blended(members: Sequence[Model], factors: Sequence[float], solver: str, parameters: Mapping[str, Value]) -> Model:
    """Return the model whose score is the sum of the members' scores times their factors, as simple as possible.

    It has the given solver and parameters, and the feature names, metric, fingerprint and version of the first member.
    Raises DataError where there is no member or they expect different numbers of features.
    """
    if not members:
        raise DataError("a blend needs at least one model.")
    first = members[0]
    origin: Origin = {
        "solver": solver,
        "parameters": dict(parameters),
        "feature_names": first.feature_names,
        "metric": first.metric,
        "fingerprint": first.fingerprint,
        "version": first.version,
    }
    by_part: dict[str, list[tuple[Model, float]]] = {}
    for member, factor in zip(members, factors, strict=True):
        pieces = member.parts if isinstance(member, BlendModel) else (member,)
        for piece in pieces:
            by_part.setdefault(_part_of(piece), []).append((piece, float(factor)))
    if len({member.n_features for member in members}) > 1:
        raise DataError("the members of a blend expect different numbers of features: fit them on the same data.")
    parts = tuple(_added(by_part[kind], origin) for kind in _PARTS if kind in by_part)
    return parts[0] if len(parts) == 1 else BlendModel(parts, **origin)


def _added(own: Sequence[tuple[Model, float]], origin: Origin) -> Model:
    """Return the sum of models of one kind times their factors."""
    first = own[0][0]
    if isinstance(first, LinearModel):
        weights = np.sum([factor * model.weights for model, factor in own if isinstance(model, LinearModel)], axis=0)
        return LinearModel(weights, list_scaling=first.list_scaling, **origin)
    assert isinstance(first, TreeModel)
    trees = joined([model.trees.scaled(factor) for model, factor in own if isinstance(model, TreeModel)])
    return TreeModel(trees, first.columns, **origin)


def _part_of(model: Model) -> str:
    if isinstance(model, LinearModel):
        return "list" if model.list_scaling else "linear"
    if isinstance(model, TreeModel):
        return "trees"
    raise DataError(f"a {type(model).__name__} cannot be part of a blend: give linear models and trees.")


def _read_part(path: Path, content: Content, kind: object, n_features: int, origin: Origin) -> Model:
    if kind == "trees":
        return TreeModel(unpacked(path, content)[1], n_features, **origin)
    if kind not in _PARTS:
        raise ModelFormatError(f"{path} has a part of kind {str(kind)[:40]!r}, unknown to this RankTune.")
    weights = read_numbers(path, content.get("list_weights" if kind == "list" else "weights"), n_features)
    return LinearModel(weights, list_scaling=kind == "list", **origin)
