"""The last handler of the command line: an error that nothing else handles becomes one message and a crash file.

The message says what was being done and what happened. The file, which only the user can read, has the traceback for a
report. RANKTUNE_DEBUG=1 prints the traceback as well.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import NoReturn, ParamSpec

import typer

from ranktune.command_line.messages import shield
from ranktune.solvers.core.errors import RankTuneError

Parameters = ParamSpec("Parameters")

CRASHED = 70
"""Exit code of an error that nothing else handles (EX_SOFTWARE)."""
DEBUG = "RANKTUNE_DEBUG"
MOST = 300
"""Characters of an error's own text in the message."""


def is_debugging() -> bool:
    """Return whether tracebacks are to be printed."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def handled(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Return a command whose unexpected errors end the process with one message, those after an interrupt with it."""

    @wraps(command)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        from ranktune.solvers.core.files.atomic import naming, refusal_of
        from ranktune.tuner.workers.interrupts import Interrupts

        shield()
        try:
            with Interrupts():
                command(*args, **kwargs)
            with naming(Path("standard output")):
                sys.stdout.flush()
        except (RankTuneError, typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:  # nobody reads the output
                raise
            _drop_output()
            if refusal := refusal_of(error):
                raise RankTuneError(refusal) from error
            crash(error)

    return call


def _drop_output() -> None:
    """Drop what standard output does not take: Python would fail by it once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def crash(error: Exception) -> NoReturn:
    """End the process with the message of an error that nothing else handles."""
    print_traceback(error)
    print(f"error: {report_crash(error)}", file=sys.stderr)
    sys.exit(CRASHED)


def report_crash(error: BaseException) -> str:
    """Write the crash file of an error, and return the message."""
    from ranktune.solvers.core.errors import printable, without_secrets
    from ranktune.tuner.study.secrets import command_line

    text = without_secrets(" ".join(str(error).split()))
    text = text if len(text) <= MOST else f"{text[: MOST - 3]}..."
    command = command_line()
    path = _written(without_secrets(_details(error, command)))
    where = f"The details are in {path}" if path else f"Set {DEBUG}=1 to see the details"
    return printable(
        f"`{command}` was ended by {_cause(error)}{': ' if text else ''}{text}. {where}; {_remedy(error)}."
    )


def _is_lack_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _cause(error: BaseException) -> str:
    if _is_lack_of_memory(error):
        return "a lack of memory"
    return (
        f"{'an error of the system' if isinstance(error, OSError) else 'an unexpected error'}, {type(error).__name__}"
    )


def _remedy(error: BaseException) -> str:
    if _is_lack_of_memory(error):
        return "give it more memory or less data"
    return "please report it with that file"


def _details(error: BaseException, command: str) -> str:
    from ranktune import __version__

    about = (
        f"RankTune {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {command}",
        f"time: {datetime.now(UTC).isoformat(timespec='seconds')}",
    )
    return "\n".join(about) + "\n\n" + "".join(traceback.format_exception(error))


def _written(text: str) -> Path | None:
    """Write a crash file into the cache folder, else into the folder of temporary files; None if neither takes it."""
    import secrets

    from ranktune.solvers.core.files.atomic import atomic_write
    from ranktune.solvers.core.files.private import private_folder

    name = f"crash-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.txt"
    folders: tuple[Callable[[], Path], ...] = (
        lambda: private_folder("crashes"),
        lambda: Path(tempfile.gettempdir()),
    )
    for folder in folders:
        with suppress(OSError, RuntimeError):  # Path.expanduser raises RuntimeError without a home
            path = folder() / name
            atomic_write(path, text.encode(errors="backslashreplace"), mode=0o600)
            return path
    return None


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an error if the user asked for it."""
    if is_debugging():
        from ranktune.solvers.core.errors import without_secrets

        print(without_secrets("".join(traceback.format_exception(error))), file=sys.stderr)
