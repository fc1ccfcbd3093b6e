"""How a solver, a loss or an optimizer declares its parameters: once, as fields with a Param.

    @with_parameters
    class RankSVM(LinearRanker):
        C: Annotated[float, Param("Weight of the loss.", low=1e-4, high=1e2, log=True)] = 0.01

The constructor, the search space, the check and the docstring's section come from these lines.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeAlias, TypeVar, dataclass_transform

from ranktune.solvers.core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_positive,
)
from ranktune.solvers.core.declared import FieldMeaning, Former, declared, documented, with_attributes
from ranktune.solvers.core.errors import warn
from ranktune.solvers.core.space import OF_CONSTRUCTOR, Choice, Conditions, Float, Int, Parameter, Value

Check: TypeAlias = Callable[[str, Any], None]
"""Raises ParameterError unless the parameter of that name may have the value."""

C = TypeVar("C", bound=type)


def unchecked(name: str, value: object) -> None:
    """Accept any value: it is checked where it is used."""


CHECKS: dict[Any, Check] = {bool: check_flag, int: check_count, float: check_positive}
"""What values of a type must be, unless a parameter declares a check: floats and counts are above zero."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """What a search tries of a parameter, under conditions: numbers from low to high, or choices.

    default is what it tries first: by default that of the constructor, or the first choice where that is none of them.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    default: Any = OF_CONSTRUCTOR
    when: Conditions = None

    def parameter(self, name: str, kind: object, default: Any) -> Parameter:
        """Return the parameter of a search space, whose constructor has that default."""
        first = default if self.default is OF_CONSTRUCTOR else self.default
        if self.choices:
            first = first if first in self.choices else self.choices[0]
            return Choice(name, self.choices, first, self.when)
        low: Any = self.low
        high: Any = self.high
        return (Int if kind is int else Float)(name, low, high, first, self.log, self.when)


@dataclass(frozen=True)
class Param(FieldMeaning):
    """What the declaration of a parameter says besides its type and default.

    choices   the values it can have, where they are a few texts
    searched  those of the choices that a search tries, by default all
    low, high what a search tries of a number, on a logarithmic scale if log; it is not searched without them
    when      conditions under which the search tries it
    ranges    what a search tries, where that is different under different conditions
    check     what a value must be, where its type and choices do not say it
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    searched: tuple[Value, ...] | None = None
    when: Conditions = None
    ranges: tuple[Range, ...] = ()
    check: Check | None = None

    def but(self, **changes: Any) -> Param:
        """Return the same with some changes, for a solver that searches another range or has more choices."""
        return replace(self, **changes)

    @property
    def range(self) -> Range:
        """What a search tries where it is the same under all conditions."""
        choices = self.choices if self.searched is None else self.searched
        return Range(low=self.low, high=self.high, log=self.log, choices=choices, when=self.when)

    def tried(self) -> tuple[Range, ...]:
        """Return what a search tries."""
        return self.ranges or ((self.range,) if self.range.choices or self.low is not None else ())


def space_of(declaration: type) -> tuple[Parameter, ...]:
    """Return the search space that the fields of declaration say, in their order or that of its space_order."""
    fields = {parameter.name: parameter for parameter in declared(declaration)}
    order: tuple[str, ...] = getattr(declaration, "space_order", ())
    ordered = [fields[name] for name in order] + [parameter for name, parameter in fields.items() if name not in order]
    return tuple(tried.parameter(p.name, p.kind, p.default) for p in ordered for tried in p.setting.tried())


def check_declared(parts: object) -> None:
    """Raise ParameterError if a declared parameter of parts is not valid."""
    for parameter in declared(type(parts)):
        value = getattr(parts, parameter.name)
        if value is None and parameter.is_optional:
            continue
        if parameter.setting.check is not None:
            parameter.setting.check(parameter.name, value)
        elif parameter.setting.choices:
            check_choice(parameter.name, value, parameter.setting.choices)
        else:
            CHECKS[parameter.kind](parameter.name, value)


@dataclass_transform()
def with_parameters(cls: C) -> C:
    """Give an estimator the constructor, the search space and the docstring that its fields declare.

    {parameters} in its docstring becomes their section, {attributes} that of the fitted attributes that its bases
    describe. Values are checked by fit, as scikit-learn asks.
    """
    _declare(cls, frozen=False)
    cls.space = space_of(cls)  # type: ignore[attr-defined]
    if (former := cls.former) != Former():  # type: ignore[attr-defined]
        _accept(cls, former)
    return cls


@dataclass_transform(frozen_default=True)
def part(cls: C) -> C:
    """Give a loss, a penalty or an optimizer the constructor and the docstring that its fields declare.

    It is a frozen dataclass, whose values are checked when it is made.
    """
    if not hasattr(cls, "__post_init__"):
        cls.__post_init__ = check_declared  # type: ignore[attr-defined]
    _declare(cls, frozen=True)
    return cls


def _accept(cls: Any, former: Former) -> None:
    """Let the constructor of cls take former names and values, with a warning that has those of today."""
    constructor, names = cls.__init__, [parameter.name for parameter in declared(cls)]

    @wraps(constructor)
    def __init__(self: object, *values: Any, **parameters: Any) -> None:
        arguments = {**dict(zip(names, values, strict=False)), **parameters}
        current = former.current(arguments)
        if current == arguments:
            constructor(self, *values, **parameters)
            return
        changed = ", ".join(f"{name}={value!r}" for name, value in current.items() if arguments.get(name) is not value)
        warn(f"{cls.__name__}: write {changed}, as it is called since 0.3.0.")
        constructor(self, **current)

    cls.__init__ = __init__


def _declare(cls: type, *, frozen: bool) -> None:
    """Make a dataclass of cls. Raises TypeError where it is not known what a parameter must be.

    A value that cls gives to an inherited parameter is its default.
    """
    cls.__annotations__ = inspect.get_annotations(cls, eval_str=True)
    for base in cls.__mro__[1:]:
        for name, inherited in vars(base).get("__dataclass_fields__", {}).items():
            if name in vars(cls) and name not in cls.__annotations__:
                cls.__annotations__[name] = inherited.type
                setattr(cls, name, field(default=vars(cls)[name], kw_only=inherited.kw_only))
    dataclass(frozen=frozen, eq=frozen, repr=frozen)(cls)
    for parameter in declared(cls):
        if parameter.setting.check is None and not parameter.setting.choices and parameter.kind not in CHECKS:
            raise TypeError(f"{cls.__name__}.{parameter.name} has no check: give Param one, or choices.")
    vars(cls)["__init__"].__annotations__ = {parameter.name: parameter.type for parameter in declared(cls)}
    documented(cls)(cls)
    with_attributes(cls)
