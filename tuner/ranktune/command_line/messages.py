"""Messages at the command line: help in panels, the streams that all go through, options in place of arguments."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable
from typing import Any, TextIO, TypeAlias

from typer.core import TyperCommand, TyperGroup

from ranktune.arguments import ELSEWHERE, DataArguments
from ranktune.command_line.options import COLUMNS, LISTED, OPTIONS, OUTPUT, PANELS
from ranktune.solvers.core.declared import DeclaredField
from ranktune.solvers.core.errors import printable, without_secrets
from ranktune.solvers.data.columns.decisions import ColumnQuestion, by_option

Click: TypeAlias = Any
"""A context, command, parameter, formatter or error of Click, of which newer versions of Typer have their own."""
COMMANDS = {
    "Tune": "tune resume show one-pass solvers",
    "Use a model": "predict evaluate explain export",
    "Every day": "retune watch interleave",
    "Data": "data clicks",
    "More": "docs reproduce",
}
"""Groups of commands in the list of them."""
COMMANDS_ELSEWHERE = {
    "compare": "evaluate A DATA --against B",
    **dict.fromkeys(("train", "fit", "search", "optimize", "optimise"), "tune"),
    **dict.fromkeys(("score", "rank"), "predict"),
    **dict.fromkeys(("test", "eval"), "evaluate"),
    "run": "tune STUDY.toml",
    "worker": "resume NAME --join",
    **dict.fromkeys(("list", "ls", "studies"), "show"),
    "report": "show NAME --page FILE",
    "dashboard": "show --live",
    "convert": "data DATA --output FOLDER",
    "warm": "solvers --warm",
    "ship": "export MODEL --replay DATA --to URL",
    "mlflow": "tune DATA --name STUDY --mlflow URI, which logs a finished study too",
    "history": "retune NAME --history",
    "rollback": "retune NAME --rollback VERSION",
    "note": "tune --name NAME, the name says what a study is; show lists the notes and tags of earlier releases",
    "related": "predict MODEL FOLDER/test.csv, of the files that `python -m ranktune.studies.api_search FOLDER` writes",
}
"""Words for commands, and what does that here."""
OPTIONS_GONE = {
    "--format": "Of a study `ranktune show NAME --format` prints the table.",
    **dict.fromkeys(("--token", "--token-file"), "Give the token by the environment: RANKTUNE_TOKEN."),
    "--optuna": "The record is an Optuna study: optuna-dashboard sqlite:///COPY of its record.db shows it.",
    "--two-stage": "Export the model alone, and let the engine score the first documents of a cheaper ranking by it: "
    "`ranktune docs howto/serving`.",
}
"""Options of earlier releases, and what to do instead."""
ANSWER = "All answers at once, which you may change:"
"""What stands before the command that answers all decisions."""
_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_EQUIVALENTS = {
    "one_based=False": "--zero-based",
    "ranktune.register_metric": "--metric module:name",
    "ranktune.register_solver": "--solver module:Name",
    "ranktune.api.work": "--join",
    "ranktune.convert": "`ranktune data --output`",
    "ranktune.load_model and predict": "`ranktune predict`",
    ", a data frame, (X, y, qid)": "",
    'Pass layout="sparse"': "Convert them: `ranktune data --output`",
    ", or raise max_features": "",
    ", or raise max_expansion": "",
    ", or pass qid= or group=": "",
    ", or give the frame of pandas.read_excel": "",
}
"""What does at the command line what an argument or a function does in Python, where their names differ."""
_QUOTES = "'\""
_ITEM = re.compile(r"""(?<![\w.-])(?P<name>[a-z_]+)=\{'(?P<key>\w+)': '?(?P<value>[^'}]+)'?\}""")
"""An argument whose value is a dictionary of one item (columns={'click': 'NAME'})."""
_ARGUMENT = re.compile(
    r"""(?<![\w.'-])(?P<name>[a-z_]+)=(?:(?P<value>'[^']*'|"[^"]*"|\['[^]]*'\]|[\w.@-]*\w)|(?=[\s.,:;)]|$))"""
)
"""An argument in a message, with a value (missing='zero') or without (name=)."""


class Shield:
    """A stream that passes on printable text and newlines: no terminal obeys what is printed.

    The colours of the program go to the stream behind it, by `Screen` of ranktune.dashboards.terminal.tables.
    """

    def __init__(self, stream: TextIO) -> None:
        self.behind = stream

    def write(self, text: str) -> int:
        """Write text, and return its length."""
        self.behind.write(printable(text, keep="\n"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write all lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.behind, name)


def shield() -> None:
    """Let all that is printed from here on be printable, also in an encoding that lacks some of its characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w")  # Python has none where the descriptor is closed
        if not isinstance(stream, Shield):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, Shield(stream))


def as_options(message: str, root: Click, of: str = "") -> str:
    """Return message with arguments of Python written as options, missing='zero' as --missing zero.

    A value may be one of a solver's parameter, which has the name of another command's option: an argument with a value
    is an option of the current command, one without of the first that has it, which is named where it is another. Where
    `of` names a command, the arguments are its own, whichever is run.
    """
    commands: dict[str, Click] = getattr(root, "commands", {})
    command = next((commands[word] for word in (of, *sys.argv[1:]) if word in commands), root)
    in_file = {field.name for field in file_fields(command)}
    options, others = (
        {each.name: (each.opts[0], of.name) for of in reversed(some) for each in of.params if each.opts[0][:2] == "--"}
        for some in ([command], [command, *commands.values()])
    )
    owners = dict(others.values())

    def whole(option: str) -> str:
        owner = owners.get(option.split()[0], command.name)
        return option if owner == command.name else f"`ranktune {owner} {option}`"

    for in_python, option in _EQUIVALENTS.items():
        message = re.sub(rf"{re.escape(in_python)}(?!\w)", whole(option) if option else "", message)

    def as_option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name in in_file:
            text = "" if value is None else f" = {value}".replace("True", "true")
            return f"{name}{text} (study file)"
        parameter = options.get(name) or (others.get(name) if value is None else None)
        if parameter is None:
            return match[0]
        if value is None or value == "True":
            return whole(parameter[0])
        values = value[1:-1].split(", ") if value[0] == "[" else [value]
        return " ".join(f"{parameter[0]} {shlex.quote(each.strip(_QUOTES))}" for each in values)

    def as_pair(match: re.Match[str]) -> str:
        name, pair = match["name"], f"{match['key']}={match['value']}"
        if name in in_file:
            return f'{name} = "{pair}" (study file)'
        return f"{options[name][0]} {pair}" if name in options else match[0]

    return _ITEM.sub(as_pair, _ARGUMENT.sub(as_option, message))  # what as_pair writes is no argument


def answering(decisions: Iterable[ColumnQuestion], root: Click) -> str:
    """Return a line, and below it the command that was given, of `data` that of `tune`, with the answers of decisions.

    It is empty where the command has no options for them, as one that reads a file.
    """
    words, answers = sys.argv[1:], by_option(decisions)
    at = next((place for place, word in enumerate(words) if word in root.commands), len(words))
    if words[at : at + 1] == ["data"]:
        words[at:] = ["tune", *(word for word in words[at + 1 :] if word not in ("--json", "--wide"))]
    fields = {parameter.name for word in words[at : at + 1] for parameter in root.commands[word].params}
    if not answers.keys() <= fields:
        return ""
    drop = answers.pop("drop", [])
    alone = [name for name in drop if "," in name or name != name.strip()]  # else they would be split
    values = [(option, names[-1]) for option, names in answers.items()]
    values += [("drop", ",".join(name for name in drop if name not in alone)), *(("drop", name) for name in alone)]
    options = [word for name, value in values if value for word in (f"--{name.replace('_', '-')}", value)]
    return f"{ANSWER}\n{without_secrets(shlex.join(['ranktune', *words, *options]))}"


def file_fields(command: Click) -> list[DeclaredField]:
    """Return the fields of study files that a command has no option for."""
    return getattr(command.callback, "in_file", [])


def _line(field: DeclaredField, words: Iterable[str], option: str) -> str:
    """Return a field of a study file with the value that its option was given on the command line."""
    after = re.search(rf"{option}[= ](.*?)(?: -|$)", " ".join(words))
    value = after[1] if after else ""
    if isinstance(field.default, bool):
        value = json.dumps(not field.default)
    elif field.kind not in (int, float):
        value = json.dumps(value, ensure_ascii=False)
    return f"{field.name} = {value}"


def _write_panel(formatter: Click, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def _panel(command: Click, parameter: Click) -> str:
    """Return the panel of an argument or option; one of studies where the command runs any."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    panel = LISTED.get(parameter.name, COLUMNS if hasattr(DataArguments, parameter.name) else OPTIONS)
    return panel if file_fields(command) or panel in (COLUMNS, OUTPUT) else OPTIONS


class Command(TyperCommand):
    """A command whose help has panels, and whose errors of usage say what was given, and what it is called here."""

    def format_options(self, ctx: Click, formatter: Click) -> None:
        """Write the arguments, and the options in panels."""
        rows = [(_panel(self, each), each.get_help_record(ctx)) for each in self.get_params(ctx)]
        for title in ("Arguments", *PANELS):
            _write_panel(formatter, title, [row for panel, row in rows if row and panel == title])

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """Parse the words after the command."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # the classes of usage errors differ between versions of Typer
            if hasattr(error, "format_message"):
                _amend(error, self, words)
            raise


class Commands(TyperGroup):
    """The commands in groups; an unknown one is answered with what does that here."""

    def format_options(self, ctx: Click, formatter: Click) -> None:
        """Write the commands, and the options below them."""
        for title, names in COMMANDS.items():
            helps = [(name, self.commands[name].get_short_help_str(66)) for name in names.split()]
            _write_panel(formatter, title, helps)
        rows = [row for each in self.get_params(ctx) if (row := each.get_help_record(ctx))]
        _write_panel(formatter, OPTIONS, rows)

    def resolve_command(self, ctx: Click, args: list[str]) -> Click:
        """Return the command of the first word."""
        word = args[0] if args else ""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if word in COMMANDS_ELSEWHERE and hasattr(error, "message"):
                error.message = f"No such command '{word}'. Here it is: ranktune {COMMANDS_ELSEWHERE[word]}."
            raise


def _amend(error: Click, command: Click, words: list[str]) -> None:
    """Add to an error of usage what was given and the remedy."""
    by_name = {parameter.name: parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("--")}
    unknown = str(getattr(error, "option_name", None))
    word = unknown.lstrip("-").replace("-", "_")
    name = ELSEWHERE.get(word, word).removeprefix("no_")
    is_elsewhere = word in ELSEWHERE and name in by_name
    remedy = f"Here it is called {by_name[name]}." if is_elsewhere else OPTIONS_GONE.get(unknown, "")
    for field in file_fields(command):
        if name == field.name or unknown in field.setting.options:
            line = _line(field, words, unknown)
            remedy = f'It is a field of study files: write {line} and data = "FILE" into STUDY.toml, and run: ranktune '
            remedy = f"{remedy}tune STUDY.toml. " * (command.name != "retune")
            remedy += f"In Python it is {field.name}= of ranktune.{command.name}."
    if remedy:
        error.message, error.possibilities = f"No such option: {unknown}. {remedy}", []
    elif "extra argument" in error.message and "test" in by_name:
        error.message += ". One argument is the training data: further data go into --test or --vali."
    opts = getattr(getattr(error, "param", None), "opts", ())
    place = next((k for k, word in enumerate(words[:-1]) if word in opts), None)
    if place is not None and "Input should" in error.message:
        value = words[place + 1]
        error.message = f"{value!r} was given. {error.message}."
        time = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]+)", value)
        if time is not None and time[2] in _SECONDS:
            error.message += f" In seconds it is {float(time[1]) * _SECONDS[time[2]]:g}."
