"""What a study declares of the solvers and metrics that the user registered, and how they become known again.

{"solvers": {NAME: {"make", "space", "save", "load"}}, "metrics": {NAME: {"function", "cutoff"}}}

Functions and classes stand there by their import path, module:Name. A declaration is read without importing them, so
that pages show the study anywhere; they are imported where trials of it are run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.registrations import described, find, restore
from ranktune.solvers.metrics.custom import described_metric, restore_metric
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.metrics.presets import CUSTOM
from ranktune.solvers.registry import NAMES


def declared_solvers(custom: JsonView) -> Mapping[str, Any]:
    """Return the descriptions of solvers by name."""
    found: Mapping[str, Any] = custom.get("solvers", {})
    return found


def spelling(metric: str, custom: JsonView) -> str:
    """Return the one spelling of a metric; one that the study has declared is spelt so already."""
    return metric if _name_of(metric) in custom.get("metrics", {}) else str(parse_metric(metric))


def described_custom(solvers: Sequence[str], metrics: Sequence[str], custom: JsonView) -> Json:
    """Return custom with descriptions of all solvers and metrics that are not RankTune's; {} if all are."""
    own_solvers, own_metrics = dict(declared_solvers(custom)), dict(custom.get("metrics", {}))
    for name in solvers:
        if name not in NAMES and name not in own_solvers and (registration := find(name)) is not None:
            own_solvers[name] = described(registration)
    for name in map(_name_of, metrics):
        if name in CUSTOM and name not in own_metrics:
            own_metrics[name] = described_metric(CUSTOM[name])
    found = {"solvers": own_solvers, "metrics": own_metrics}
    return {kind: own for kind, own in found.items() if own}


def restore_custom(name: str, custom: JsonView) -> None:
    """Make the solvers and metrics known that the study called name declares.

    Raises StudyError that says what is missing.
    """
    try:
        for own, description in declared_solvers(custom).items():
            restore(own, description)
        for own, description in custom.get("metrics", {}).items():
            restore_metric(own, description)
    except ParameterError as error:
        raise StudyError(f"study '{name}' cannot go on here: {error}") from None


def _name_of(metric: str) -> str:
    return str(metric).partition(":")[0].partition("@")[0]
