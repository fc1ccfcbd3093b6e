"""What a message tells people to do exists where they read it: options of commands, arguments, commands."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pydoc import locate
from typing import Any, get_type_hints

import pytest
import typer

from ranktune.command_line.app import app
from ranktune.command_line.messages import as_options
from ranktune.solvers.data.readers.parsing.options import LoadOptions
from tests.support.paths import parsed

FOLDERS = ("solvers", "tuner", "dashboards")
SHOWN = ("solvers/data", "solvers/metrics", "solvers/rankings", "tuner", "dashboards")
"""What commands read and print; the others are asked in Python too."""
ROOT: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = ROOT.commands
OPTIONS = {
    word for command in COMMANDS.values() for each in command.params for word in (*each.opts, *each.secondary_opts)
}
ARGUMENTS = {each.name for command in COMMANDS.values() for each in command.params}
REMEDY = re.compile(r"(?i)\b(pass|give|use|leave|add|raise|choose|set|write|read|name it|take|call|convert|make)\b")
OF_OTHERS = {"--data-binary": "curl", "--editable": "pip", "--head": "ray", "--help": "every command"}
IN_PYTHON = {
    "has_missing": "of Queries, which no command takes",
    "free_raw_data": "of a lightgbm.Dataset",
    "save": "of register_solver",
    "trusted": "of register_solver",
    "enable_metadata_routing": "of scikit-learn",
    "replicates": "of a sampler that is an object",
    "prior": "of a dimension of scikit-optimize",
    "custom": "of a study that is declared in Python",
}
"""Arguments of functions whose mistakes no command makes."""
OF_METRICS = {"gain", "highest", "ties", "empty", "relevant", "p"}
"""Parts of the name of a metric."""
EXAMPLES = {"price", "bm25", "purchase", "colour"}


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are no docstrings, with a letter for what is filled in."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inner.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


@cache
def messages() -> list[tuple[str, str]]:
    """Return the place and the text of everything that says what to do."""
    files = (path for folder in FOLDERS for path in sorted(Path(folder).rglob("*.py")))
    return [
        (f"{path.as_posix()}:{line}", text)
        for path in files
        for line, text in strings(parsed(path))
        if " " in text and REMEDY.search(text)
    ]


def named(text: str) -> list[str]:
    """Return the arguments that a text names, NAME=VALUE or NAME=."""
    return re.findall(r"""(?<![\w.'"*,{-])([a-z_]{2,})=(?=['"\[\w]|[\s.,:;)]|$)""", text)


def test_there_are_messages_to_look_at() -> None:
    assert len(messages()) > 500 and sum(bool(named(text)) for _, text in messages()) > 100


def test_options_that_are_named_exist() -> None:
    wrong = [
        (place, option)
        for place, text in messages()
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)
        if option not in OPTIONS | OF_OTHERS.keys()
    ]
    assert not wrong


def test_commands_that_are_named_exist_and_have_the_options() -> None:
    wrong = []
    for place, text in messages():
        for command, rest in re.findall(r"`ranktune ([a-z]+)([^`]*)`", text):
            has = {word for each in COMMANDS[command].params for word in each.opts} if command in COMMANDS else set()
            lacks = set(re.findall(r"--[a-z][\w-]*", rest)) - has - {"--help"}
            wrong += [(place, command, lacks)] * (not has or bool(lacks))
    assert not wrong


def test_what_a_command_shows_names_no_argument_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ranktune", "tune"])
    known = ARGUMENTS | IN_PYTHON.keys() | OF_METRICS | EXAMPLES
    readers = {*get_type_hints(LoadOptions)} - ARGUMENTS - {"group", "session"}
    wrong = []
    for place, text in messages():
        if place.startswith(SHOWN):
            shown = as_options(text, ROOT)
            wrong += [(place, name) for name in named(shown) if name not in known]
            wrong += [(place, name) for name in readers if re.search(rf"(?i)\b(pass|raise) {name}\b", shown)]
            wrong += [(place, "np.") for _ in re.findall(r"\bnp\.|\bnumpy\.float", shown)]
    assert not wrong


def test_functions_that_are_named_exist() -> None:
    called = ((place, name) for place, text in messages() for name in re.findall(r"\branktune(?:\.\w+)+", text))
    assert not [(place, name) for place, name in called if locate(name) is None]


@cache
def parameters() -> set[str]:
    """Return the names of all parameters and fields of the product."""
    names: set[str] = set()
    for folder in FOLDERS:
        for path in Path(folder).rglob("*.py"):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.arg):
                    names.add(node.arg)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    names.add(node.target.id)
    return names


def test_arguments_that_are_named_exist() -> None:
    others = OF_METRICS | EXAMPLES | IN_PYTHON.keys()
    assert not [
        (place, name) for place, text in messages() for name in named(text) if name not in parameters() | others
    ]
