"""What every export writes: the features that matter by name, weights, trees, numbers as the target will read them.

Columns are counted from 0, numbers of features in the formats that number them from 1. A feature of a model without
names is called f1, f2, ... by its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees

DEEPEST = 200
"""Formats that write a tree inside its parent are read by parsers with a limit of their own, from 500 levels on."""
LONGEST = 120
"""Identifiers made of a name are at most this long; a longer name gives way to its number."""
BESIDE = (
    "In the folder models beside its model.json, a study keeps the model of each solver, and LinearBlend.json where it "
    "blended linear ones."
)
"""Where whoever has a model that a format cannot hold finds others."""


@dataclass(frozen=True, eq=False)
class Source:
    """A model on its way out.

    format    where to, a name of ranktune.solvers.export.formats.FORMATS
    name      what the target calls the model
    store     Solr's feature store
    columns   (n_used,) those that matter, rising; the first where none does, since formats want at least one
    names     (n_used,) what their features are called, no two alike
    weights   (n_used,) float64, 0 for features that only trees look at; None for a model of trees
    trees     with columns as they are in the model; None for a linear model

    The score is the sum of what the two give; a source has at least one of them.
    """

    model: Model
    format: str
    name: str
    store: str
    columns: Ints
    names: tuple[str, ...]
    weights: Floats | None
    trees: Trees | None

    @property
    def title(self) -> str:
        """One line that says what this is."""
        chosen = f", chosen by {self.model.metric}" if self.model.metric else ""
        return f"{self.name}: {self.model.solver}, {len(self.columns)} of {self.model.n_features} features{chosen}"

    def weighted(self) -> list[tuple[int, float]]:
        """Return the weights with their places among the columns; beside trees without those that are 0."""
        if self.weights is None:
            return []
        pairs = enumerate(self.weights.tolist())
        return [(place, weight) for place, weight in pairs if weight != 0.0 or self.trees is None]

    def place(self) -> NDArray[np.int64]:
        """Return where each column is among those that matter, (n_features,); -1 for the others."""
        place = np.full(self.model.n_features, -1)
        place[self.columns] = np.arange(len(self.columns))
        return place


def source_of(model: Model, format: str, name: str, store: str) -> Source:
    """Return what is to be written of model.

    Raises ParameterError for a model that scores no document by itself, or whose numbers are not finite.
    """
    weights, trees = _parts(model)
    used = np.zeros(0, dtype=np.int64) if weights is None else np.flatnonzero(weights)
    if trees is not None:
        used = np.union1d(used, trees.features)
    if weights is not None and not np.isfinite(weights).all():  # of trees they always are
        raise ParameterError("the model holds numbers that are not finite: no format can hold them. Train it anew.")
    columns = used.astype(np.int64) if len(used) else np.zeros(1, dtype=np.int64)
    own = None if weights is None else weights[columns]
    return Source(model, format, name, store, columns, _names(model, columns), own, trees)


def _parts(model: Model) -> tuple[Floats | None, Trees | None]:
    """Return all weights of a model, (n_features,), and its trees."""
    weights, trees = None, None
    for part in model.parts if isinstance(model, BlendModel) else (model,):
        if isinstance(part, LinearModel) and not part.list_scaling:
            weights = part.weights
        elif isinstance(part, TreeModel):
            trees = part.trees
        elif isinstance(part, LinearModel):
            raise ParameterError(
                "the model divides each feature by its range among the documents of the query, and exported models "
                'score one document at a time. Train with another scaling than "list", or serve this one by '
                f"ranktune.load_model and predict. {BESIDE}"
            )
        else:
            raise ParameterError(
                f"a {type(part).__name__} cannot be exported: only linear models, models of trees and their sums can. "
                "Serve it by ranktune.load_model and predict."
            )
    return weights, trees


def _names(model: Model, columns: Ints) -> tuple[str, ...]:
    if model.feature_names is None:
        return tuple(f"f{column + 1}" for column in columns.tolist())
    return tuple(model.feature_names[column] for column in columns.tolist())


def check_distinct(source: Source) -> None:
    """Raise ParameterError where two features share a name, for a format that tells them apart by it."""
    if len(set(source.names)) < len(source.names):
        twice = next(name for place, name in enumerate(source.names) if name in source.names[:place])
        others = "onnx, ranklib or liblinear, which go" if source.trees is None else "onnx, which goes"
        raise ParameterError(
            f"two features are called {twice[:60]!r}, and {source.format} tells features apart by name. Name them "
            f"apart and train again, or export to {others} by number."
        )


def check_single(source: Source, numbers: Floats) -> None:
    """Raise ParameterError where numbers would overflow or vanish in single precision, for a format that uses it."""
    largest = float(np.abs(numbers).max(initial=0.0))
    most, least = (float(limit) for limit in (np.finfo(np.float32).max, np.finfo(np.float32).tiny))
    if largest > most or 0.0 < largest < least:
        raise ParameterError(
            f"the largest number of the model is {largest:g}, and {source.format} computes in single precision, from "
            f"{least:.2g} to {most:.2g}. Scale the features and train again, or export to json, python, "
            "pmml or vespa, which keep double precision."
        )


def single_thresholds(source: Source) -> NDArray[np.float32]:
    """Return the largest single-precision numbers not above the thresholds: x <= t is the same for every such x."""
    trees = source.trees
    assert trees is not None
    with np.errstate(over="ignore"):
        rounded = trees.threshold.astype(np.float32)
        lower = np.nextafter(rounded, np.float32(-np.inf))
    found = np.where(rounded.astype(np.float64) > trees.threshold, lower, rounded)
    if not np.isfinite(found).all() or (found == np.finfo(np.float32).max).any():
        worst = float(trees.threshold[np.argmax(np.abs(trees.threshold))])
        raise ParameterError(
            f"a tree splits at {worst:g}, and {source.format} compares in single precision, up to 3.4e+38. Scale the "
            "features and train again, or export to json, python, pmml or vespa, which keep double precision."
        )
    return found


def check_depth(source: Source) -> None:
    """Raise ParameterError where a tree is deeper than parsers of nested text go."""
    trees = source.trees
    assert trees is not None
    depth = np.ones(trees.n_splits, dtype=np.int64)
    for split, (left, right) in enumerate(trees.children.tolist()):
        for child in (left, right):
            if child >= 0:
                depth[child] = depth[split] + 1
    if depth.max(initial=0) > DEEPEST:
        raise ParameterError(
            f"a tree is {depth.max()} splits deep, and {source.format} writes nodes inside each other, at most "
            f"{DEEPEST} deep. Train with fewer leaves, or export to onnx, json or python, which take any depth."
        )


def nested(trees: Trees, tree: int, split: Callable[[int, Any, Any], Any], leaf: Callable[[float], Any]) -> Any:
    """Return a tree put together from below: split(number, left, right) and leaf(value) make its parts."""
    first, last = int(trees.starts[tree]), int(trees.starts[tree + 1])
    if first == last:
        return leaf(float(trees.value[first + tree]))
    made: dict[int, Any] = {}
    for number in range(last - 1, first - 1, -1):
        left, right = (
            made.pop(child) if child >= 0 else leaf(float(trees.value[~child]))
            for child in trees.children[number].tolist()
        )
        made[number] = split(number, left, right)
    return made[first]


def escaped(name: str, column: int, legal: str) -> str:
    """Return name with every character that the regular expression legal does not match as _x41_, its code.

    No two names become the same: an underscore that would look like the begin of such a code becomes one itself, and a
    name that grows too long becomes _xn and its number.
    """
    if len(name) <= LONGEST:
        made = re.sub(r"_(?=x[0-9a-fn])|" + f"(?!{legal}).", lambda found: f"_x{ord(found[0]):x}_", name, flags=re.S)
        if 0 < len(made) <= LONGEST:
            return made
    return f"_xn{column + 1}_"
