"""The solvers that a study can name, as a person reads about them."""

from __future__ import annotations

import inspect
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from ranktune.dashboards.terminal.tables import table, titled
from ranktune.solvers.base.ranker import BaseRanker, LinearRanker
from ranktune.solvers.core.space import Choice, Parameter
from ranktune.solvers.registry import NAMES, SOLVERS, STANDARD, loadable, solver_class


def all_solvers() -> list[dict[str, Any]]:
    """Return name, summary, model, standard, parameters of every solver; a warning says what to install for others."""
    return [
        {
            "name": name,
            "summary": _summary(solver),
            "model": "linear" if issubclass(solver, LinearRanker) else "trees",
            "online": hasattr(solver, "progressive"),
            "standard": name in STANDARD,
            "parameters": [parameter.name for parameter in solver.space],
        }
        for name, solver in ((name, SOLVERS[name]) for name in loadable(NAMES))
    ]


def solvers_table(found: list[dict[str, Any]]) -> RenderableType:
    """Return the solvers as a table, a row each."""
    told = table(("solver", "what it is", "model"), ("tuned",))
    for one in found:
        marks = ("*" if one["standard"] else "") + (" o" if one["online"] else "")
        told.add_row(
            f"{one['name']} {marks}".rstrip(), escape(one["summary"]), one["model"], str(len(one["parameters"]))
        )
    told.caption = "* competes unless others are named, o learns from query to query (--plan progressive)"
    return titled("Solvers", told)


def solver_page(name: str) -> RenderableType:
    """Return what one solver is, and what is tuned in which range."""
    solver = solver_class(name)
    ranges = table(("parameter", "range", "first", "only if"))
    for parameter in solver.space:
        when = "" if parameter.when is None else f"{parameter.when.name}: {', '.join(map(str, parameter.when.values))}"
        ranges.add_row(parameter.name, _range(parameter), str(parameter.default), when)
    return Group(Text(f"{solver.__name__}: {inspect.getdoc(solver)}"), "", ranges)


def _summary(solver: type[BaseRanker]) -> str:
    return (inspect.getdoc(solver) or "").split("\n\n")[0].replace("\n", " ").split(":")[0].rstrip(".")


def _range(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return ", ".join(str(choice) for choice in parameter.choices)
    return f"{parameter.low:g} to {parameter.high:g}{', logarithmic' if parameter.log else ''}"
