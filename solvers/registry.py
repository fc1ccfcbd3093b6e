"""The solvers by name, ours and those that the user registered; a module is imported when its solver is looked up."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import cast

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core import libraries, registrations
from ranktune.solvers.core.entry_points import is_path, named
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, listed, nearest
from ranktune.solvers.core.registrations import Registration
from ranktune.solvers.names import REGISTERED


class _Solvers(Mapping[str, type[BaseRanker]]):
    """Name -> class, imported when it is looked up."""

    def __getitem__(self, name: str) -> type[BaseRanker]:
        if not _is_available(name):
            raise KeyError(name)
        module = import_module(f"ranktune.solvers.{REGISTERED[name].module}")
        return cast(type[BaseRanker], getattr(module, name))

    def __iter__(self) -> Iterator[str]:
        return (name for name in NAMES if _is_available(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _is_available(name: str) -> bool:
    registered = REGISTERED.get(name)
    return registered is not None and (registered.library is None or libraries.is_installed(registered.library))


def _why_not(name: str) -> str | None:
    """Return why the library of a solver cannot be loaded and what to install, or None if nothing is missing."""
    library = REGISTERED[name].library if name in REGISTERED else None
    return None if library is None else libraries.why_not(library)


SOLVERS: Mapping[str, type[BaseRanker]] = _Solvers()
"""Every solver that a study can name, in alphabetical order; without those whose library is not installed."""

NAMES = tuple(sorted(REGISTERED))
"""Every solver there is, also where its library is not installed."""

ALL = "all"
"""What names every solver at once."""

STANDARD_NAME = "standard"
"""What names the solvers that compete by default."""

STANDARD = tuple(name for name, solver in REGISTERED.items() if solver.standard)
"""The solvers that compete unless others are named, in the order in which their defaults are tried."""


def solver_class(name: str) -> type[BaseRanker]:
    """Return the class of the solver called name, whatever the case of its letters.

    Raises ParameterError, with the nearest name, where there is none, and with what to install where its library is
    missing.
    """
    for known in NAMES:
        if known.lower() == str(name).lower():
            if not _is_available(known):
                raise ParameterError(f"{known}: {_why_not(known)}.")
            return SOLVERS[known]
    if is_path(str(name)):
        return _by_path(str(name))
    registration = registrations.find(str(name))
    if registration is None:
        known_names = (*SOLVERS, *registrations.names())
        raise ParameterError(
            f"there is no solver '{name}'. {nearest(str(name), known_names)} ranktune.register_solver adds your own."
        )
    from ranktune.solvers.custom.ranker import class_of  # with it come the tree libraries' solvers

    return class_of(registration)


def custom_names() -> tuple[str, ...]:
    """Return the user's solvers, those of installed packages too; a warning names what cannot be imported."""
    found = []
    for name in registrations.names():
        try:
            found.append(solver_class(name).__name__)
        except ParameterError as error:
            warnings.warn(f"the solver {error} It is left out.", RankTuneWarning, stacklevel=2)
    return tuple(found)


def add_solver(registration: Registration) -> None:
    """Make a solver of the user's known in this process.

    Raises ParameterError where its name is that of one of ours, or where it cannot be used.
    """
    if registration.name.lower() in {known.lower() for known in NAMES}:
        raise ParameterError(f"name={registration.name!r}: that is a solver of RankTune. Choose another name.")
    from ranktune.solvers.custom.ranker import check

    check(registration)
    registrations.add(registration)


def _by_path(path: str) -> type[BaseRanker]:
    """Return the solver of a class at an import path, which is registered under its own name."""
    make = named(path)
    name = path.rpartition(":")[2].rpartition(".")[2]
    known = registrations.find(name)
    if known is None or known.make is not make:
        add_solver(Registration(name, make, registrations.declared_space(name, make)))
    return solver_class(name)


def make(name: str, parameters: Mapping[str, object], seed: int | None = None) -> BaseRanker:
    """Return an unfitted solver with parameters, and with seed as its random_state if it has one.

    Raises ParameterError for an unknown solver, or a parameter that the solver does not have.
    """
    solver = solver_class(name)
    known = solver._parameter_names()
    for key in parameters:
        if key not in known:
            raise ParameterError(f"{solver.__name__} has no parameter '{key}'. {nearest(key, known)}")
    given = dict(parameters)
    if "random_state" in known and "random_state" not in given:
        given["random_state"] = seed
    return solver(**given)


def check_loadable(name: str) -> None:
    """Raise ParameterError, with what to install, where the library of the solver called name cannot be loaded."""
    reason = _why_not(name)
    if reason:
        raise ParameterError(f"{name}: {reason}.")


def standard() -> tuple[str, ...]:
    """Return the solvers that compete by default; those of an extra of ranktune only where it is installed."""
    there = (name for name in STANDARD if _is_available(name) or not _is_of_an_extra(name))
    return loadable(there)


def _is_of_an_extra(name: str) -> bool:
    library = REGISTERED[name].library
    return library is not None and "ranktune[" in libraries.INSTALL[library]


def loadable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the solvers of names whose libraries can be loaded; a warning says what to install for the others."""
    names = tuple(names)
    reasons = {name: _why_not(name) for name in names}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        out = [name for name in names if reasons[name] == reason]
        verb = "are" if len(out) > 1 else "is"
        warnings.warn(f"{reason}; {listed(out)} {verb} left out.", RankTuneWarning, stacklevel=2)
    return tuple(name for name in names if reasons[name] is None)
