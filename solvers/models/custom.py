"""Models of solvers that the user registered: an estimator of any library, with functions that save and load it.

A model file of kind "custom" adds owners, factors, and for the member k custom_k, the file that save wrote. owners are
the names of the solvers whose functions save and load them. A blend has several members. inputs, if present, has
for each member the columns that its estimator takes, null for all.

The file does not say which code loads it: that is the solver registered under the owner's name in this process.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.core.registrations import Registration, find
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models import skops as skops_files
from ranktune.solvers.models.base import Blobs, Fields, Model, Origin
from ranktune.solvers.models.files import SAVE_AGAIN, Content, field_of, read_blob

Estimator: TypeAlias = Any
"""A ranker of any library, by the conventions of scikit-learn."""
File: TypeAlias = bytes
"""What the save of a solver writes."""


class Persistence(NamedTuple):
    """save(estimator, path) writes a fitted estimator to a file, and load(path) reads it."""

    save: Callable[[Estimator, Path], object]
    load: Callable[[Path], Estimator]


def persistence(registration: Registration) -> Persistence | None:
    """Return the functions that save and load the models of a solver; None if nothing loads them."""
    if registration.save == "skops":
        return Persistence(partial(skops_files.save, registration), partial(skops_files.load, registration))
    make = registration.make
    kind = make if isinstance(make, type) else type(make)
    save, load = registration.save or _save_itself, registration.load or getattr(kind, "load", None)
    return Persistence(save, load) if callable(save) and callable(load) else None


def _save_itself(estimator: Estimator, path: Path) -> None:
    estimator.save(path)


@dataclass(frozen=True, eq=False, repr=False)
class CustomModel(Model):
    """A model whose score is a factor times what the predict of an estimator returns.

    owner is the name of the registered solver, solver may be that of a blend. inputs, (n_inputs,), are the columns that
    the estimator takes, ascending, None for all. The other fields are those of Model.
    """

    estimator: Estimator
    columns: int
    owner: str
    solver: str
    factor: float = 1.0
    inputs: Ints | None = None

    def __post_init__(self) -> None:
        """Check that the names fit."""
        self._check_origin("feature")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return self.columns

    @property
    def used_features(self) -> Ints:
        """All columns that the estimator takes: what it uses of them is not known."""
        return np.arange(self.columns) if self.inputs is None else self.inputs

    def _violation(self, signs: Ints) -> int | None:
        return None  # its scores alone can tell: ranktune.solvers.custom verifies them when it is fitted

    @property
    def bytes(self) -> int:
        """The size of what save writes."""
        return len(self.saved)

    @property
    def takes_missing(self) -> bool:
        """Whether features may be missing (NaN): the estimator gets them as they are."""
        return True

    @property
    def _by_list(self) -> bool:
        return takes_queries(self.estimator)

    def scaled(self, factor: float) -> Self:
        """Return the model with its scores multiplied by factor."""
        return replace(self, factor=self.factor * factor)

    def _scores(self, queries: Queries) -> Floats:
        named = replace(queries, feature_names=self.feature_names, encoding=self.encoding, features_checked=True)
        return self.factor * estimator_scores(self.estimator, named.with_columns(self.inputs))

    def _spread(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Fields:
        return {"columns": n_features, "inputs": columns if self.inputs is None else columns[self.inputs]}

    @cached_property
    def saved(self) -> File:
        """The file that save writes."""
        save, _ = _persistence(self.owner)
        with tempfile.TemporaryDirectory(prefix="ranktune-") as folder:
            path = Path(folder) / "model"
            save(self.estimator, path)
            if not path.is_file():
                others = ", ".join(sorted(entry.name for entry in Path(folder).iterdir())) or "nothing"
                raise ModelFormatError(
                    f"the save of '{self.owner}' was given the path {path} and wrote {others}: it must write one file "
                    "of exactly that path."
                )
            return path.read_bytes()

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        return {"kind": "custom", **described([self])}, {}

    def _blobs(self) -> Blobs:
        return blobs_of([self])

    @classmethod
    def fields_of(
        cls, path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str] = ()
    ) -> Fields:
        """Return the estimator and what belongs to it, of the manifest at path."""
        members = read_members(path, content, n_features, origin, trust)
        if len(members) != 1:
            raise ModelFormatError(f"{path} claims {len(members)} estimators: there must be one. {SAVE_AGAIN}")
        return {name: getattr(members[0], name) for name in cls.__dataclass_fields__ if name not in origin}


def described(models: Sequence[CustomModel]) -> dict[str, object]:
    """Return what a manifest says of models besides their files."""
    about: dict[str, object] = {
        "owners": [model.owner for model in models],
        "factors": [float(model.factor) for model in models],
    }
    if any(model.inputs is not None for model in models):
        about["inputs"] = [None if model.inputs is None else model.inputs.tolist() for model in models]
    return about


def blobs_of(models: Sequence[CustomModel]) -> Blobs:
    """Return the files of models by key of the manifest."""
    return {f"custom_{k}": model.saved for k, model in enumerate(models)}


def read_members(
    path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str]
) -> tuple[CustomModel, ...]:
    """Return the models that the manifest at path describes; trust is that of load_model.

    Raises ModelFormatError where one is damaged, or of a solver that is not registered.
    """
    owners = field_of(path, content, "owners", list)
    factors = field_of(path, content, "factors", list)
    if len(owners) != len(factors) or not all(isinstance(owner, str) for owner in owners):
        raise ModelFormatError(f"{path}: owners must be names, with a factor each. {SAVE_AGAIN}")
    if not all(type(factor) is float for factor in factors):
        raise ModelFormatError(f"{path}: factors must be numbers. {SAVE_AGAIN}")
    inputs = _inputs(path, content, len(owners), n_features)
    models = []
    for k, (owner, factor) in enumerate(zip(owners, factors, strict=True)):
        estimator = _loaded(path, owner, read_blob(path, content.get(f"custom_{k}")), trust)
        models.append(CustomModel(estimator, n_features, owner, factor=factor, inputs=inputs[k], **origin))
    return tuple(models)


def _inputs(path: Path, content: Content, count: int, n_features: int) -> list[Ints | None]:
    """Return the columns that each estimator takes, None for all. Raises ModelFormatError where they cannot be."""
    inputs = content.get("inputs")
    if inputs is None:
        return [None] * count
    if not isinstance(inputs, list) or len(inputs) != count:
        raise ModelFormatError(f"{path}: inputs must have an entry for each estimator. {SAVE_AGAIN}")
    for columns in inputs:
        valid = columns is None or (
            isinstance(columns, list)
            and all(type(column) is int and 0 <= column < n_features for column in columns)
            and columns == sorted(set(columns))
            and columns
        )
        if not valid:
            raise ModelFormatError(
                f"{path}: inputs must be null or rising numbers of the {n_features} columns. {SAVE_AGAIN}"
            )
    return [None if columns is None else np.array(columns, dtype=np.int64) for columns in inputs]


def _loaded(path: Path, owner: str, data: bytes, trust: Sequence[str]) -> Estimator:
    """Return the estimator in data, as its solver's load reads it."""
    _, load = _persistence(owner, trust)
    with tempfile.TemporaryDirectory(prefix="ranktune-") as folder:
        file = Path(folder) / "model"
        file.write_bytes(data)
        try:
            return load(file)
        except ModelFormatError as error:
            raise ModelFormatError(f"{path}: {error}") from error
        except Exception as error:  # it is the user's
            raise ModelFormatError(f"{path}: the load of '{owner}' failed: {type(error).__name__}: {error}") from error


def _persistence(owner: str, trust: Sequence[str] = ()) -> Persistence:
    """Return the functions of a registered solver, whose files may hold the classes of trust too.

    Raises ModelFormatError where it is not registered here.
    """
    registration = find(owner)
    if registration is not None and trust:
        registration = replace(registration, trusted=(*registration.trusted, *trust))
    rule = None if registration is None else persistence(registration)
    if rule is None:
        raise ModelFormatError(
            f"the model is one of the solver '{owner[:60]}', which is not registered here with functions that save and "
            "load. Register it before, as where it was trained, by ranktune.register_solver."
        )
    return rule


def takes_queries(estimator: Estimator) -> bool:
    """Return whether the predict of an estimator takes qid, the query of each row."""
    try:
        return "qid" in inspect.signature(estimator.predict).parameters
    except (TypeError, ValueError):  # of compiled code
        return False


def takes_frame(estimator: Estimator) -> bool:
    """Return whether an estimator, or a step of it, chooses columns by name, or says so: takes_frame = True."""
    deep = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    parts = [part for part in (estimator, *deep) if not isinstance(part, type)]
    chosen = [columns for part in parts for *_, columns in getattr(part, "transformers", ())]
    by_name = any(callable(columns) or isinstance(_first(columns), str) for columns in chosen)
    return by_name or any(getattr(part, "takes_frame", False) is True for part in parts)


def _first(columns: Any) -> object:
    """Return the first of the columns that a transformer takes: a name, a number, several of them or a slice."""
    if isinstance(columns, slice):
        return columns.start if columns.stop is None else columns.stop
    return next(iter(columns), None) if isinstance(columns, Iterable) else columns


def inputs_of(estimator: Estimator, queries: Queries) -> object:
    """Return what an estimator is given of queries: an array, or a data frame of the columns of their table."""
    if not takes_frame(estimator):
        return queries.features
    from ranktune.solvers.data.columns.encoding import frame_of

    return frame_of(queries.features, queries.feature_names, queries.encoding)


def estimator_scores(estimator: Estimator, queries: Queries) -> Floats:
    """Return the scores that an estimator gives queries, (n_documents,). Raises DataError for anything else."""
    X = inputs_of(estimator, queries)
    more = {"qid": queries.query_of_document} if takes_queries(estimator) else {}
    predicted = np.asarray(estimator.predict(X, **more))
    if predicted.dtype.kind not in "fiub" or predicted.size != queries.n_documents:
        raise DataError(
            f"the predict of {type(estimator).__name__} returned {predicted.dtype} of shape {predicted.shape} for "
            f"{queries.n_documents} documents: it must return one number per document."
        )
    scores: Floats = predicted.reshape(-1).astype(np.float64)
    if not np.isfinite(scores).all():
        raise DataError(
            f"the predict of {type(estimator).__name__} returned {scores[~np.isfinite(scores)][0]} for a document: "
            "scores must be finite."
        )
    return scores
