"""The solvers by name. Importing this imports none of them; asking for one imports its module."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, cast

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, listed, nearest

_MODULES = {
    "AdaRank": "boosting.adarank",
    "BestFeature": "linear.best_feature",
    "CommitteePerceptron": "online.perceptrons",
    "DominationRank": "linear.domination",
    "ElasticRank": "linear.elastic_rank",
    "GBDTRanker": "boosting.lightgbm",
    "LambdaMART": "boosting.lightgbm",
    "LambdaRank": "linear.lambda_rank",
    "ListNet": "linear.list_net",
    "LogisticRanker": "linear.pointwise",
    "PAMIR": "online.pamir",
    "PairwisePegasos": "online.pegasos",
    "PairwisePerceptron": "online.perceptrons",
    "Prank": "online.perceptrons",
    "RandomForestRanker": "boosting.lightgbm",
    "RankBoost": "boosting.rank_boost",
    "RankSVM": "linear.rank_svm",
    "RidgeRanker": "linear.pointwise",
    "SOLAR1": "online.solar",
    "SOLAR2": "online.solar",
    "SVRRanker": "linear.pointwise",
    "XGBoostRanker": "boosting.xgboost",
}

_LIBRARIES = {
    "GBDTRanker": "lightgbm",
    "LambdaMART": "lightgbm",
    "RandomForestRanker": "lightgbm",
    "XGBoostRanker": "xgboost",
}
"""What a solver needs that may be missing: such a solver is then not among SOLVERS."""


class _Solvers(Mapping[str, type[BaseRanker]]):
    """Name -> class, imported when first asked for."""

    def __getitem__(self, name: str) -> type[BaseRanker]:
        if not _is_there(name):
            raise KeyError(name)
        module = import_module(f"ranktune.solvers.{_MODULES[name]}")
        return cast(type[BaseRanker], getattr(module, name))

    def __iter__(self) -> Iterator[str]:
        return (name for name in _MODULES if _is_there(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _is_there(name: str) -> bool:
    return name not in _LIBRARIES or libraries.is_installed(_LIBRARIES[name])


SOLVERS: Mapping[str, type[BaseRanker]] = _Solvers()
"""Every solver that a study can name, in alphabetical order; without those whose library is not installed."""

NAMES = tuple(_MODULES)
"""Every solver there is, also where its library is not installed."""

ALL = "all"
"""What names every solver at once."""

STANDARD = (
    "BestFeature",
    "RidgeRanker",
    "LogisticRanker",
    "SVRRanker",
    "RankSVM",
    "ListNet",
    "ElasticRank",
    "LambdaMART",
    "GBDTRanker",
)
"""The solvers that compete unless others are named: of each family those that tend to win or to help in a blend, and a
floor.

What is learnt fast comes first, trees last: their defaults are tried in this order, and time may be short.
"""


def solver_class(name: str) -> type[BaseRanker]:
    """Return the class of the solver called name, whatever the case of its letters.

    Raises ParameterError, with the nearest name, where there is none, and with what to install where its library is
    missing.
    """
    for known in _MODULES:
        if known.lower() == str(name).lower():
            if not _is_there(known):
                raise ParameterError(f"{known}: {libraries.why_not(_LIBRARIES[known])}.")
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


def check_loadable(name: str) -> None:
    """Raise ParameterError, with what to install, where the library of the solver called name cannot be loaded."""
    reason = libraries.why_not(_LIBRARIES[name]) if name in _LIBRARIES else None
    if reason:
        raise ParameterError(f"{name}: {reason}.")


def loadable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the solvers of names whose libraries can be loaded; a warning says what to install for the others."""
    names = tuple(names)
    reasons = {name: libraries.why_not(_LIBRARIES[name]) for name in names if name in _LIBRARIES}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        out = [name for name in names if reasons.get(name) == reason]
        verb = "are" if len(out) > 1 else "is"
        warnings.warn(f"{reason}; {listed(out)} {verb} left out.", RankTuneWarning, stacklevel=2)
    return tuple(name for name in names if not reasons.get(name))
