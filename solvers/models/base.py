"""Models as they are used and kept: scores from features, a file that any machine can read.

A model file holds format, version, kind, solver, parameters, n_features, feature_names, metric (what it was chosen
by), data (the fingerprint of what it was trained on), created, ranktune (the version that wrote it), and what its kind
adds: ranktune.solvers.models.linear, .tree_model and .blend_model. A new kind of model is a new entry in KINDS.
"""

from __future__ import annotations

import importlib.metadata
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, python_value
from ranktune.solvers.core.errors import DataError, ModelFormatError, nearest
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.files import read_manifest, read_names, write_manifest

Content: TypeAlias = Mapping[str, Any]
"""A manifest as it was read: nothing in it is trusted."""


class Model(ABC):
    """What is common to all kinds of models, each of which is a frozen dataclass.

    solver         the name of what learnt the model, with its parameters
    feature_names  n_features names, or None
    metric         what the model was chosen by, such as "ndcg@10"
    fingerprint    of the data that it was trained on
    created        when it was first saved, ISO 8601 in UTC
    version        of the RankTune that first saved it
    """

    solver: str
    parameters: Mapping[str, Value]
    feature_names: tuple[str, ...] | None
    metric: str | None
    fingerprint: str | None
    created: str | None
    version: str | None

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features that predict expects."""

    @property
    @abstractmethod
    def nonzeros(self) -> int:
        """Number of features that matter."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Room that its numbers take where it is served: 8 for a weight, threshold or leaf, 4 for a place."""

    @abstractmethod
    def _scores(self, queries: Queries) -> Floats:
        """Return the scores of the documents of queries, whose features are the model's, in the order of queries."""

    @abstractmethod
    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        """Return what this kind adds to the manifest, kind first, and the numbers that it keeps there or beside it."""

    @classmethod
    @abstractmethod
    def read(cls, path: Path, content: Content) -> Self:
        """Return the model of the manifest at path. Raises ModelFormatError where it is not one of this kind."""

    @property
    def _by_list(self) -> bool:
        """Whether scores depend on which documents are ranked together."""
        return False

    def _check_names(self, what: str) -> None:
        """Make the feature names a tuple of n_features texts, or raise DataError."""
        if self.feature_names is None:
            return
        object.__setattr__(self, "feature_names", tuple(str(name) for name in self.feature_names))
        if len(self.feature_names) != self.n_features:
            raise DataError(
                f"{len(self.feature_names)} feature names for {self.n_features} {what}s: give one a {what}."
            )

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the score of each row of X, (n_documents,), in the order of the rows; higher is better.

        X is an array, a scipy sparse matrix, a Queries, or a data frame. Named columns are found by name where the
        model knows its feature names, whatever their order and whatever else the frame holds. qid or group (as in
        fit; with neither, all rows are one query) matter only to models that scale the features of each query. Raises
        DataError for another number of features, a missing column, or values that are not finite.
        """
        if isinstance(X, Queries):
            queries = self._arranged(X)
        else:
            values = self._columns_of(X)
            if not sparse.issparse(values):
                values = np.asarray(values)
            if values.ndim == 2:
                self._check_width(values.shape[1])
                if values.shape[0] == 0:
                    return np.zeros(0)
            qid, group = (qid, group) if self._by_list else (None, None)
            queries = Queries.from_arrays(values, np.zeros(values.shape[0] if values.ndim else 0), qid=qid, group=group)
        return queries.in_caller_order(self._scores(queries))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to path, such as model.json; many numbers or names go into files beside it.

        A crash leaves the old file or the new one. Raises ModelFormatError for numbers that are not finite, OSError
        where path cannot be written.
        """
        own, numbers = self._content()
        content = {
            "kind": own["kind"],
            "solver": self.solver,
            "parameters": {str(name): python_value(value) for name, value in self.parameters.items()},
            "n_features": self.n_features,
            "feature_names": None,
            **own,
            "metric": self.metric,
            "data": self.fingerprint,
            "created": self.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "ranktune": self.version or installed_version(),
        }
        names = {} if self.feature_names is None else {"feature_names": self.feature_names}
        write_manifest(Path(path), content, numbers, names)

    def _arranged(self, queries: Queries) -> Queries:
        """Return queries with the model's features in the model's order."""
        names = queries.feature_names
        if names is None or self.feature_names is None or names == self.feature_names:
            self._check_width(queries.n_features)
            return queries
        places = self._places(names)
        features = queries.features[:, places]
        if not queries.is_sparse:
            features = np.ascontiguousarray(features)
        return replace(queries, features=features, feature_names=self.feature_names)

    def _columns_of(self, X: Any) -> Any:
        """Return the model's columns of a data frame in the model's order; anything else as it is."""
        columns = getattr(X, "columns", None)
        if columns is None or self.feature_names is None:
            return X
        labels = list(columns)
        places = self._places(tuple(str(label) for label in labels))
        return X[[labels[place] for place in places]]

    def _places(self, names: tuple[str, ...]) -> list[int]:
        """Return where each of the model's features is among names."""
        where = {name: place for place, name in enumerate(names)}
        wanted = self.feature_names or ()
        missing = [name for name in wanted if name not in where]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DataError(
                f"the model knows {len(wanted)} features by name, and the data have no column '{missing[0]}'{more}. "
                f"Name the columns as in training: {', '.join(wanted[:5])}{', ...' if len(wanted) > 5 else ''}."
            )
        repeated = [name for name in wanted if names.count(name) > 1] if len(where) < len(names) else []
        if repeated:
            raise DataError(f"the data have several columns '{repeated[0]}': keep one of them.")
        return [where[name] for name in wanted]

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features:
            raise DataError(
                f"X has {n_features} features, and the model was trained on {self.n_features}: "
                "give the same features in the same order."
            )


KINDS: Mapping[str, tuple[str, str]] = {
    "blend": ("models.blend", "BlendModel"),
    "linear": ("models.linear", "LinearModel"),
    "trees": ("models.tree_model", "TreeModel"),
}
"""Kind -> module and class, imported when a file of this kind is read."""


def load_model(path: str | os.PathLike[str]) -> Model:
    """Return the model that was saved at path. Runs no code from the file, and reads nothing outside its folder.

    Raises ModelFormatError for a file that is missing, damaged, not a model, or of a version or kind not known.
    """
    path = Path(path)
    content = read_manifest(path)
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelFormatError(f"{path} holds a model of kind {str(kind)[:40]!r}. {nearest(str(kind)[:40], KINDS)}")
    module, name = KINDS[kind]
    model = cast(type[Model], getattr(import_module(f"ranktune.solvers.{module}"), name))
    return model.read(path, content)


def common_fields(path: Path, content: Content, n_features: int) -> dict[str, Any]:
    """Return the fields of Model that the manifest at path holds. Raises ModelFormatError where they cannot be."""
    names = content.get("feature_names")
    parameters = field_of(path, content, "parameters", dict)
    if not all(isinstance(value, float | int | str | bool | None) for value in parameters.values()):
        raise ModelFormatError(f"{path}: parameters must be plain values. Save the model again.")
    return {
        "solver": field_of(path, content, "solver", str),
        "parameters": parameters,
        "feature_names": None if names is None else read_names(path, names, n_features),
        "metric": field_of(path, content, "metric", str, type(None)),
        "fingerprint": field_of(path, content, "data", str, type(None)),
        "created": field_of(path, content, "created", str, type(None)),
        "version": field_of(path, content, "ranktune", str, type(None)),
    }


def field_of(path: Path, content: Content, name: str, *types: type) -> Any:
    """Return a field of the manifest at path. Raises ModelFormatError where it is not exactly of one of the types."""
    value = content.get(name)
    if type(value) not in types:
        wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
        raise ModelFormatError(f"{path}: {name} is {str(value)[:40]!r}: it must be {wanted}. Save the model again.")
    return value


def installed_version() -> str | None:
    """Return the version of RankTune that is installed, None where it runs from a source tree that never was."""
    try:
        return importlib.metadata.version("ranktune")
    except importlib.metadata.PackageNotFoundError:
        return None


def this_version() -> str:
    """Return the version of RankTune that runs here."""
    return installed_version() or "of a source tree"
