"""The command `ranktune`: whatever happens, it ends with at most one message and an exit code, never with a traceback.

It imports nothing before the handlers are in place: an interrupt may come while the commands are loaded.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line (`ranktune.command_line.app`)."""
    for name in ("SIGTERM", "SIGHUP"):  # a request to end is an interrupt, from the first moment on
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        from ranktune.command_line.app import run

        run()
    except KeyboardInterrupt:
        _ignore_signals()
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except SystemExit as end:
        if end.code == 130:
            _ignore_signals()
        raise
    except Exception as error:  # before or after a command, such as a damaged installation
        from ranktune.command_line.crashes import crash

        crash(error)


def _ignore_signals() -> None:
    """Let an interrupted process end with its exit code: Python restores the default handlers while it finalizes."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
