"""Models whose score is a weighted sum of the scores of other models.

A blend of any number of members has a part for the sum of the linear members' weights, one for the sum of the weights
of linear members that scale each query's features, one for the trees of all members, and one for each estimator of a
solver that the user registered. Members of one of the first three kinds make one model of that kind. Trees that compare
the documents of a query take up those that do not. A model file of kind "blend" adds parts, a list of "linear", "list",
"trees" or "within", and "custom", with weights, list_weights, trees, splits and arrays as in
ranktune.solvers.models.tree_model, and what ranktune.solvers.models.within and .custom add.
Where missing values are allowed, missing_weights and missing_list_weights are what they add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ranktune.solvers.abilities import CUSTOM, LINEAR, LIST, MISSING_SIDES, MISSING_WEIGHTS, TREES, WITHIN
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Blobs, Fields, Model, Origin
from ranktune.solvers.models.custom import CustomModel, blobs_of, described, read_members
from ranktune.solvers.models.files import Content, field_of
from ranktune.solvers.models.linear import LinearModel, read_weights
from ranktune.solvers.models.tree_model import TreeModel, packed, unpacked
from ranktune.solvers.models.trees import Trees, joined
from ranktune.solvers.models.within import KINDS, WithinModel

_SUMS = (LINEAR, LIST, TREES, WITHIN)
"""Kinds of parts of which a blend has one at most."""
_PARTS = (*_SUMS, CUSTOM)
_TWO_OR_MORE = f"two or more, of the kinds {', '.join(_SUMS)} one each."
MAX_PARTS = 100


@dataclass(frozen=True, eq=False, repr=False)
class BlendModel(Model):
    """A model whose score is the sum of the scores of other models, its parts.

    The other fields are those of Model. Raises DataError where the parts expect different numbers of features.
    """

    parts: tuple[Model, ...]
    solver: str

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        kinds = [_part_of(part) for part in self.parts]
        if len(kinds) < 2 or not _are_parts(kinds):
            raise DataError(f"a blend of the parts {kinds}: give {_TWO_OR_MORE}")
        if len({part.n_features for part in self.parts}) > 1:
            raise DataError("the members of a blend expect different numbers of features: fit them on the same data.")
        self._check_origin("feature")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return self.parts[0].n_features

    @property
    def used_features(self) -> Ints:
        """The columns that influence the score of a part, ascending."""
        return np.unique(np.concatenate([part.used_features for part in self.parts]))

    def _violation(self, signs: Ints) -> int | None:
        violations = [part._violation(signs) for part in self.parts]
        return next((column for column in violations if column is not None), None)

    @property
    def bytes(self) -> int:
        """Memory of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def takes_missing(self) -> bool:
        """Whether features may be missing (NaN)."""
        return all(part.takes_missing for part in self.parts)

    @property
    def needs_queries(self) -> bool:
        """Whether a part compares the documents of a query."""
        return any(part.needs_queries for part in self.parts)

    @property
    def _by_list(self) -> bool:
        return any(part._by_list for part in self.parts)

    def _spread(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Fields:
        return {"parts": tuple(part.on_columns(columns, n_features, feature_names) for part in self.parts)}

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
                name = "list_weights" if part.list_scaling else "weights"
                arrays[name] = part.weights
                if part.missing is not None:
                    arrays[f"missing_{name}"] = part.missing
            elif isinstance(part, TreeModel):
                counts, arrays["arrays"] = packed(part.trees)
                content |= counts
            elif isinstance(part, WithinModel):
                of_trees, arrays_of_trees = part._content()
                content, arrays = {**of_trees, **content}, {**arrays, **arrays_of_trees}
        if self._custom:
            content |= described(self._custom)
        return content, arrays

    @property
    def _custom(self) -> list[CustomModel]:
        return [part for part in self.parts if isinstance(part, CustomModel)]

    def _blobs(self) -> Blobs:
        return blobs_of(self._custom)

    @classmethod
    def fields_of(
        cls, path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str] = ()
    ) -> Fields:
        """Return the parts, of the manifest at path."""
        kinds = field_of(path, content, "parts", list)
        if not 2 <= len(kinds) <= MAX_PARTS or not _are_parts(kinds):
            raise ModelFormatError(f"{path} claims the parts {str(kinds)[:80]}: there must be {_TWO_OR_MORE}")
        parts: list[Model] = []
        for kind in kinds:
            if kind == TREES:
                parts.append(TreeModel(unpacked(path, content), n_features, **origin))
            elif kind == WITHIN:
                parts.append(WithinModel(**WithinModel.fields_of(path, content, n_features, origin), **origin))
            elif kind != CUSTOM:
                name = "list_weights" if kind == LIST else "weights"
                weights, missing = read_weights(path, content, name, f"missing_{name}", n_features)
                parts.append(LinearModel(weights, list_scaling=kind == LIST, missing=missing, **origin))
        custom = read_members(path, content, n_features, origin, trust) if CUSTOM in kinds else ()
        if len(parts) + len(custom) != len(kinds):
            raise ModelFormatError(f"{path} has {len(custom)} custom parts, not those it claims.")
        return {"parts": (*parts, *custom)}


def blended(members: Sequence[Model], factors: Sequence[float], solver: str, parameters: Mapping[str, Value]) -> Model:
    """Return the model whose score is the sum of the members' scores times their factors, as simple as possible.

    It has the given solver and parameters, the monotone constraints that all members keep, and what else the first
    member knows of where it comes from.
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
        "encoding": first.encoding,
        "monotone": _common_constraints(members),
    }
    by_part: dict[str, list[tuple[Model, float]]] = {}
    custom: list[CustomModel] = []
    for member, factor in zip(members, factors, strict=True):
        pieces = member.parts if isinstance(member, BlendModel) else (member,)
        for piece in pieces:
            if isinstance(piece, CustomModel):
                custom.append(replace(piece.scaled(float(factor)), **origin))
            else:
                by_part.setdefault(_part_of(piece), []).append((piece, float(factor)))
    if len({member.n_features for member in members}) > 1:
        raise DataError("the members of a blend expect different numbers of features: fit them on the same data.")
    if WITHIN in by_part:
        by_part[WITHIN] = [*by_part.pop(TREES, []), *by_part[WITHIN]]
    parts = (*(_added(by_part[kind], origin) for kind in _SUMS if kind in by_part), *custom)
    return parts[0] if len(parts) == 1 else BlendModel(parts, **origin)


def _common_constraints(members: Sequence[Model]) -> dict[str, int]:
    """Return the monotone constraints that all members keep."""
    first, *others = (member.monotone.items() for member in members)
    return {name: sign for name, sign in first if all((name, sign) in other for other in others)}


def parts_of(model: Model) -> frozenset[str]:
    """Return the kinds of a model's parts: see `ranktune.solvers.abilities.IN_WORDS`."""
    return frozenset(map(_part_of, model.parts if isinstance(model, BlendModel) else (model,)))


def needs_of(model: Model) -> frozenset[str]:
    """Return what a format must hold to express a model: parts_of it, and what it knows of missing values."""
    needs = set(parts_of(model))
    for part in model.parts if isinstance(model, BlendModel) else (model,):
        if isinstance(part, LinearModel) and part.missing is not None and part.missing.any():
            needs.add(MISSING_WEIGHTS)
        elif (trees := trees_in(part)) is not None and trees.knows_missing:
            needs.add(MISSING_SIDES)
    return frozenset(needs)


def _added(weighted: Sequence[tuple[Model, float]], origin: Origin) -> Model:
    """Return the sum of models of one kind times their factors."""
    first = weighted[0][0]
    if isinstance(first, LinearModel):
        linear = [(model, factor) for model, factor in weighted if isinstance(model, LinearModel)]
        weights = np.sum([factor * model.weights for model, factor in linear], axis=0)
        added = [factor * model.missing for model, factor in linear if model.missing is not None]
        missing = np.sum(added, axis=0) if len(added) == len(linear) else None
        return LinearModel(weights, list_scaling=first.list_scaling, missing=missing, **origin)
    of_all = [(trees_in(model), factor) for model, factor in weighted]
    trees = joined([trees.scaled(factor) for trees, factor in of_all if trees is not None])
    if isinstance(weighted[-1][0], WithinModel):  # its first columns are the features
        return WithinModel(TreeModel(trees, len(KINDS) * first.n_features, ""), **origin)
    return TreeModel(trees, first.n_features, **origin)


def trees_in(part: Model) -> Trees | None:
    """Return the trees of a part of a blend, whose columns are features or what is made of them; None without any."""
    part = part.inner if isinstance(part, WithinModel) else part
    return part.trees if isinstance(part, TreeModel) else None


def _part_of(model: Model) -> str:
    if isinstance(model, LinearModel):
        return LIST if model.list_scaling else LINEAR
    if isinstance(model, TreeModel):
        return TREES
    if isinstance(model, WithinModel):
        return WITHIN
    if isinstance(model, CustomModel):
        return CUSTOM
    raise DataError(f"a {type(model).__name__} cannot be part of a blend: give linear models and trees.")


def _are_parts(kinds: Sequence[object]) -> bool:
    """Return whether kinds are those of parts of a blend."""
    is_blend = all(kind in _PARTS for kind in kinds) and not {TREES, WITHIN} <= set(map(str, kinds))
    return is_blend and all(kinds.count(kind) <= 1 for kind in _SUMS)
