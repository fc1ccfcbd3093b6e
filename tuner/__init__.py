"""Hyperparameter tuning of ranking models: samplers, studies, executors and model selection."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranktune.tuner.samplers.thompson import ThompsonSampler

_HOMES = {
    "ThompsonSampler": "samplers.thompson",
}
"""The public names, each with the module it lives in; loaded when first used, so that importing this is instant."""

__all__ = ["ThompsonSampler"]


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names along with what is loaded."""
    return sorted({*globals(), *__all__})
