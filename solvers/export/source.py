"""What all writers share: the used features by name, weights, trees, and the checks of what a format can hold.

Columns are counted from 0; formats that number features count from 1. The features of a model without names are called
f1, f2, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.abilities import LINEAR, TREES, WITHIN
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import ANY_VALUE, Trees
from ranktune.solvers.models.within import KINDS, WithinModel

MAX_DEPTH = 200
"""Splits above each other in formats that nest a node in its parent: their parsers stop at 500 levels or more."""
MAX_IDENTIFIER = 120
"""Characters of an identifier made of a feature's name; a longer name is replaced by the number of the feature."""
IN_DOUBLE = "json, python, pmml or vespa, which keep double precision"
OTHER_MODELS = (
    "In the folder models beside its model.json, a study keeps the model of each solver, and LinearBlend.json where it "
    "blended linear ones."
)

Node = TypeVar("Node")
Singles: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """A model as writers see it; its score is the sum of weighted features and trees, of which it has at least one.

    format    the target, a name of ranktune.solvers.formats.FORMATS
    name      the name of the model in the target system
    store     Solr's feature store
    columns   (n_used,) the columns that influence a score, ascending; at least one, since formats require it
    names     (n_used,) the names of these features
    weights   (n_used,) float64, 0 for features that only trees use; None for a model of trees
    trees     with columns as in the model; None for a linear model
    missing   (n_used,) float64, what a missing value adds to the weighted sum; None where it adds nothing
    kinds     what trees compare within queries: kinds of `ranktune.solvers.models.within`, without the value;
              None for a model that scores each document by itself
    asks_zero whether the model asks the engine to take what a document lacks for 0
    """

    model: Model
    format: str
    name: str
    store: str
    columns: Ints
    names: tuple[str, ...]
    weights: Floats | None
    trees: Trees | None
    missing: Floats | None = None
    kinds: tuple[str, ...] | None = None
    asks_zero: bool = False

    @property
    def parts(self) -> frozenset[str]:
        """The kinds of what is written: weights, trees, trees that compare documents."""
        kinds = ((LINEAR, self.weights), (TREES if self.kinds is None else WITHIN, self.trees))
        return frozenset(kind for kind, part in kinds if part is not None)

    @property
    def title(self) -> str:
        """A description in one line."""
        chosen = f", chosen by {self.model.metric}" if self.model.metric else ""
        return f"{self.name}: {self.model.solver}, {len(self.columns)} of {self.model.n_features} features{chosen}"

    def weighted(self) -> list[tuple[int, float]]:
        """Return the weights with their positions among the columns; in blends without zeros."""
        if self.weights is None:
            return []
        pairs = enumerate(self.weights.tolist())
        return [
            (position, weight)
            for position, weight in pairs
            if weight != 0.0 or self.added(position) != 0.0 or self.trees is None
        ]

    def added(self, position: int) -> float:
        """Return what a missing value of the feature at that position adds to the weighted sum."""
        return 0.0 if self.missing is None else float(self.missing[position])

    def sides(self) -> list[bool] | None:
        """Return whether each split sends a missing value left; None where each sends it where 0 goes.

        Trees that compare documents leave missing values out, so that these are never 0 if they learned from any.
        """
        trees = self.trees
        if trees is None or trees.missing_left is None or not (trees.knows_missing or self.kinds is not None):
            return None
        sides: list[bool] = trees.missing_left.tolist()
        return sides

    def all_sides(self) -> list[bool]:
        """Return whether each split sends a missing value left, which is the side of 0 where none was learned."""
        return [] if self.trees is None else self.sides() or self.trees.zero_left.tolist()

    @property
    def knows_missing(self) -> bool:
        """Whether a missing value of some feature is something else than 0."""
        return self.missing is not None or self.sides() is not None

    def is_zero_where_missing(self) -> list[bool]:
        """Return whether a missing value of each feature counts as 0, (n_used,): if no training document lacked it."""
        zeros = np.ones(len(self.names), dtype=np.bool_) if self.missing is None else self.missing == 0.0
        if self.trees is not None and self.trees.missing_left is not None:
            zeros[self.positions()[self.trees.missing_left != self.trees.zero_left]] = False
        return zeros.tolist()

    def differing(self) -> list[str]:
        """Return the names of the features of which a missing value is something else than 0."""
        return [name for name, is_zero in zip(self.names, self.is_zero_where_missing(), strict=True) if not is_zero]

    def positions(self) -> Ints:
        """Return the position among the columns of what each split compares, (n_splits,).

        After the n_used features stand n_used columns of each kind, which are made of them.
        """
        if self.trees is None:
            return np.zeros(0, np.int64)
        kind, feature = np.divmod(self.trees.feature, self.model.n_features)
        place = np.array([0, *(k in (self.kinds or ()) for k in KINDS[1:])]).cumsum()
        return place[kind] * len(self.columns) + np.searchsorted(self.columns, feature)

    def nested(self, split: Callable[[int, int, Node, Node], Node], leaf: Callable[[float], Node]) -> list[Node]:
        """Return one node for each tree, built from the leaves up: split(number, position, left, right), leaf(value).

        Raises ParameterError where a tree is too deep for parsers of nested text.
        """
        if self.trees is None:
            return []
        _check_depth(self, self.trees)
        positions, children = self.positions().tolist(), self.trees.children.tolist()
        nodes: dict[int, Node] = {~k: leaf(value) for k, value in enumerate(self.trees.value.tolist())}
        for number in range(self.trees.n_splits - 1, -1, -1):
            left, right = (nodes.pop(child) for child in children[number])
            nodes[number] = split(number, positions[number], left, right)
        starts = self.trees.starts.tolist()
        return [nodes[a if a < b else ~(a + t)] for t, (a, b) in enumerate(pairwise(starts))]


def source_of(model: Model, format: str, name: str, store: str) -> ExportedModel:
    """Return the content of model for a writer.

    Raises ParameterError for a model that no format holds, or whose weights are not finite.
    """
    linear, trees, kinds = _parts(model)
    weights = None if linear is None else linear.weights
    missing = None if linear is None or linear.missing is None or not linear.missing.any() else linear.missing
    if not all(numbers is None or np.isfinite(numbers).all() for numbers in (weights, missing)):
        raise ParameterError("the model holds numbers that are not finite: no format can hold them. Fit it again.")
    columns = model.used_features if model.nonzeros else np.zeros(1, dtype=np.int64)
    names = tuple(model.feature_names[k] if model.feature_names else f"f{k + 1}" for k in columns.tolist())
    used_weights, used_missing = (None if part is None else part[columns] for part in (weights, missing))
    return ExportedModel(model, format, name, store, columns, names, used_weights, trees, used_missing, kinds)


def _parts(model: Model) -> tuple[LinearModel | None, Trees | None, tuple[str, ...] | None]:
    """Return the linear part of a model, its trees, and the kinds of columns that these compare within queries."""
    linear, trees, kinds = None, None, None
    for part in model.parts if isinstance(model, BlendModel) else (model,):
        if isinstance(part, LinearModel) and not part.list_scaling:
            linear = part
        elif isinstance(part, TreeModel):
            trees = part.trees
        elif isinstance(part, WithinModel):
            trees = part.inner.trees
            kinds = tuple(KINDS[k] for k in np.unique(part.inner.used_features // part.n_features) if k)
        elif isinstance(part, LinearModel):
            raise ParameterError(
                "the model divides each feature by its range among the documents of the query, and exported models "
                'score one document at a time. Train with another scaling than "list", or serve this one by '
                f"ranktune.load_model and predict. {OTHER_MODELS}"
            )
        else:
            raise ParameterError(
                f"a {type(part).__name__} cannot be exported: only linear models, models of trees and their sums can. "
                "Serve it by ranktune.load_model and predict."
            )
    return linear, trees, kinds


def check_distinct(source: ExportedModel) -> None:
    """Raise ParameterError where two features share a name, for a format that identifies features by name."""
    if len(set(source.names)) < len(source.names):
        twice = next(name for name in source.names if source.names.count(name) > 1)
        others = (
            "onnx, ranklib or liblinear, which go" if source.trees is None else "onnx, ranklib or lightgbm, which go"
        )
        raise ParameterError(
            f"two features are called {twice[:60]!r}, and {source.format} identifies features by name. Give them "
            f"different names and train again, or export to {others} by number."
        )


def check_single(source: ExportedModel, numbers: Floats) -> None:
    """Raise ParameterError where numbers would overflow or vanish in single precision, for a format that uses it."""
    largest = float(np.abs(numbers).max(initial=0.0))
    low, high = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
    if largest > high or 0.0 < largest < low:
        raise ParameterError(
            f"the largest number of the model is {largest:g}, and {source.format} computes in single precision, from "
            f"{low:.2g} to {high:.2g}. Scale the features and train again, or export to {IN_DOUBLE}."
        )


def single_thresholds(source: ExportedModel, trees: Trees) -> Singles:
    """Return the largest single-precision numbers not above the thresholds: x <= t is the same for every such x."""
    largest = np.nextafter(np.finfo(np.float32).max, np.float32(0.0))
    with np.errstate(over="ignore"):
        rounded = trees.threshold.astype(np.float32)
        lower = np.nextafter(rounded, np.float32(-np.inf))
    singles = np.where(rounded.astype(np.float64) > trees.threshold, lower, rounded)
    singles = np.where(np.abs(trees.threshold) >= ANY_VALUE, np.copysign(largest, rounded), singles)
    if not np.isfinite(singles).all() or (singles == np.finfo(np.float32).max).any():
        worst = float(trees.threshold[np.argmax(np.abs(trees.threshold))])
        raise ParameterError(
            f"a tree splits at {worst:g}, and {source.format} compares in single precision, up to 3.4e+38. Scale the "
            f"features and train again, or export to {IN_DOUBLE}."
        )
    return singles


def _check_depth(source: ExportedModel, trees: Trees) -> None:
    """Raise ParameterError where a tree is too deep for parsers of nested text."""
    depth = np.ones(trees.n_splits, dtype=np.int64)
    for split, (left, right) in enumerate(trees.children.tolist()):
        for child in (left, right):
            if child >= 0:
                depth[child] = depth[split] + 1
    if depth.max(initial=0) > MAX_DEPTH:
        raise ParameterError(
            f"a tree is {depth.max()} splits deep, and {source.format} writes nodes inside each other, at most "
            f"{MAX_DEPTH} deep. Train with fewer leaves, or export to onnx, json or python, which take any depth."
        )


def escaped(name: str, column: int, legal: str) -> str:
    """Return name with the code, such as _x41_, of each character that the regular expression legal does not match.

    Different names stay different: an underscore that would look like the start of a code is replaced too, and a name
    that becomes too long is replaced by _xn and its number.
    """
    if len(name) <= MAX_IDENTIFIER:
        text = re.sub(r"_(?=x[0-9a-fn])|" + f"(?!{legal}).", lambda match: f"_x{ord(match[0]):x}_", name, flags=re.S)
        if 0 < len(text) <= MAX_IDENTIFIER:
            return text
    return f"_xn{column + 1}_"
