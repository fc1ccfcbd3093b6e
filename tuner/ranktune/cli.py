"""The command `ranktune`: whatever happens, it ends with at most one message and an exit code, never with a traceback.

It imports nothing before the handlers are in place: an interrupt may come while the commands are loaded.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line (`ranktune.command_line.app`)."""
    try:
        from ranktune.command_line.app import run

        run()
    except KeyboardInterrupt:
        from ranktune.tuner.workers.interrupts import ignore_more

        ignore_more()
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:  # before or after a command, such as a damaged installation
        from ranktune.command_line.crashes import crash

        crash(error)
