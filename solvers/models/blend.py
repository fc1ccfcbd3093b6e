"""Models whose score is a weighted sum of the scores of other models.

However many the members are, what is served has three parts at most: the weights of all linear members added up, those
of all linear members that scale each query's features, and the trees of all members. Linear members of one kind alone
make one linear model, which costs what one costs. A model file of kind "blend" adds parts, a list of "linear", "list"
and "trees", with weights, list_weights, and trees, splits and arrays as ranktune.solvers.models.tree_model has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Content, Model, common_fields, field_of
from ranktune.solvers.models.files import read_numbers
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel, packed, unpacked
from ranktune.solvers.models.trees import joined

_PARTS = ("linear", "list", "trees")


@dataclass(frozen=True, eq=False)
class BlendModel(Model):
    """A score that is the sum of the scores of two or three models of different kinds: parts.

    The other fields are those of every Model. Raises DataError where the parts expect different features.
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
            raise DataError("the members of a blend expect different numbers of features: learn them on the same data.")
        self._check_names("feature")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return self.parts[0].n_features

    @property
    def nonzeros(self) -> int:
        """Number of features that any part looks at."""
        return len(np.unique(np.concatenate([_columns(part) for part in self.parts])))

    @property
    def bytes(self) -> int:
        """What the parts take."""
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
        content: dict[str, Any] = {"kind": "blend", "parts": [_part_of(part) for part in self.parts]}
        numbers = {}
        for part in self.parts:
            if isinstance(part, LinearModel):
                numbers["list_weights" if part.list_scaling else "weights"] = part.weights
            elif isinstance(part, TreeModel):
                counts, numbers["arrays"] = packed(part.trees)
                content |= counts
        return content, numbers

    @classmethod
    def read(cls, path: Path, content: Content) -> Self:
        """Return the model of the manifest at path. Raises ModelFormatError where it is not one of this kind."""
        n_features = field_of(path, content, "n_features", int)
        kinds = field_of(path, content, "parts", list)
        if not 2 <= len(kinds) <= len(_PARTS) or sorted(set(map(str, kinds))) != sorted(map(str, kinds)):
            raise ModelFormatError(f"{path} claims the parts {str(kinds)[:80]}: there must be two or three, each once.")
        common = common_fields(path, content, n_features)
        try:
            return cls(tuple(_read_part(path, content, kind, n_features, common) for kind in kinds), **common)
        except DataError as error:
            raise ModelFormatError(f"{path}: {error} Save the model again.") from None


def blended(members: Sequence[Model], factors: Sequence[float], solver: str, parameters: Mapping[str, Value]) -> Model:
    """Return the model whose score is the sum of the members' scores times their factors: a linear one if it can be.

    It is called solver, has parameters, and the origin (names, metric, data) of the first member. Raises DataError
    where there is no member or they expect different features.
    """
    if not members:
        raise DataError("a blend needs at least one model.")
    origin: dict[str, Any] = {
        name: getattr(members[0], name) for name in ("feature_names", "metric", "fingerprint", "version")
    }
    origin |= {"solver": solver, "parameters": dict(parameters)}
    by_part: dict[str, list[tuple[Model, float]]] = {}
    for member, factor in zip(members, factors, strict=True):
        pieces = member.parts if isinstance(member, BlendModel) else (member,)
        for piece in pieces:
            by_part.setdefault(_part_of(piece), []).append((piece, float(factor)))
    if len({member.n_features for member in members}) > 1:
        raise DataError("the members of a blend expect different numbers of features: learn them on the same data.")
    parts = tuple(_added(by_part[kind], origin) for kind in _PARTS if kind in by_part)
    return parts[0] if len(parts) == 1 else BlendModel(parts, **origin)


def _added(own: Sequence[tuple[Model, float]], origin: Mapping[str, Any]) -> Model:
    """Return the sum of models of one kind, times their factors."""
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


def _columns(part: Model) -> Any:
    return np.flatnonzero(part.weights) if isinstance(part, LinearModel) else part.trees.features  # type: ignore[attr-defined]


def _read_part(path: Path, content: Content, kind: object, n_features: int, common: Mapping[str, Any]) -> Model:
    if kind == "trees":
        return TreeModel(unpacked(path, content)[1], n_features, **common)
    if kind not in _PARTS:
        raise ModelFormatError(f"{path} has a part of kind {str(kind)[:40]!r}, which this RankTune does not know.")
    weights = read_numbers(path, content.get("list_weights" if kind == "list" else "weights"), n_features)
    return LinearModel(weights, list_scaling=kind == "list", **common)
