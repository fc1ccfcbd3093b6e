"""JSON values read as what they were written of: dataclasses, tuples, mappings, text and numbers, each checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from ranktune.tuner.statistics.measured import Interval

T = TypeVar("T")


def typed(kind: type[T], value: object) -> T:
    """Return a JSON value as a dataclass. Raises ValueError, TypeError or KeyError where it is no such thing."""
    result: T = _typed(kind, value)
    return result


def _typed(kind: Any, value: Any) -> Any:
    if hasattr(kind, "of_json"):
        return kind.of_json(value)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{f.name: _field(hints[f.name], f.name, value) for f in fields(kind) if _is_given(f, value)})  # type: ignore[operator]
    container, inner = get_origin(kind), get_args(kind)
    if container is UnionType:
        return _any_of(inner, value)
    if container is tuple and isinstance(value, list):
        return tuple(_typed(inner[0], item) for item in value)
    if container is Mapping and isinstance(value, dict):
        return {inner[0](name): _typed(inner[1], item) for name, item in value.items()}
    if kind is float and (value is None or (isinstance(value, int | float) and not isinstance(value, bool))):
        return math.nan if value is None else float(value)
    if container is None and (kind is Any or type(value) is kind):
        return value
    raise ValueError(f"{str(value)[:40]!r} is not {getattr(kind, '__name__', kind)}")


def _is_given(f: Field[Any], value: Any) -> bool:
    """Return whether a field is in the JSON, which it need not be where it has a default."""
    return f.name in value or (f.default is MISSING and f.default_factory is MISSING)


def _field(kind: Any, name: str, values: Any) -> Any:
    """Return a field; an interval stands as its mean and its ends."""
    if (kind is Interval or Interval in get_args(kind)) and f"{name}_interval" in values:
        ends = values[f"{name}_interval"]
        if ends is None and kind is not Interval:
            return None
        low, high = (None, None) if ends is None else ends
        return Interval(*(_typed(float, each) for each in (values[name], low, high)))
    return _typed(kind, values[name])


def _any_of(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in kinds:
        return None
    exact = [kind for kind in kinds if type(value) is kind]
    return _typed(exact[0] if exact else kinds[0], value)
