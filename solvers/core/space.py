"""How a solver declares what can be tuned: named parameters, and when each of them is active.

Plain values without a tuning library: ranktune.tuner turns them into Optuna distributions. A name may be declared more
than once, under conditions that exclude each other, where what it can be depends on other parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

Value: TypeAlias = float | int | str | bool | None
"""A value of a parameter."""

Params: TypeAlias = Mapping[str, Value]
"""Values of parameters by name."""

OF_CONSTRUCTOR: Any = inspect.Parameter.empty
"""The default of a parameter that a solver declares: with_defaults replaces it by that of the solver's constructor."""


@dataclass(frozen=True)
class When:
    """A condition of a parameter: it is active only while another parameter has one of some values.

    Parameters
    ----------
    name : str
        The other parameter, declared before.
    values : tuple
        The values of it.

    Examples
    --------
    >>> from ranktune.solvers import Choice, Float, When
    >>> space = Choice("penalty", ("none", "l2"), "none"), Float("alpha", 0.1, 10.0, when=When("penalty", ("l2",)))
    """

    name: str
    values: tuple[Value, ...]


Conditions: TypeAlias = When | tuple[When, ...] | None
"""When a parameter is active: always, under one condition, or while several hold at once."""


@dataclass(frozen=True)
class Float:
    """A parameter that is a real number in [low, high].

    Parameters
    ----------
    name : str
        Its name, as the constructor of the solver has it.
    low, high : float
        Its range.
    default : float, optional
        What is tried first; by default that of the constructor.
    log : bool, default=False
        Whether it is searched on a logarithmic scale.
    when : When or tuple of When, optional
        Conditions that must all hold for it to be active.

    Examples
    --------
    >>> from ranktune.solvers import Float
    >>> Float("C", 1e-3, 1e3, 1.0, log=True).high
    1000.0
    """

    name: str
    low: float
    high: float
    default: float = OF_CONSTRUCTOR
    log: bool = False
    when: Conditions = None


@dataclass(frozen=True)
class Int:
    """A parameter that is a whole number in [low, high].

    Parameters
    ----------
    name, low, high, default, log, when
        As in Float; low, high and default are int.

    Examples
    --------
    >>> from ranktune.solvers import Int
    >>> Int("max_depth", 2, 12, 6).default
    6
    """

    name: str
    low: int
    high: int
    default: int = OF_CONSTRUCTOR
    log: bool = False
    when: Conditions = None


@dataclass(frozen=True)
class Choice:
    """A parameter with a few values without an order.

    Parameters
    ----------
    name : str
        Its name, as the constructor of the solver has it.
    choices : tuple of float, int, str, bool or None
        Its values.
    default : float, int, str, bool or None, optional
        What is tried first; by default that of the constructor.
    when : When or tuple of When, optional
        Conditions that must all hold for it to be active.

    Examples
    --------
    >>> from ranktune.solvers import Choice
    >>> Choice("loss", ("hinge", "squared"), "hinge").choices
    ('hinge', 'squared')
    """

    name: str
    choices: tuple[Value, ...]
    default: Value = OF_CONSTRUCTOR
    when: Conditions = None


Parameter: TypeAlias = Float | Int | Choice


def conditions(parameter: Parameter) -> tuple[When, ...]:
    """Return the conditions that must all hold for parameter to be active."""
    when = parameter.when
    return (when,) if isinstance(when, When) else when or ()


def with_defaults(space: Sequence[Parameter], constructor: Callable[..., object]) -> tuple[Parameter, ...]:
    """Return space with the defaults of constructor, so that the first trial of a solver is the solver as it is made.

    A further declaration of a name, which is not active in that trial, keeps its default. Raises TypeError for
    a parameter without a default.
    """
    signature = inspect.signature(constructor).parameters
    defaults = {name: each.default for name, each in signature.items() if each.default is not inspect.Parameter.empty}
    for parameter in space:
        if parameter.default is OF_CONSTRUCTOR and parameter.name not in defaults:
            raise TypeError(f"the search space declares '{parameter.name}', for which __init__ has no default.")
    first = {parameter.name: parameter for parameter in reversed(space)}
    return tuple(
        replace(parameter, default=defaults[parameter.name])
        if parameter.name in defaults and (parameter is first[parameter.name] or parameter.default is OF_CONSTRUCTOR)
        else parameter
        for parameter in space
    )


def up_to(parameter: Float | Int, value: float, most: int, *, rising: bool = True) -> tuple[float | int, ...]:
    """Return at most so many values of parameter, value last, evenly spaced on its scale from one end of its range.

    That is its low end, or its high end unless rising. Where value lies beyond that end, it is the only value.
    """
    first = parameter.low if rising else parameter.high
    if most < 2 or (first >= value if rising else first <= value):
        return (value,)
    spaced = np.geomspace if parameter.log else np.linspace
    between: list[float | int] = spaced(first, value, most)[:-1].tolist()
    if isinstance(parameter, Int):
        between = [each for each in dict.fromkeys(round(each) for each in between) if each != value]
    return (*between, value)


def middle(parameter: Float | Int) -> float:
    """Return the middle of the range of parameter, on its scale."""
    ends = float(parameter.low), float(parameter.high)
    centre = float(np.sqrt(ends[0]) * np.sqrt(ends[1])) if parameter.log else ends[0] / 2.0 + ends[1] / 2.0
    return min(max(centre, ends[0]), ends[1])


def is_active(parameter: Parameter, values: Params) -> bool:
    """Return whether parameter matters under values, which hold every parameter declared before it."""
    return all(when.name in values and values[when.name] in when.values for when in conditions(parameter))


def defaults(space: Sequence[Parameter]) -> dict[str, Value]:
    """Return the default of every active parameter, in the order of declaration."""
    values: dict[str, Value] = {}
    for parameter in space:
        if is_active(parameter, values):
            values[parameter.name] = parameter.default
    return values
