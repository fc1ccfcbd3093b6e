"""Where a model comes from: the fields that every kind of model has, and how they are read from a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.columns.encoding import Encoding
from ranktune.solvers.models import files
from ranktune.solvers.models.files import SAVE_AGAIN, Content, field_of, optional_field


class Origin(TypedDict):
    """The fields that every kind of model has: see Model."""

    solver: str
    parameters: Mapping[str, Value]
    feature_names: tuple[str, ...] | None
    metric: str | None
    fingerprint: str | None
    created: NotRequired[str | None]
    version: NotRequired[str | None]
    encoding: NotRequired[Encoding | None]
    monotone: NotRequired[Mapping[str, int]]


def read_origin(path: Path, content: Content, n_features: int) -> Origin:
    """Return the common fields that the manifest at path holds. Raises ModelFormatError where they cannot be."""
    listed = content.get("feature_names")
    names = None if listed is None else files.read_names(path, listed, n_features)
    parameters = field_of(path, content, "parameters", dict)
    if not all(isinstance(value, float | int | str | bool | None) for value in parameters.values()):
        raise ModelFormatError(f"{path}: parameters must be plain values. {SAVE_AGAIN}")
    encoding = content.get("encoding")
    try:
        known = None if encoding is None else Encoding.from_json(encoding)
    except ValueError as error:
        raise ModelFormatError(f"{path}: its encoding cannot be used: {error}. {SAVE_AGAIN}") from None
    return {
        "solver": field_of(path, content, "solver", str),
        "parameters": parameters,
        "feature_names": names,
        "metric": optional_field(path, content, "metric", str),
        "fingerprint": optional_field(path, content, "data", str),
        "created": optional_field(path, content, "created", str),
        "version": optional_field(path, content, "ranktune", str),
        "encoding": known,
        "monotone": optional_field(path, content, "monotone", dict) or {},
    }
