"""JSON values read as what they were written of: dataclasses, tuples, mappings, text and numbers, each checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def typed(kind: type[T], value: object) -> T:
    """Return a JSON value as a dataclass. Raises ValueError, TypeError or KeyError where it is no such thing."""
    result: T = _typed(kind, value)
    return result


def _typed(kind: Any, value: Any) -> Any:
    if is_dataclass(kind):
        return kind(**{name: _typed(item, value[name]) for name, item in get_type_hints(kind).items()})  # type: ignore[operator]
    container, inner = get_origin(kind), get_args(kind)
    if container is tuple and isinstance(value, list):
        return tuple(_typed(inner[0], item) for item in value)
    if container is Mapping and isinstance(value, dict):
        return {inner[0](name): _typed(inner[1], item) for name, item in value.items()}
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if container is None and (kind is Any or type(value) is kind):
        return value
    raise ValueError(f"{str(value)[:40]!r} is not {getattr(kind, '__name__', kind)}")
