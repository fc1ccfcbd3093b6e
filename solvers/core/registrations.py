"""Solvers that the user registered: how an estimator is made, saved and loaded, and its search space.

An installed package offers solvers by the entry-point group ranktune.solvers: the class under the name of the solver,
with its search space as the attribute space.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import (
    OF_CONSTRUCTOR,
    Choice,
    Float,
    Int,
    Parameter,
    Value,
    When,
    conditions,
    defaults,
    middle,
)
from ranktune.solvers.core.table import NamedTable, named, path_of

GROUP = "ranktune.solvers"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = ("solver", "all", "standard", "blend", "linearblend")

Hook: TypeAlias = Callable[..., Any] | str | None
"""A function that saves or loads, the name of a format, or None for the method of the estimator."""


@dataclass(frozen=True)
class Registration:
    """A solver of the user.

    name       what studies call it
    make       make(**parameters) returns an estimator with fit(X, y) and predict(X); or an estimator to copy
    space      the search space, whose defaults lie inside
    save, load save(estimator, path) and load(path); a format; or None for the methods of the estimator
    trusted    full names of further classes, module.Class, that files of the format "skops" may hold

    Raises ParameterError for a name or a parameter that cannot be.
    """

    name: str
    make: Any
    space: tuple[Parameter, ...] = ()
    save: Hook = None
    load: Hook = None
    trusted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the name, and give each parameter a default."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name) or self.name.lower() in _RESERVED:
            raise ParameterError(
                f"name={self.name!r}: the name of a solver must be letters, digits and _, beginning with a letter, and "
                f"none of {', '.join(_RESERVED)}."
            )
        for parameter in self.space:
            if not isinstance(parameter, Float | Int | Choice):
                raise ParameterError(
                    f"the space of '{self.name}' holds {parameter!r}: give Float, Int or Choice of ranktune.solvers, "
                    "or a mapping of names to Optuna's distributions."
                )
        defaults = parameters_of(self.make)
        object.__setattr__(self, "space", tuple(_with_default(parameter, defaults) for parameter in self.space))

    @property
    def path(self) -> str:
        """The import path of make, module:Name; empty where another process cannot import it."""
        return path_of(self.make)


def _with_default(parameter: Parameter, defaults: Mapping[str, object]) -> Parameter:
    """Return parameter with the default of its constructor where that lies inside, else the middle of its range."""
    if parameter.default is not OF_CONSTRUCTOR:
        return parameter
    default: Any = defaults.get(parameter.name)
    if isinstance(parameter, Choice):
        return replace(parameter, default=default if default in parameter.choices else parameter.choices[0])
    kinds = int | float if isinstance(parameter, Float) else int
    inside = isinstance(default, kinds) and not isinstance(default, bool)
    if inside and parameter.low <= default <= parameter.high:
        return replace(parameter, default=default)
    if isinstance(parameter, Int):
        return replace(parameter, default=round(middle(parameter)))
    return replace(parameter, default=middle(parameter))


def parameters_of(make: Any) -> dict[str, object]:
    """Return the parameters of a class, function or estimator, with their defaults, if any."""
    if not isinstance(make, type) and hasattr(make, "get_params"):
        return dict(make.get_params())
    try:
        return {name: parameter.default for name, parameter in inspect.signature(make).parameters.items()}
    except (TypeError, ValueError):  # neither callable nor described
        return {}


REGISTERED: NamedTable[Registration] = NamedTable(
    "solver", {}, group=GROUP, adopt="ranktune.solvers.core.registrations:with_declared_space"
)
"""The solvers of the user's by name, and those that installed packages offer."""


def find(name: str) -> Registration | None:
    """Return the solver of that name, registered here or offered by an installed package, whatever its case."""
    registered = REGISTERED.spelling(name)
    return None if registered is None else REGISTERED[registered]


def with_declared_space(name: str, make: Any) -> Registration:
    """Return a solver with the search space that its class declares. Raises ParameterError where it declares none."""
    return Registration(name, make, declared_space(name, make))


def declared_space(name: str, make: Any) -> tuple[Parameter, ...]:
    """Return the search space that a class declares. Raises ParameterError where it declares none."""
    space = getattr(make, "space", None)
    if space is None:
        raise ParameterError(
            f"'{name}' declares no search space: give space=, or the class an attribute space, a sequence of Float, "
            "Int and Choice of ranktune.solvers (empty for none)."
        )
    return tuple(space)


def described(registration: Registration) -> Json:
    """Return a registration as JSON; what has no import path is an empty text."""
    hooks = {name: getattr(registration, name) for name in ("save", "load")}
    return {
        "make": registration.path,
        "space": [_described(parameter) for parameter in registration.space],
        **{name: hook if isinstance(hook, str) or hook is None else path_of(hook) for name, hook in hooks.items()},
        **({"trusted": list(registration.trusted)} if registration.trusted else {}),
    }


def space_of(description: JsonView) -> tuple[Parameter, ...]:
    """Return the search space in a description. Raises ParameterError where it is none."""
    try:
        return tuple(_parameter(each) for each in description["space"])
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(f"a declared search space cannot be read: {error!r}.") from None


def restore(name: str, description: JsonView) -> None:
    """Register a described solver unless it is registered. Raises ParameterError that says what is missing."""
    if find(name) is not None:
        return
    paths = {key: description.get(key) for key in ("make", "save", "load")}
    if "" in paths.values():
        missing = next(key for key, path in paths.items() if path == "")
        raise ParameterError(
            f"the solver '{name}' is not registered here, and its {missing} has no import path, because it was defined "
            "in a script, a notebook or another function. Call register_solver in Python as before, and then "
            "ranktune.resume."
        )
    objects = {key: named(path) if isinstance(path, str) and ":" in path else path for key, path in paths.items()}
    if find(name) is None:  # importing its module may have registered it
        trusted = tuple(description.get("trusted", ()))
        REGISTERED[name] = Registration(
            name, objects["make"], space_of(description), objects["save"], objects["load"], trusted
        )


def _described(parameter: Parameter) -> Json:
    plain = asdict(parameter) | {"kind": type(parameter).__name__}
    plain["when"] = [asdict(when) for when in conditions(parameter)]
    return plain


def _parameter(plain: JsonView) -> Parameter:
    """Return the parameter that _described wrote."""
    fields = {name: value for name, value in plain.items() if name not in ("kind", "when")}
    when = _conditions(plain["when"])
    if plain["kind"] == "Choice":
        return Choice(**{**fields, "choices": tuple(fields["choices"])}, when=when)
    return Float(**fields, when=when) if plain["kind"] == "Float" else Int(**fields, when=when)


def _conditions(plain: Iterable[JsonView]) -> tuple[When, ...] | None:
    when: Sequence[When] = [When(each["name"], tuple(each["values"])) for each in plain]
    return tuple(when) or None


SEEDS = ("random_state", "random_seed", "seed")
"""Parameters of an estimator that are its seed."""


def made(registration: Registration, parameters: Mapping[str, Value], seed: int | None = None) -> Any:
    """Return a new estimator. Raises ParameterError where it cannot be made, or has no fit or predict.

    A seed that the estimator has, None by default, gets the value of seed.
    """
    make = registration.make
    values = _with_seed(parameters_of(make), parameters, seed)
    try:
        if isinstance(make, type) or not hasattr(make, "get_params"):
            estimator = make(**values)
        else:
            from sklearn.base import clone

            estimator = clone(make).set_params(**values)
    except Exception as error:  # code of the user
        shown = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        raise ParameterError(f"{registration.name}({shown}) fails: {type(error).__name__}: {error}") from error
    for method in ("fit", "predict"):
        if not callable(getattr(estimator, method, None)):
            raise ParameterError(
                f"'{registration.name}' makes a {type(estimator).__name__}, which has no {method}: a solver needs "
                "fit(X, y) and predict(X), as in scikit-learn. fit may also take qid, the query of each row."
            )
    return estimator


def made_of_each_kind(registration: Registration) -> list[Any]:
    """Return new estimators: with the defaults, and with each value of each choice that goes with the defaults.

    Raises ParameterError where none can be made with the defaults.
    """
    usual = defaults(registration.space)
    estimators = [made(registration, usual)]
    for choice in (parameter for parameter in registration.space if isinstance(parameter, Choice)):
        for value in choice.choices:
            try:
                estimators.append(made(registration, {**usual, choice.name: value}))
            except ParameterError:  # it goes with other values of the other parameters
                continue
    return estimators


def _with_seed(defaults: Mapping[str, object], parameters: Mapping[str, Value], seed: int | None) -> dict[str, Value]:
    """Return parameters with seed for each seed, of steps of a pipeline too, that known says is None."""
    free = {name for name, usual in defaults.items() if usual is None and name.rpartition("__")[2] in SEEDS}
    return {name: seed for name in sorted(free) if seed is not None} | dict(parameters)
