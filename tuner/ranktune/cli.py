"""The command `ranktune`: whatever happens, it ends with at most one message and an exit code, never with a traceback.

It imports nothing before the handlers are in place: an interrupt may come while the commands are loaded.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


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
        for number in (signal.SIGINT, signal.SIGTERM):  # it is ending
            signal.signal(number, _do_nothing)
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # before or after a command, such as a damaged installation
        from ranktune.command_line.crashes import crash

        crash(error)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass
