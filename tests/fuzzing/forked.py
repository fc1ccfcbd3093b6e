"""Commands run in forks of one process that has loaded everything: what takes seconds to load is loaded once.

`python -m tests.fuzzing.forked` reads orders from standard input, a line of JSON each: the arguments of `ranktune`, the
variables of its environment, and the file for what it says. It answers each with the code that the process ended with.
What a command had to load that ended well is loaded here too, for those after it. Where FAULT_KIND is `closed`, the
command has a terminal, which is closed FAULT_THEN milliseconds after the fault came.
"""

import fcntl
import gc
import importlib
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from ranktune import cli

LOADED = (
    "ranktune.command_line.app",
    "ranktune.api",
    "ranktune.tuner.runner.engine",
    "ranktune.solvers.linear.rank_svm",
    "ranktune.dashboards.web.page",
    "polars",
)
"""Modules that every command loads, or most."""


class Forked:
    """A process that runs commands in forks of itself; a context manager."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzzing.forked"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def run(self, arguments: Sequence[str], said: Path, environment: Mapping[str, str] | None = None) -> int:
        """Run a command and return how it ended, -9 if it was killed; said gets what it writes to standard error."""
        self.begin(arguments, said, environment)
        return self.code()

    def begin(self, arguments: Sequence[str], said: Path, environment: Mapping[str, str] | None = None) -> None:
        """Begin to run a command; `code` waits for its end."""
        order = {"arguments": arguments, "said": str(said), "environment": dict(environment or {})}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def has_ended(self) -> bool:
        """Return whether the command that was begun has ended."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0.0)[0])

    def code(self) -> int:
        """Wait for the command that was begun, and return how it ended."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def _command(arguments: Sequence[str]) -> int:
    """Run a command in this process."""
    sys.argv = ["ranktune", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _obey(order: Mapping[str, object]) -> int:
    arguments, said = order["arguments"], str(order["said"])
    environment = order["environment"]
    assert isinstance(arguments, list) and isinstance(environment, dict)
    known, (reading, writing) = set(sys.modules), os.pipe()
    ends = pty.openpty() if environment.get("FAULT_KIND") == "closed" else None
    gc.freeze()  # so that a fork copies less
    child = os.fork()
    if child:
        os.close(writing)
        if ends:
            os.close(ends[1])
            _show(ends[0], reading, Path(said), environment)
        with os.fdopen(reading) as loaded:
            for name in loaded.read().split():
                with suppress(ImportError):  # names that a package makes up
                    importlib.import_module(name)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        if ends:
            os.close(ends[0])
            os.setsid()
            fcntl.ioctl(ends[1], termios.TIOCSCTTY, 0)
            os.dup2(ends[1], 0)
            os.dup2(ends[1], 2)
        os.dup2(2, 1)
        os.environ.update(environment)
        code = _command(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        if code == 0 and not environment.get("FAULT_AT"):
            os.write(writing, " ".join(sys.modules.keys() - known).encode())
    finally:
        os._exit(code)


def _show(terminal: int, over: int, said: Path, environment: Mapping[str, str]) -> None:
    """Read a terminal until the process at its other end is over; close it so long after the fault came."""
    closes = float("inf")
    with os.fdopen(terminal, "rb", buffering=0) as shown, said.open("ab", buffering=0) as file:
        while over not in (ready := select.select([terminal, over], [], [], 0.005)[0]) and time.monotonic() < closes:
            with suppress(OSError):  # nobody is at the other end any more
                file.write(shown.read(4096) if ready else b"")
            if closes == float("inf") and Path(environment["FAULT_LOG"]).exists():
                closes = time.monotonic() + 0.001 * int(environment["FAULT_THEN"])


def main() -> None:
    """Obey orders until there are no more. Nothing is run in this process: threads do not survive a fork."""
    for name in LOADED:
        importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(f"{_obey(json.loads(line))}\n")


if __name__ == "__main__":
    main()
