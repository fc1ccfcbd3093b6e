"""The solvers by name, ours and those that the user registered; a module is imported when its solver is looked up."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import ParameterError, listed, nearest, warn
from ranktune.solvers.core.registrations import REGISTERED, Registration, find, with_declared_space
from ranktune.solvers.core.table import is_path, named
from ranktune.solvers.names import CUSTOM
from ranktune.solvers.names import SOLVERS as SOLVERS
from ranktune.solvers.names import STANDARD as STANDARD

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker

NAMES = SOLVERS.names
"""Every solver there is, also where its library is not installed."""

ALL = "all"
"""What names every solver at once."""

STANDARD_NAME = "standard"
"""What names the solvers that compete by default."""

COMPUTING = ("Python", "ranktune", "numpy", "scipy", "scikit-learn", "numba", "optuna")
"""What every study computes by."""

ELSEWHERE = {
    "LambdaMART": ("lightgbm", "lgbm", "lgbmranker", "mart", "gbm", "gbdt"),
    "XGBoostRanker": ("xgboost", "xgb", "xgbranker"),
    "CatBoostRanker": ("catboost",),
    "RankSVM": ("svm", "svmrank", "svm-rank", "linearsvc"),
    "RidgeRanker": ("linearregression", "ols", "linear"),
    "LogisticRanker": ("logisticregression",),
    "LambdaRank": ("ranknet",),
}
"""Solvers, and names in lower case of what is like them elsewhere."""


def solver_class(name: str) -> type[BaseRanker]:
    """Return the class of the solver called name, whatever the case of its letters.

    Its library need not be installed. Raises ParameterError, with the nearest name, where there is none.
    """
    if (spelling := SOLVERS.spelling(str(name))) is not None:
        return SOLVERS.imported(spelling)
    if is_path(str(name)):
        return _by_path(str(name))
    registration = find(str(name))
    if registration is None:
        here = next((ours for ours, theirs in ELSEWHERE.items() if str(name).lower() in theirs), None)
        hint = SOLVERS.hint(str(name), *REGISTERED.names) if here is None else f"Here it is called '{here}'."
        raise ParameterError(f"there is no solver '{name}'. {hint}")
    return CUSTOM["CustomRanker"].of(registration)


@cache
def averages(name: str) -> bool:
    """Return whether the solver called name can average models of several seeds."""
    return "seeds" in inspect.signature(solver_class(name)).parameters


def custom_names() -> tuple[str, ...]:
    """Return the user's solvers, those of installed packages too; a warning names what cannot be imported."""
    names = []
    for name in sorted(REGISTERED.names):
        try:
            names.append(solver_class(name).__name__)
        except ParameterError as error:
            warn(f"the solver {error} It is left out.")
    return tuple(names)


def add_solver(registration: Registration) -> None:
    """Make a solver of the user's known in this process.

    Raises ParameterError where its name is that of one of ours, or where it cannot be used.
    """
    if SOLVERS.spelling(registration.name) is not None:
        raise ParameterError(f"name={registration.name!r}: that is a solver of RankTune. Choose another name.")
    CUSTOM["CustomRanker"].check(registration)
    REGISTERED[registration.name] = registration


def _by_path(path: str) -> type[BaseRanker]:
    """Return the solver of a class at an import path, which is registered under its own name."""
    make = named(path)
    name = path.rpartition(":")[2].rpartition(".")[2]
    found = find(name)
    if found is None or found.make is not make:
        add_solver(with_declared_space(name, make))
    return solver_class(name)


def make(name: str, parameters: Mapping[str, object], seed: int | None = None) -> BaseRanker:
    """Return an unfitted solver with parameters, and with seed as its random_state if it has one.

    Raises ParameterError for an unknown solver, or a parameter that the solver does not have.
    """
    solver = solver_class(name)
    names, parameters = solver._parameter_names(), solver.former.current(parameters)
    for key in parameters:
        if key not in names:
            raise ParameterError(f"{solver.__name__} has no parameter '{key}'. {nearest(key, names)}")
    if "random_state" in names:
        parameters = {"random_state": seed, **parameters}
    return solver(**parameters)


def check_loadable(name: str) -> None:
    """Raise ParameterError, with what to install, where the library of the solver called name cannot be loaded."""
    reason = SOLVERS.why_not(name)
    if reason:
        raise ParameterError(f"{name}: {reason}.")


def standard() -> tuple[str, ...]:
    """Return the solvers that compete by default."""
    return loadable(STANDARD)


def loadable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the solvers of names whose libraries can be loaded; a warning says what to install for the others."""
    names = tuple(names)
    reasons = {name: SOLVERS.why_not(name) for name in names}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        out = [name for name in names if reasons[name] == reason]
        verb = "are" if len(out) > 1 else "is"
        warn(f"{reason}; {listed(out)} {verb} left out.")
    return tuple(name for name in names if reasons[name] is None)
