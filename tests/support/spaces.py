"""Which parameters of a space are active, by its conditions alone."""

from collections.abc import Mapping
from typing import Any

from ranktune.tuner.samplers.space import UnionSpace


def active(union: UnionSpace, params: Mapping[str, Any]) -> list[str]:
    """The flat names that are active under params, in order; a missing parent leaves its children out."""
    names: list[str] = []
    for name, conditions in union.conditions.items():
        if all(when.name in names and when.name in params and params[when.name] in when.values for when in conditions):
            names.append(name)
    return names
