"""Fields that are declared once: name, type, default and meaning of each, from which signatures and docstrings come.

A declaration is a dataclass whose annotations are Annotated[type, FieldMeaning(...)]: the settings of a study and the
parameters of a solver. The module imports the standard library alone, because `ranktune --help` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from inspect import cleandoc
from textwrap import indent, wrap
from types import NoneType, UnionType
from typing import Any, ForwardRef, TypeVar, Union, get_args, get_origin

Documented = TypeVar("Documented", bound=Callable[..., object])


@dataclass(frozen=True)
class FieldMeaning:
    """What the declaration of a field says besides its type and default.

    help     for --help and docstrings
    python   a sentence that docstrings add
    choices  the values it can have, where they are a few texts
    kind     its type in docstrings, where that of the field does not say it
    """

    help: str
    python: str = ""
    choices: tuple[str, ...] = field(default=(), kw_only=True)
    kind: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class DeclaredField:
    """One field of a declaration; default is dataclasses.MISSING where a value is required."""

    name: str
    type: Any
    default: Any
    setting: Any
    keyword_only: bool

    @property
    def is_optional(self) -> bool:
        """Whether the value may be None."""
        return NoneType in get_args(self.type)

    @property
    def kind(self) -> object:
        """The type of a value that is not None."""
        kinds = [kind for kind in get_args(self.type) if kind is not NoneType]
        return kinds[0] if self.is_optional and len(kinds) == 1 else self.type

    def __str__(self) -> str:
        """Return the entry of a numpydoc section."""
        kinds = [_word(kind) for kind in _members(self.type) if self.default is not None or kind is not NoneType]
        if self.setting.choices:
            listed = ", ".join(f'"{choice}"' for choice in self.setting.choices)
            kinds = [f"{{{listed}}}" if kind == "str" else kind for kind in kinds]
        kind = self.setting.kind or " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        head = f"{self.name} : {kind}"
        if self.default is None:
            head += ", optional"
        elif self.default is not MISSING:
            head += f', default="{self.default}"' if isinstance(self.default, str) else f", default={self.default!r}"
        text = " ".join(filter(None, (self.setting.help, self.setting.python)))
        return f"{head}\n" + indent("\n".join(wrap(text, 108)), "    ")


@dataclass(frozen=True)
class Former:
    """What earlier versions called parameters and their values.

    names   former name -> name
    values  name -> former value -> value
    """

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def current(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters, or what is searched of them, with the names and values of today."""
        named = {self.names.get(name, name): value for name, value in parameters.items()}
        return {name: self.value(name, value) for name, value in named.items()}

    @property
    def inverse(self) -> Former:
        """What turns names and values of today into former ones."""
        names = {today: former for former, today in self.names.items()}
        values = {
            names.get(name, name): {today: former for former, today in former_values.items()}
            for name, former_values in self.values.items()
        }
        return Former(names, values)

    def value(self, name: str, value: Any) -> Any:
        """Return a value of a parameter of today, or a sequence of values, as it is called today."""
        if isinstance(value, list | tuple):
            return type(value)(self.value(name, item) for item in value)
        return self.values.get(name, {}).get(value, value) if isinstance(value, str) else value


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _word(kind: Any) -> str:
    """Return the name of a type as docstrings have it."""
    if kind is NoneType:
        return "None"
    name = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
    return re.sub("[a-z_.]+[.]", "", name.__name__ if isinstance(name, type) and not get_args(name) else str(name))


def declared(declaration: type) -> Iterator[DeclaredField]:
    """Yield the fields of a dataclass with annotations Annotated[type, FieldMeaning(...)], positional ones first."""
    for each in sorted(fields(declaration), key=lambda each: each.kw_only is True):
        kind, setting = get_args(each.type)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        yield DeclaredField(each.name, kind, default, setting, each.kw_only is True)


def documented(declaration: type) -> Callable[[Documented], Documented]:
    """Return a decorator that writes the fields of declaration into a docstring, in place of {parameters}."""

    def decorate(what: Documented) -> Documented:
        section = "Parameters\n----------\n" + "\n".join(map(str, declared(declaration)))
        what.__doc__ = _filled(what.__doc__, "parameters", section)
        return what

    return decorate


def _filled(docstring: str | None, name: str, section: str) -> str:
    """Return a docstring with a section in place of {name}, indented as that is: since Python 3.13, not at all."""
    text = docstring or ""  # python -OO removes it
    place = re.search(rf"^ *{{{name}}}", text, re.MULTILINE)
    return text if place is None else text.replace(place[0], indent(section, place[0].partition("{")[0]))


FITTED = re.compile(r"^([\w, ]*_) : .*(?:\n +.*)*", re.MULTILINE)
"""The entry of fitted attributes, whose names end with an underscore, in a section of a docstring."""


def with_attributes(cls: type) -> None:
    """Write the fitted attributes that the bases of cls describe into its docstring, in place of {attributes}.

    Below {attributes}, the docstring describes those that cls adds, and those that mean something else in it.
    """
    attributes, inherited = _fitted(cls), dict[str, str]()
    for base in reversed(cls.__mro__[1:]):
        inherited |= _fitted(base)
    entries = [entry for names, entry in inherited.items() if names not in attributes]
    cls.__doc__ = _filled(cls.__doc__, "attributes", "\n".join(("Attributes", "----------", *entries)))


def _fitted(cls: type) -> dict[str, str]:
    """Return what the docstring of cls says about fitted attributes, by their names."""
    text = cleandoc(vars(cls).get("__doc__") or "")
    section = re.search(r"^(?:Attributes\n-+|{attributes})\n(?:.+\n?)*", text, re.MULTILINE)
    return {entry[1]: entry[0] for entry in FITTED.finditer(section[0])} if section else {}
