"""Fields of a manifest, each of the type that it must have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from ranktune.solvers.core.errors import ModelFormatError

Content: TypeAlias = Mapping[str, object]
"""A manifest as it was read: nothing in it is trusted."""

T = TypeVar("T")


def field_of(path: Path, content: Content, name: str, kind: type[T], *, wanted: str = "") -> T:
    """Return a field of the manifest at path. Raises ModelFormatError where it is not exactly of that type."""
    value = content.get(name)
    if type(value) is not kind:
        raise ModelFormatError(
            f"{path}: {name} is {str(value)[:40]!r}: it must be {wanted or kind.__name__}. Save the model again."
        )
    return value


def optional_field(path: Path, content: Content, name: str, kind: type[T]) -> T | None:
    """Return a field of the manifest at path that may be null or absent, as field_of does."""
    if content.get(name) is None:
        return None
    return field_of(path, content, name, kind, wanted=f"{kind.__name__} or null")
