"""What the data of a study demand of its solvers: that they weigh documents, or keep monotone constraints.

What a configuration can use says its solver (`supports` of ranktune.solvers.base.training_data).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ranktune.solvers.base.training_data import DOCUMENT_WEIGHTS, MONOTONE, QUERY_WEIGHTS, VERBS
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, listed
from ranktune.solvers.core.space import Choice, Parameter
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import solver_class
from ranktune.tuner.study.settings import Settings

_REMEDIES = {
    QUERY_WEIGHTS: "the weights of queries",
    DOCUMENT_WEIGHTS: "the weights of documents",
    MONOTONE: "monotone",
}


def needs_of(settings: Settings) -> frozenset[str]:
    """Return what the settings of a study demand of its solvers."""
    given = {QUERY_WEIGHTS: settings.weight, DOCUMENT_WEIGHTS: settings.document_weight, MONOTONE: settings.monotone}
    return frozenset(need for need, value in given.items() if value)


def needs_of_data(queries: Queries) -> frozenset[str]:
    """Return what queries demand of solvers."""
    return frozenset(need for need in VERBS if getattr(queries, need) is not None)


def able_of(needs: frozenset[str], solvers: Iterable[str]) -> tuple[str, ...]:
    """Return the solvers that can use what the data need; warns (RankTuneWarning) of those that are left out."""
    every = tuple(solvers)
    able = tuple(name for name in every if not _missing(needs, name))
    if len(able) < len(every):
        others = [name for name in every if name not in able]
        what = listed(sorted({VERBS[need] for name in others for need in _missing(needs, name)}))
        warnings.warn(f"{listed(others)} cannot {what}: left out.", RankTuneWarning, stacklevel=2)
    return able


def check_able(needs: frozenset[str], solver: str) -> None:
    """Raise ParameterError where a solver cannot use what the data need."""
    for need in sorted(_missing(needs, solver)):
        raise ParameterError(f"{solver} cannot {VERBS[need]}. Leave {solver} out, or {_REMEDIES[need]}.")


def able_space(needs: frozenset[str], solver: str, space: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return a search space without the choices with which its solver cannot use what the data need."""
    supports = solver_class(solver).supports

    def able(own: Parameter) -> Parameter:
        if not isinstance(own, Choice):
            return own
        kept = tuple(one for one in own.choices if needs <= supports({own.name: one}))
        if not kept:  # another parameter decides
            return own
        return replace(own, choices=kept, default=own.default if own.default in kept else kept[0])

    return tuple(map(able, space))


def _missing(needs: frozenset[str], solver: str) -> frozenset[str]:
    """Return the needs that no configuration of a solver can use."""
    kind = solver_class(solver)
    choices = [{own.name: one} for own in kind.space if isinstance(own, Choice) for one in own.choices]
    return needs - frozenset().union(*(kind.supports(parameters) for parameters in ({}, *choices)))
