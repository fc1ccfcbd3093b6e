"""What a study may deliver: models that the systems named by its setting `serve` can load.

Which parts of models a system can load says the table of formats (`ranktune.solvers.export.formats.FORMATS`), which
parts a configuration gives says its solver (`BaseRanker.model_parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from ranktune.solvers.core.errors import ParameterError, listed, nearest
from ranktune.solvers.core.space import Choice, Parameter
from ranktune.solvers.export.formats import FORMATS
from ranktune.solvers.models.base import IN_WORDS, LINEAR, TREES
from ranktune.solvers.registry import solver_class


def known_systems(serve: Sequence[str]) -> tuple[str, ...]:
    """Return the systems of serve, each once. Raises ParameterError for one without a format."""
    for name in serve:
        if name not in FORMATS:
            raise ParameterError(
                f"serve={name[:40]!r} is no system that models are exported to. {nearest(name, FORMATS)}"
            )
    return tuple(dict.fromkeys(serve))


def can_load(serve: Sequence[str], parts: Set[str]) -> bool:
    """Return whether all systems of serve can load a model of these parts."""
    return all(FORMATS[name].holds(parts) for name in serve)


def is_served(serve: Sequence[str], solver: str) -> bool:
    """Return whether all systems of serve can load the models that a solver gives by its defaults."""
    return can_load(serve, solver_class(solver).model_parts({}))


def served_of(serve: Sequence[str], solvers: Iterable[str]) -> tuple[str, ...]:
    """Return the solvers whose models all systems of serve can load."""
    return tuple(name for name in solvers if is_served(serve, name))


def check_served(serve: Sequence[str], solver: str) -> None:
    """Raise ParameterError where a system of serve cannot load the models of a solver."""
    parts = solver_class(solver).model_parts({})
    for name in serve:
        if not FORMATS[name].holds(parts):
            held = listed([IN_WORDS[part] for part in (LINEAR, TREES) if FORMATS[name].holds({part})])
            given = listed([IN_WORDS[part] for part in sorted(parts)])
            raise ParameterError(
                f"models of {solver} consist of {given}, and {name} loads {held} only. Leave {solver} out, or serve by "
                "another system."
            )


def served_space(serve: Sequence[str], solver: str) -> tuple[Parameter, ...]:
    """Return the search space of a solver without the choices whose models a system of serve cannot load."""
    solver_type = solver_class(solver)
    if not serve:
        return solver_type.space

    def served(own: Parameter) -> Parameter:
        if not isinstance(own, Choice):
            return own
        kept = tuple(one for one in own.choices if can_load(serve, solver_type.model_parts({own.name: one})))
        return replace(own, choices=kept, default=own.default if own.default in kept else kept[0])

    return tuple(map(served, solver_type.space))
