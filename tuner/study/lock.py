"""Who runs a study: one process at a time, which holds the lock file in its folder and says there who it is.

The operating system's lock decides, and lets go of it however its holder ends; what is written in the file only tells
others whom they wait for, and a dashboard whether anybody is at work.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from ranktune.solvers.core.errors import StudyError

LOCK = "lock"
PATIENCE = 1.0
"""Seconds that a holder may take to say who it is, or a dead one's lock to come free."""
_FAR = 1 << 30
_LONGEST = 200


@dataclass(frozen=True)
class Holder:
    """A process that runs a study.

    began is when it took the study (ISO, UTC); started tells it from other processes that get the same number: the
    machine's boot and the process's start in it, "" where the system does not say; host and command likewise.
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
        return cls(pid, socket.gethostname(), now, _started(pid), _command())

    def alive(self) -> bool:
        """Return whether it still runs; True where that cannot be seen from here, as on another host."""
        boot, own = self.started.partition(":")[0], _boot()
        if self.host not in ("", socket.gethostname()) and (not boot or boot != own):
            return True
        if boot and own and boot != own:  # the machine was started again
            return False
        if os.name != "posix":  # there signal 0 would end it
            return True
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass
        except (OSError, OverflowError):
            return False
        now = _started(self.pid)
        return not self.started or not now or now == self.started

    def __str__(self) -> str:
        """Say who it is and since when: process 12 on host-a since 2026-01-31 09:00:00 (ranktune tune a.txt)."""
        said = f"process {self.pid}"
        if self.host:
            said += f" on {self.host}"
        with suppress(ValueError):
            said += f" since {datetime.fromisoformat(self.began).astimezone():%Y-%m-%d %H:%M:%S}"
        if self.command:
            said += f" ({self.command})"
        return "".join(c if c.isprintable() else "?" for c in said)


class BeingRun(StudyError):
    """Another process runs the study: holder, None where it does not say who it is."""

    def __init__(self, name: str, holder: Holder | None) -> None:
        super().__init__(
            f"study '{name}' is being run by {holder or 'another process'}. "
            "Wait for it, work for it (--join), or choose another name (--name)."
        )
        self.holder = holder


@contextmanager
def owning(folder: Path) -> Iterator[None]:
    """Hold the study in folder, which is made if it is missing. Raises BeingRun where another process holds it.

    Whoever removes the folder's lock file in the block leaves no trace of the study.
    """
    try:
        file = _taken(folder)
        with suppress(OSError):  # a full disk: nobody will know who it is, which is no reason not to work
            _write(file, json.dumps(asdict(Holder.here())))
    except OSError as error:
        raise StudyError(
            f"cannot lock {folder / LOCK}: {error.strerror}. "
            "Choose a home on a disk of this machine that you may write to (--home or RANKTUNE_HOME)."
        ) from None
    with file:
        try:
            yield
        finally:
            with suppress(OSError):
                _write(file, "")


def holder(folder: Path) -> Holder | None:
    """Return who runs the study in folder, None where nobody seems to; the lock itself is not touched."""
    try:
        found = _parsed((folder / LOCK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found is not None and found.alive() else None


def _taken(folder: Path) -> IO[str]:
    """Return the lock file, locked by this process and still the one of that name."""
    path, until = folder / LOCK, time.monotonic() + PATIENCE
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = open(path, "a+", encoding="utf-8")
        except (FileNotFoundError, FileExistsError):  # whoever came to nothing has just removed the folder
            if time.monotonic() > until:
                raise
            continue
        try:
            locked = _try_lock(file)
            if locked and _is_at(file, path):
                return file
            file.seek(0)
            found = None if locked else _parsed(file.read())
        except BaseException:
            file.close()
            raise
        file.close()
        # A holder writes who it is a moment after it took the lock; until then its predecessor is named there.
        if (found is not None and found.alive()) or time.monotonic() > until:
            raise BeingRun(folder.name, found)
        time.sleep(0.005)


def _is_at(file: IO[str], path: Path) -> bool:
    """Return whether file is still what path names: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _write(file: IO[str], text: str) -> None:
    os.ftruncate(file.fileno(), 0)
    os.write(file.fileno(), text.encode())


def _parsed(text: str) -> Holder | None:
    """Return the holder in a lock file, None where there is none; of an older release there is only its number."""
    try:
        found: Any = json.loads(text.removeprefix("process "))
        return Holder(**found) if isinstance(found, dict) else Holder(int(found))
    except (ValueError, TypeError, RecursionError):
        return None


def _try_lock(file: IO[str]) -> bool:
    """Lock file for this process until it is closed; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows, where nobody else may read what is locked: lock far behind the text
        import msvcrt

        file.seek(_FAR)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _boot() -> str:
    """Return what tells this start of the machine from others, "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _started(pid: int) -> str:
    """Return what tells a running process from others of its number: "boot:ticks"; "" where it cannot be seen."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return f"{_boot()}:ended" if state in "ZX" else f"{_boot()}:{numbers[18]}"
    except (OSError, ValueError, IndexError):
        return ""


def _command() -> str:
    """Return how this process was called, without passwords."""
    words = [os.path.basename(word) if k == 0 else word for k, word in enumerate(getattr(sys, "argv", []))]
    said = " ".join(re.sub(r"(://[^:/@\s]*):\S*@", r"\1:***@", word) for word in words)
    return said if len(said) <= _LONGEST else said[: _LONGEST - 3] + "..."
