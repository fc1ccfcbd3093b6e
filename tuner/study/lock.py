"""The lock of a study: one process at a time runs it, and writes into the lock file who it is.

The lock is the operating system's, which releases it however the holder ends. The text in the file is for messages, and
for dashboards, which show whether the study is running. The text and the lock share one file, on Windows apart from
each other; libraries for file locks may truncate theirs, and lock its first byte.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

from ranktune.solvers.core.errors import StudyError, printable
from ranktune.solvers.core.files.atomic import boot, is_alive, started, try_lock
from ranktune.tuner.study.secrets import command_line

LOCK = "lock"
PATIENCE = 1.0
"""Seconds until a new holder has written who it is, and until the lock of a dead one is free."""
_COMMAND_LENGTH = 200


@dataclass(frozen=True)
class Holder:
    """A process that runs a study.

    began is when it took the lock (ISO, UTC). started identifies it among processes of the same number by the boot of
    the machine and the start of the process, "" if the system does not say; host and command likewise.
    """

    pid: int
    host: str = ""
    began: str = ""
    started: str = ""
    command: str = ""

    @classmethod
    def here(cls) -> Self:
        """Return this process."""
        pid, now = os.getpid(), datetime.now(UTC).isoformat(timespec="seconds")
        return cls(pid, socket.gethostname(), now, started(pid), _command())

    def alive(self) -> bool:
        """Return whether it still runs; True if that is unknown here, as on another host."""
        its, here = self.started.partition(":")[0], boot()
        if self.host not in ("", socket.gethostname()) and (not its or its != here):
            return True
        if its and here and its != here:  # the machine was started again
            return False
        return is_alive(self.pid, self.started)

    def __str__(self) -> str:
        """Return who it is: process 12 on host-a since 2026-01-31 09:00:00 (ranktune tune a.txt)."""
        text = f"process {self.pid}"
        if self.host:
            text += f" on {self.host}"
        with suppress(ValueError):
            text += f" since {datetime.fromisoformat(self.began).astimezone():%Y-%m-%d %H:%M:%S}"
        if self.command:
            text += f" ({self.command})"
        return printable(text)


class BeingRun(StudyError):
    """Another process runs the study: holder, None if unknown; said is the message without what can be done."""

    def __init__(self, name: str, holder: Holder | None) -> None:
        self.sentence = f"study '{name}' is being run by {holder or 'another process'}"
        super().__init__(f"{self.sentence}. Wait for it, help it by ranktune.api.work, or choose another name (name=).")
        self.holder = holder


@contextmanager
def owning(folder: Path) -> Iterator[None]:
    """Hold the lock of the study in folder, which is created if missing. Raises BeingRun if another process holds it.

    The block may remove the lock file and the folder.
    """
    try:
        file = _taken(folder)
        with suppress(OSError):  # a full disk: the holder stays unnamed
            _write(file, json.dumps(asdict(Holder.here())))
    except OSError as error:
        raise StudyError(
            f"cannot lock {folder / LOCK}: {error.strerror}. "
            "Choose a home on a disk of this machine that you may write to (home= or RANKTUNE_HOME)."
        ) from None
    with file:
        try:
            yield
        finally:
            with suppress(OSError):
                _write(file, "")


def holder(folder: Path) -> Holder | None:
    """Return who runs the study in folder, None if apparently nobody does; the lock itself is not touched."""
    try:
        running = _parsed((folder / LOCK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return running if running is not None and running.alive() else None


def _taken(folder: Path) -> IO[str]:
    """Return the lock file, locked by this process and still at its path."""
    path, until = folder / LOCK, time.monotonic() + PATIENCE
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = open(path, "a+", encoding="utf-8")
        except (FileNotFoundError, FileExistsError):  # a study that had not begun has just removed the folder
            if time.monotonic() > until:
                raise
            continue
        try:
            locked = try_lock(file)
            if locked and _is_at(file, path):
                return file
            file.seek(0)
            other = None if locked else _parsed(file.read())
        except BaseException:
            file.close()
            raise
        file.close()
        # A holder writes who it is a moment after it took the lock; until then the file names its predecessor.
        if (other is not None and other.alive()) or time.monotonic() > until:
            raise BeingRun(folder.name, other)
        time.sleep(0.005)


def _is_at(file: IO[str], path: Path) -> bool:
    """Return whether file is still at path: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _write(file: IO[str], text: str) -> None:
    os.ftruncate(file.fileno(), 0)
    os.write(file.fileno(), text.encode())


def _parsed(text: str) -> Holder | None:
    """Return the holder in a lock file, None if there is none."""
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None


def _command() -> str:
    """Return the command line of this process, without secrets."""
    text = command_line()
    return text if len(text) <= _COMMAND_LENGTH else text[: _COMMAND_LENGTH - 3] + "..."
