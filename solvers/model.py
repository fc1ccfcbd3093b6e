"""Models as they are used and kept: scores from features, a file that any machine can read.

A model file holds format, version, kind, solver, parameters, n_features, feature_names, scaling ("list" or null),
metric (what it was chosen by), data (the fingerprint of what it was trained on), created, ranktune (the version that
wrote it) and, for kind "linear", weights. A new kind of model is a new entry in KINDS.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers.arrays import Features, Floats
from ranktune.solvers.errors import DataError, ModelFormatError, nearest
from ranktune.solvers.model_files import read_manifest, read_names, read_numbers, write_manifest
from ranktune.solvers.products import scores
from ranktune.solvers.queries import Queries
from ranktune.solvers.space import Value


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A score that is a weighted sum of features.

    weights        (n_features,) float64
    solver         the name of what learnt them, with its parameters
    list_scaling   whether the features of each query are first divided by their range in it
    feature_names  n_features names, or None
    metric         what the model was chosen by, such as "ndcg@10"
    fingerprint    of the data that it was trained on
    created        when it was first saved, ISO 8601 in UTC
    version        of the RankTune that first saved it

    Raises DataError where weights are not a flat list of numbers or names do not fit them.
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
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", tuple(str(name) for name in self.feature_names))
            if len(self.feature_names) != len(weights):
                raise DataError(
                    f"{len(self.feature_names)} feature names for {len(weights)} weights: give one a weight."
                )

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return len(self.weights)

    @property
    def nonzeros(self) -> int:
        """Number of features that matter."""
        return int(np.count_nonzero(self.weights))

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the score of each row of X, (n_documents,), in the order of the rows; higher is better.

        X is an array, a scipy sparse matrix, a Queries, or a data frame. Named columns are found by name where the
        model knows its feature names, whatever their order and whatever else the frame holds. qid or group (as in
        fit; with neither, all rows are one query) matter only under list_scaling. Raises DataError for another number
        of features, a missing column, or values that are not finite.
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
            qid, group = (qid, group) if self.list_scaling else (None, None)
            queries = Queries.from_arrays(values, np.zeros(values.shape[0] if values.ndim else 0), qid=qid, group=group)
        return queries.in_caller_order(scores(self._scaled(queries), self.weights))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to path, such as model.json; many weights or names go into files beside it.

        A crash leaves the old file or the new one. Raises ModelFormatError for weights that are not finite, OSError
        where path cannot be written.
        """
        content = {
            "kind": "linear",
            "solver": self.solver,
            "parameters": {str(name): _plain(value) for name, value in self.parameters.items()},
            "n_features": self.n_features,
            "feature_names": None,
            "scaling": "list" if self.list_scaling else None,
            "metric": self.metric,
            "data": self.fingerprint,
            "created": self.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "ranktune": self.version or _version(),
        }
        names = {} if self.feature_names is None else {"feature_names": self.feature_names}
        write_manifest(Path(path), content, {"weights": self.weights}, names)

    def _scaled(self, queries: Queries) -> Features:
        if not self.list_scaling:
            return queries.features
        from ranktune.solvers.list_scaling import scaled_by_list

        return scaled_by_list(queries.features, queries.starts)

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


def load_model(path: str | os.PathLike[str]) -> LinearModel:
    """Return the model that was saved at path. Runs no code from the file, and reads nothing outside its folder.

    Raises ModelFormatError for a file that is missing, damaged, not a model, or of a version or kind not known.
    """
    path = Path(path)
    content = read_manifest(path)
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelFormatError(f"{path} holds a model of kind {str(kind)[:40]!r}. {nearest(str(kind)[:40], KINDS)}")
    return KINDS[kind](path, content)


def _read_linear(path: Path, content: Mapping[str, Any]) -> LinearModel:
    n_features = _field(path, content, "n_features", int)
    names = content.get("feature_names")
    scaling = _field(path, content, "scaling", str, type(None))
    if scaling not in (None, "list"):
        raise ModelFormatError(
            f"{path} wants the scaling '{scaling[:40]}', which this RankTune does not know. Update it."
        )
    parameters = _field(path, content, "parameters", dict)
    if not all(isinstance(value, float | int | str | bool | None) for value in parameters.values()):
        raise ModelFormatError(f"{path}: parameters must be plain values. Save the model again.")
    return LinearModel(
        weights=read_numbers(path, content.get("weights"), n_features),
        solver=_field(path, content, "solver", str),
        parameters=parameters,
        list_scaling=scaling == "list",
        feature_names=None if names is None else read_names(path, names, n_features),
        metric=_field(path, content, "metric", str, type(None)),
        fingerprint=_field(path, content, "data", str, type(None)),
        created=_field(path, content, "created", str, type(None)),
        version=_field(path, content, "ranktune", str, type(None)),
    )


KINDS: Mapping[str, Callable[[Path, Mapping[str, Any]], LinearModel]] = {"linear": _read_linear}
"""What reads each kind of model, from its path and checked content."""


def _field(path: Path, content: Mapping[str, Any], name: str, *types: type) -> Any:
    value = content.get(name)
    if type(value) not in types:
        wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
        raise ModelFormatError(f"{path}: {name} is {str(value)[:40]!r}: it must be {wanted}. Save the model again.")
    return value


def _plain(value: Any) -> Any:
    """Return a numpy scalar as the Python number it is."""
    return value.item() if isinstance(value, np.generic) else value


def _version() -> str | None:
    try:
        return importlib.metadata.version("ranktune")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return None
