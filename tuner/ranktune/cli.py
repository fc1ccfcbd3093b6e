"""The command `ranktune`: whatever happens, it ends with at most one message and an exit code, never with a traceback.

It imports nothing before the handlers are in place: an interrupt may come while the commands are loaded.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import stat
import sys
import time

BEGUN = time.monotonic() - time.process_time()
"""When this process began, by the steady clock: until here it has done nothing but compute."""
TYPE_CHECKING = False  # typing is not loaded before the handlers are in place
if TYPE_CHECKING:
    from typing_extensions import Buffer


class Terminal(io.FileIO):
    """A terminal; what is written to it once it is closed is dropped, and the command goes on to its end."""

    def write(self, data: Buffer, /) -> int:
        """Write data and return how many bytes were taken."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return memoryview(data).nbytes


def main() -> None:
    """Run the command line (`ranktune.command_line.app`)."""
    for name in ("SIGTERM", "SIGHUP"):  # a request to end is an interrupt, from the first moment on
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    _outlive_terminal()
    try:
        try:
            from ranktune.command_line.app import run

            run(BEGUN)
        finally:
            _keep_exit_code()
            gc.freeze()  # else the end looks for cycles among all objects, for a third of a second after a study
    except KeyboardInterrupt:
        _keep_exit_code()
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # before or after a command, such as a damaged installation
        from ranktune.command_line.crashes import crash

        crash(error)


def _outlive_terminal() -> None:
    """Let the command end as it would have if its terminal is closed meanwhile."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            number = stream.fileno() if os.name == "posix" else -1
        except (AttributeError, OSError):  # no file
            continue
        if number >= 0 and stat.S_ISCHR(os.fstat(number).st_mode):  # isatty says no of a terminal that is closed
            raw = io.BufferedWriter(Terminal(number, "w", closefd=False))
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=True))


def _keep_exit_code() -> None:
    """Let this process end with its exit code, whatever signals came and follow.

    Python restores the default handlers while it finalizes. It also ends itself by the signal where a KeyboardInterrupt
    has passed through exec, as when a dataclass is made, although it was caught; the next exec forgets that.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    exec("")
