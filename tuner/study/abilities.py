"""What the data of a study and the systems that serve its model demand of its solvers.

Data may demand that documents are weighed, or that monotone constraints are kept: its solver declares what a
configuration can use (`supports` of ranktune.solvers.base.training_data). A system, named by the setting `serve`, must
be able to load the model: the table of formats (`ranktune.solvers.formats.FORMATS`) has the parts of models that
it can load, and the solver those that a configuration gives (`BaseRanker.model_parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from ranktune.solvers.abilities import (
    IN_WORDS,
    LINEAR,
    POSITIONS,
    TREES,
    VERBS,
)
from ranktune.solvers.core.errors import ParameterError, listed, nearest, warn
from ranktune.solvers.core.space import Choice, Parameter, Value
from ranktune.solvers.data.columns.table import COLUMNS
from ranktune.solvers.formats import FORMATS
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.feature_costs import with_half_life
from ranktune.tuner.study.settings import TIMED, Settings

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

TIMES = "times"
"""What recency weights are made of, where a solver weighs queries; others ignore it."""


def needs_of(settings: Settings) -> frozenset[str]:
    """Return what the settings of a study demand of its solvers."""
    timed = (settings.time is not None or settings.data == TIMED) and settings.plan != "progressive"
    needs = {entry.needs for name, entry in COLUMNS.items() if getattr(settings, entry.option or name, None)}
    return frozenset(needs | ({TIMES} if timed else set())) - {""}


def needs_of_data(queries: Queries) -> frozenset[str]:
    """Return what queries demand of solvers."""
    return frozenset(COLUMNS[name].needs for name in queries.columns) & VERBS.keys()


def warn_of_ignored_positions(solvers: Iterable[str], parts: Iterable[Queries]) -> None:
    """Warn (RankTuneWarning) where documents have positions, and some of the solvers do not use them."""
    others = [name for name in solvers if POSITIONS not in _supported(name)]
    if others and any(POSITIONS in part.columns for part in parts):
        learn = "learn" if len(others) > 1 else "learns"
        warn(f"{listed(others)} {learn} without positions.")


def able_of(needs: frozenset[str], serve: Sequence[str], solvers: Iterable[str]) -> tuple[str, ...]:
    """Return the solvers whose models all systems of serve can load, and that can use what the data need.

    Warns (RankTuneWarning) of those that cannot.
    """
    every = tuple(name for name in solvers if is_served(serve, name))
    able = tuple(name for name in every if not _missing(needs, name))
    if len(able) < len(every):
        others = [name for name in every if name not in able]
        what = listed(sorted({VERBS[need] for name in others for need in _missing(needs, name)}))
        warn(f"{listed(others)} cannot {what}: left out.")
    return able


def known_systems(serve: Sequence[str]) -> tuple[str, ...]:
    """Return the systems of serve, each once. Raises ParameterError for one without a format."""
    for name in serve:
        if name not in FORMATS:
            raise ParameterError(
                f"serve={name[:40]!r} is not a system that models are exported to. {nearest(name, FORMATS)}"
            )
    return tuple(dict.fromkeys(serve))


def can_load(serve: Sequence[str], parts: Set[str]) -> bool:
    """Return whether all systems of serve can load a model of these parts."""
    return all(FORMATS[name].holds(parts) for name in serve)


def is_served(serve: Sequence[str], solver: str) -> bool:
    """Return whether all systems of serve can load the models that a solver gives by its defaults."""
    return can_load(serve, solver_class(solver).model_parts({}))


def check_able(needs: frozenset[str], serve: Sequence[str], solver: str) -> None:
    """Raise ParameterError where a solver cannot use what the data need, or a system cannot load its models."""
    parts = solver_class(solver).model_parts({})
    for name in serve:
        if not FORMATS[name].holds(parts):
            able = listed([IN_WORDS[part] for part in (LINEAR, TREES) if FORMATS[name].holds({part})])
            kinds = listed([IN_WORDS[part] for part in sorted(parts)])
            raise ParameterError(
                f"models of {solver} consist of {kinds}, and {name} loads {able} only. Leave {solver} out, or serve by "
                "another system."
            )
    for need in sorted(_missing(needs, solver)):
        raise ParameterError(f"{solver} cannot {VERBS[need]}. Leave {solver} out, or {COLUMNS[need].option or need}.")


def able_space(needs: frozenset[str], serve: Sequence[str], solver: str) -> tuple[Parameter, ...]:
    """Return the search space of a solver without the choices that the data, or the systems of serve, rule out."""
    kind, timed = solver_class(solver), TIMES in needs
    needs &= _supported(solver)

    def is_able(choice: Mapping[str, Value]) -> bool:
        return needs <= kind.supports(choice) and (not serve or can_load(serve, kind.model_parts(choice)))

    def able(parameter: Parameter) -> Parameter:
        if not isinstance(parameter, Choice):
            return parameter
        choices = tuple(choice for choice in parameter.choices if is_able({parameter.name: choice}))
        if not choices:  # another parameter decides
            return parameter
        default = parameter.default if parameter.default in choices else choices[0]
        return replace(parameter, choices=choices, default=default)

    space = tuple(map(able, kind.space))
    return with_half_life(solver, space) if timed else space


def _missing(needs: frozenset[str], solver: str) -> frozenset[str]:
    """Return the needs that no configuration of a solver can use; positions and times may be ignored."""
    return needs - _supported(solver) - {POSITIONS, TIMES}


def _supported(solver: str) -> frozenset[str]:
    """Return what some configuration of a solver can use."""
    kind = solver_class(solver)
    lists = [parameter for parameter in kind.space if isinstance(parameter, Choice)]
    choices = [{parameter.name: choice} for parameter in lists for choice in parameter.choices]
    return frozenset().union(*(kind.supports(parameters) for parameters in ({}, *choices)))
