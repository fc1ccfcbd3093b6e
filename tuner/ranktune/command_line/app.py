"""The commands together: parse, call, print. Results go to standard output, everything else to standard error.

Modules that load libraries are imported inside the commands, so that --help is instant. Exit code 1: `watch` found
drift; 2: invalid input, which the message names; 3: all trials of a study failed; 4: --fail-unless-better, and the
model is not better; 10 and 11: retune decided to refit or to replace; 70: an unexpected error
(`ranktune.command_line.crashes`); 130: interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ranktune.command_line import click_commands, crashes, docs_command, model_commands, pass_commands, study_commands
from ranktune.command_line.messages import Command, Commands, answering, as_options, shield
from ranktune.command_line.options import with_format
from ranktune.command_line.production import interleave, retune

app = typer.Typer(
    name="ranktune",
    cls=Commands,
    help="Tune, select and ship ranking models.\n\n"
    "Input: documents grouped by query, with grades. Output: a chosen model, with confidence intervals, saved.\n\n"
    "Start here:  ranktune tune   (embedded example data)\n\n"
    "Your data:   ranktune tune train.txt --test test.txt --metric ndcg@10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=True,
)
GROUPS = (
    *(study_commands, retune, pass_commands),
    *(click_commands, interleave, model_commands, docs_command),
)
for group in GROUPS:
    for command in group.commands.registered_commands:
        assert command.callback is not None
        command.callback = crashes.handled(
            with_format(command.callback)
        )  # before Typer, to which EOFError is a user's "no"
        command.cls = Command
        app.registered_commands.append(command)


@app.callback(invoke_without_command=True)
def version(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not read converted files from the cache, nor write them to it.")
    ] = False,
) -> None:
    """Tune, select and ship ranking models."""
    if no_cache:
        os.environ["RANKTUNE_DATA_CACHE"] = "off"  # worker processes read it too
    if show_version:
        from ranktune import __version__

        print(__version__)
        raise typer.Exit


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning without its place in the source."""
    print(f"warning: {_readable(message)}", file=sys.stderr)


def _readable(message: object, of: str = "") -> str:
    """Return a message with arguments written as options, of the current or of another command."""
    return as_options(str(message), typer.main.get_command(app), of)


def run(begun: float) -> None:
    """Run the command line of a process that began at a moment of the steady clock, from which time limits count.

    A RankTuneError is one message and exit code 2 or 3, never a traceback.
    """
    from ranktune.second_signal import second_signal_ends
    from ranktune.solvers.core.errors import SPELLINGS, AllFailed, RankTuneError
    from ranktune.solvers.core.table import FOLDERS
    from ranktune.solvers.data.columns.decisions import Undecided
    from ranktune.tuner.study.deadline import limits_of_command

    gc.set_threshold(10_000)  # loading the libraries makes half a million lasting objects
    warnings.showwarning = _show_warning
    shield()
    with suppress(OSError):  # a folder that was removed
        FOLDERS[:] = [str(Path.cwd())]  # where modules of the user's are: --solver module:Name
    SPELLINGS.append(partial(_readable, of="tune"))
    try:
        with second_signal_ends(), limits_of_command(begun):
            app()
    except RankTuneError as error:
        crashes.print_traceback(error)
        command = answering(error.decisions, typer.main.get_command(app)) if isinstance(error, Undecided) else ""
        message = f"{error.asked}\n" if isinstance(error, Undecided) and command else error
        print(f"error: {_readable(message)}{command}", file=sys.stderr)
        sys.exit(3 if isinstance(error, AllFailed) else 2)
    finally:
        SPELLINGS.pop()
