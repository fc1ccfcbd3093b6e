"""What is sent to workers, which know the solvers and metrics there that the user registered in this process.

Each function is sent with them. Classes and functions of modules are sent by name, those of a script or a notebook by
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ranktune.solvers.core.registrations import REGISTERED, Registration
from ranktune.solvers.metrics.custom import CustomMetric
from ranktune.solvers.metrics.presets import CUSTOM
from ranktune.tuner.workers.limits import pickled

T = TypeVar("T")


def payload_of(function: Callable[..., object], arguments: tuple[Any, ...]) -> bytes:
    """Return function(*arguments) as it is sent. Raises ResultRefused for what cannot be pickled."""
    solvers, metrics = tuple(REGISTERED.values()), tuple(CUSTOM.values())
    if not solvers and not metrics:
        return pickled((function, arguments), None)
    return pickled((call_with_custom, (solvers, metrics, function, *arguments)), None)


def call_with_custom(
    solvers: Sequence[Registration],
    metrics: Sequence[CustomMetric],
    function: Callable[..., T],
    *arguments: Any,
) -> T:
    """Return function(*arguments), called where solvers and metrics are known."""
    for registration in solvers:
        REGISTERED[registration.name] = registration
    for metric in metrics:
        CUSTOM[metric.name] = metric
    return function(*arguments)
