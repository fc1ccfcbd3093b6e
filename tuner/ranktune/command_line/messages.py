"""Messages of Python as the command line shows them: with options in place of arguments."""

from __future__ import annotations

import re
import sys
from typing import Any

_EQUIVALENTS = {
    "one_based=False": "--zero-based",
    "ranktune.register_metric": "--metric module:name",
    "ranktune.register_solver": "--solver module:Name",
    "ranktune.work": "--join",
    "ranktune.load_model and predict": "`ranktune predict`",
    ", a data frame, (X, y, qid)": "",
}
"""What does at the command line what an argument or a function does in Python, where their names differ."""
_ITEM = re.compile(r"""(?<![\w.-])(?P<name>[a-z_]+)=\{'(?P<key>\w+)': '?(?P<value>[^'}]+)'?\}""")
"""An argument whose value is a dictionary of one item (columns={'click': 'NAME'})."""
_ARGUMENT = re.compile(r"""(?<![\w.-])(?P<name>[a-z_]+)=(?:(?P<value>'[^']*'|"[^"]*"|[\w.@-]*\w)|(?=[\s.,:;)]|$))""")
"""An argument in a message, with a value (missing='zero') or without (name=)."""


def as_options(message: str, root: Any) -> str:
    """Return message with arguments of Python written as options, missing='zero' as --missing zero.

    A value may be one of a solver's parameter, which has the name of another command's option: an argument with a value
    is an option of the current command, one of those of root.
    """
    for in_python, option in _EQUIVALENTS.items():
        message = re.sub(rf"{re.escape(in_python)}(?!\w)", option, message)
    commands: dict[str, Any] = getattr(root, "commands", {})
    current: list[Any] = next((commands[word].params for word in sys.argv[1:] if word in commands), [])
    every = [parameter for command in commands.values() for parameter in command.params]
    options, others = (
        {parameter.name: parameter for parameter in parameters if parameter.opts[0].startswith("--")}
        for parameters in (current, every)
    )

    def as_option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        parameter = options.get(name) or (others.get(name) if value is None else None)
        if parameter is None:
            return match[0]
        if value is None or value == "True":
            return str(parameter.opts[0])
        shown = value.strip("'\"")
        return f"{parameter.opts[0]} {shown}"

    def as_pair(match: re.Match[str]) -> str:
        parameter = options.get(match["name"])
        return match[0] if parameter is None else f"{parameter.opts[0]} {match['key']}={match['value']}"

    return _ITEM.sub(as_pair, _ARGUMENT.sub(as_option, message))  # what as_pair writes is no argument
