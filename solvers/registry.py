"""The solvers by name. Importing this imports none of them; asking for one imports its module."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, cast

from ranktune.solvers.errors import ParameterError, nearest
from ranktune.solvers.ranker import BaseRanker

_MODULES = {
    "BestFeature": "best_feature",
    "ElasticRank": "elastic_rank",
    "LogisticRanker": "pointwise",
    "RankSVM": "rank_svm",
    "RidgeRanker": "pointwise",
    "SVRRanker": "pointwise",
}


class _Solvers(Mapping[str, type[BaseRanker]]):
    """Name -> class, imported when first asked for."""

    def __getitem__(self, name: str) -> type[BaseRanker]:
        module = import_module(f"ranktune.solvers.{_MODULES[name]}")
        return cast(type[BaseRanker], getattr(module, name))

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


SOLVERS: Mapping[str, type[BaseRanker]] = _Solvers()
"""Every solver that a study can name, in alphabetical order."""


ALL = "all"
"""What names every solver at once."""

STANDARD = ("BestFeature", "ElasticRank", "LogisticRanker", "RankSVM", "RidgeRanker", "SVRRanker")
"""The solvers that compete unless others are named: of each family those that tend to win, and a floor."""


def solver_class(name: str) -> type[BaseRanker]:
    """Return the class of the solver called name, whatever the case of its letters.

    Raises ParameterError, with the nearest name, where there is none.
    """
    for known in SOLVERS:
        if known.lower() == str(name).lower():
            return SOLVERS[known]
    raise ParameterError(f"there is no solver '{name}'. {nearest(str(name), SOLVERS)}")


def make(name: str, parameters: Mapping[str, Any], seed: int | None = None) -> BaseRanker:
    """Return an unfitted solver with the parameters, and with seed as its random_state where it takes one.

    Raises ParameterError for an unknown solver, or a parameter that the solver does not have.
    """
    solver = solver_class(name)
    known = [key for key in inspect.signature(solver.__init__).parameters if key != "self"]
    for key in parameters:
        if key not in known:
            raise ParameterError(f"{solver.__name__} has no parameter '{key}'. {nearest(key, known)}")
    given = dict(parameters)
    if "random_state" in known and "random_state" not in given:
        given["random_state"] = seed
    return solver(**given)
