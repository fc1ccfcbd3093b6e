"""The command line: parse, call, print. Results go to standard output, everything else to standard error.

Heavy modules are imported inside the commands, so that --help answers at once. Exit code 2: something that was given
cannot be, and the message says what; 3: the trials of a study failed one and all; 130: interrupted.
"""

from __future__ import annotations

import re
import sys
import warnings
from typing import Annotated, Any

import typer

from ranktune import model_commands, study_commands

app = typer.Typer(
    name="ranktune",
    help="Tune, select and ship ranking models.\n\n"
    "Give it documents grouped by query, with grades; it finds the model, says how sure it is, and saves it.\n\n"
    "Start here:  ranktune tune   (embedded example data)\n\n"
    "Your data:   ranktune tune train.txt --test test.txt --metric ndcg@10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=True,
)
for group in (study_commands.commands, model_commands.commands):
    app.registered_commands += group.registered_commands


@app.callback(invoke_without_command=True)
def version(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Tune, select and ship ranking models."""
    if show_version:
        from ranktune import __version__

        print(__version__)
        raise typer.Exit


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a person reads it, without the place in our source."""
    print(f"warning: {_printable(_as_options(str(message)))}", file=sys.stderr)


def _printable(text: str) -> str:
    """Return text without control characters: paths and what is quoted from files may hold any."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


_SPELT = {"one_based=False": "--zero-based", "solvers=": "--solver "}
"""Arguments whose option has another name or sense."""


def _as_options(message: str) -> str:
    """Return message with the arguments that the present command has as options written as such: --missing zero."""
    commands: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    command = next((commands[word] for word in sys.argv[1:] if word in commands), None)
    options = {p.name: p.opts[0] for p in command.params if p.opts[0].startswith("--")} if command else {}
    for argument, option in _SPELT.items():
        if option.strip() in options.values():
            message = message.replace(argument, option)

    def written(found: re.Match[str]) -> str:
        option = options.get(found["name"])
        value = found["value"].strip("'\"")
        return found[0] if option is None else f"{option} {value}"

    return re.sub(r"""(?<![\w.-])(?P<name>[a-z_]+)=(?P<value>'[^']*'|"[^"]*"|[\w.@-]*\w)""", written, message)


def main() -> None:
    """Run the command line; an error of ours is one message and exit code 2 or 3, never a traceback."""
    from ranktune.solvers.core.errors import AllFailed, RankTuneError
    from ranktune.tuner.workers.garbage import collect_seldom

    collect_seldom()
    warnings.showwarning = _show_warning
    try:
        app()
    except RankTuneError as error:
        print(f"error: {_printable(_as_options(str(error)))}", file=sys.stderr)
        sys.exit(3 if isinstance(error, AllFailed) else 2)
