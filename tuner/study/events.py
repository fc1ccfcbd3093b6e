"""The log of a study: one JSON object a line for everything that happens to its trials and workers.

events.jsonl lies beside the record and belongs to the one process that owns the study. A line has "at" (UTC, to the
millisecond), "event" (a kind below), "study", and what else is known: by custom split, trial (its number), attempt,
worker, solver, params, value, seconds, reason, name. At 10 MB it is rotated: events.jsonl.1 is the one before, and so
on up to 5. What a crash left half written at its end is cut off when it is opened, and kept in events.corrupt-TIME.
The log is a by-product: whatever happens to its file, the study goes on.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from enum import StrEnum
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, BinaryIO, Self

from ranktune.solvers.core.errors import RankTuneWarning

FILE = "events.jsonl"
BYTES, KEPT = 10_000_000, 5
"""Size at which the log is rotated, and how many former logs are kept."""
LONGEST = 10_000
"""Characters of one text in an event: a message may be anything that a failed trial printed."""
_SHOWN = 400
_WINDOW = 1 << 16
_PATIENCE = 1000


class Event(StrEnum):
    """What can happen."""

    STUDY_STARTED = "study_started"
    ASKED = "asked"
    STARTED = "started"
    STEP = "step"
    PRUNED = "pruned"
    FINISHED = "finished"
    FAILED = "failed"
    REISSUED = "reissued"
    REQUEUED = "requeued"
    WORKER_JOINED = "worker_joined"
    WORKER_LOST = "worker_lost"
    STUDY_STOPPED = "study_stopped"
    STUDY_FINISHED = "study_finished"
    STORAGE_AWAY = "storage_away"
    STORAGE_BACK = "storage_back"


class Events:
    """Writes the events of one study; a context manager.

    folder is the study's, None to write no file. told hears of each event in words, as a person reads them.
    Nothing here ever raises: a log that cannot be written is one RankTuneWarning, and is tried again at each event.
    """

    def __init__(
        self, folder: Path | None, told: Callable[[str], None] | None = None, *, study: str | None = None
    ) -> None:
        """Repair what a crash left. study is the name in each event, that of the folder where it is not given."""
        self._study = study if study is not None else folder.name if folder else ""
        self._told = told
        self._warned = False
        self._handler = None if folder is None else _Handler(folder / FILE, self._failed)
        if folder is not None:
            try:
                repair(folder / FILE)
            except OSError as error:
                self._failed(error)

    def write(self, event: Event, /, *, at: float | None = None, **fields: Any) -> None:
        """Write an event that happens now, or happened at (seconds since 1970). Numbers that are none become null."""
        noted = {"at": _moment(at), "event": str(event), "study": self._study}
        noted |= {name: _plain(value) for name, value in fields.items() if name not in noted}
        if self._handler is not None:
            line = json.dumps(noted, allow_nan=False)
            self._handler.handle(logging.LogRecord("ranktune.events", logging.INFO, FILE, 0, line, None, None))
        if self._told is not None:
            with suppress(OSError, ValueError):  # a terminal that was closed
                self._told(readable(noted))

    def close(self) -> None:
        """Let go of the file; what is written from now on is only told."""
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.let_go()
            handler.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, error: BaseException | None) -> None:
        if not self._warned:
            self._warned = True
            cause = getattr(error, "strerror", None) or error
            warnings.warn(
                f"the log {FILE} of study '{self._study}' cannot be written: {cause}. The study goes on without it.",
                RankTuneWarning,
                stacklevel=4,
            )


def read_events(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events in a study's folder, oldest first; none where there are none. Torn lines are left out.

    The study may go on meanwhile: what had been written when the reading began is read.
    """
    with ExitStack() as stack:
        for file in _opened(folder, stack):
            for line in file:
                found = _parsed(line)
                if found is not None:
                    yield found
                if not line.endswith(b"\n"):  # being written: what comes after would be read without its beginning
                    break


def _opened(folder: Path, stack: ExitStack) -> list[BinaryIO]:
    """Return the files of a log, oldest first, all of one moment between two rotations."""
    files: dict[tuple[int, int], BinaryIO] = {}
    for _ in range(_PATIENCE):
        stack.close()
        files = {}
        # The newest first: a rotation meanwhile moves each file to a place that is looked at later, never past us.
        for place in range(KEPT + 1):
            with suppress(OSError):
                file = stack.enter_context(open(folder / (f"{FILE}.{place}" if place else FILE), "rb"))
                files.setdefault(_identity(os.fstat(file.fileno())), file)
        with suppress(OSError):
            if _identity(os.stat(folder / FILE)) == next(iter(files), None):
                break
    return list(reversed(files.values()))


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def readable(event: Mapping[str, Any]) -> str:
    """Return an event as a line for a person, without control characters, whatever its texts hold."""
    known = dict(event)
    moment = datetime.fromisoformat(str(known.pop("at"))).astimezone()
    known.pop("study", None)
    split, trial = known.pop("split", None), known.pop("trial", None)
    what = str(known.pop("event")).replace("_", " ")
    head = (f"{split}: " if split else "") + (f"trial {trial} " if trial is not None else "") + what
    told = ", ".join(f"{name} {_said(value)}" for name, value in known.items() if value not in (None, "", {}, []))
    line = f"{moment:%H:%M:%S} {head}" + (f": {told}" if told else "")
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def repair(path: Path) -> None:
    """Cut a log to the end of its last sound line; what is cut off is kept beside it. Raises OSError."""
    try:
        file = open(path, "r+b")
    except FileNotFoundError:
        return
    with file:
        size = file.seek(0, os.SEEK_END)
        end = _sound_end(file, size)
        file.seek(end)
        rest = file.read()
        if not rest and (size == 0 or _ends_line(file, end)):
            return
        if rest:
            kept = path.with_name(f"{path.stem}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
            with open(kept, "ab") as aside:
                aside.write(rest)
                aside.flush()
                os.fsync(aside.fileno())
            file.truncate(end)
        if end and not _ends_line(file, end):  # the record is whole, only its line was not ended
            file.seek(end)
            file.write(b"\n")


def _ends_line(file: BinaryIO, end: int) -> bool:
    file.seek(max(end - 1, 0))
    return file.read(1) == b"\n"


def _sound_end(file: BinaryIO, size: int) -> int:
    """Return where the last sound line ends, after its line feed if it has one; 0 where none is sound."""
    window = _WINDOW
    while True:
        start = max(size - window, 0)
        file.seek(start)
        data = file.read(size - start)
        lines = (data if start == 0 else data.partition(b"\n")[2]).split(b"\n")  # none that begins before the window
        end = size
        for place, line in enumerate(reversed(lines)):
            if _parsed(line) is not None:
                return end if place == 0 else end + 1
            end -= len(line) + 1
        if start == 0:
            return 0
        window *= 8


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the event in a line, None where it is none."""
    try:
        found = json.loads(line.decode("ascii"))
        datetime.fromisoformat(found["at"])
    except (ValueError, RecursionError, TypeError, LookupError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else None


class _Handler(RotatingFileHandler):
    """The rotated file: repaired whenever it is opened, let go of after an error, which is told and never raised."""

    def __init__(self, path: Path, failed: Callable[[BaseException | None], None]) -> None:
        super().__init__(path, maxBytes=BYTES, backupCount=KEPT, encoding="ascii", delay=True)
        self._failed = failed

    def _open(self) -> TextIOWrapper:
        repair(Path(self.baseFilename))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        self.let_go()
        self._failed(error)

    def let_go(self) -> None:
        """Close the file, whose buffer may hold what a full disk did not take."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.close()


def _moment(at: float | None) -> str:
    """Return a moment, now where at is none that can be, in UTC."""
    try:
        moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    except (OverflowError, OSError, ValueError):
        moment = datetime.now(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """Return value as JSON knows it."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return float(value) if math.isfinite(value) else None
        case str():
            return str(value) if len(value) <= LONGEST else value[:LONGEST] + "..."
        case Mapping():
            return {str(name): _plain(own) for name, own in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(own) for own in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist())
    return _plain(str(value))


def _said(value: Any) -> str:
    """Return a value of an event in words."""
    match value:
        case float():
            return f"{value:.6g}"
        case Mapping():
            return " ".join(f"{name}={_said(own)}" for name, own in value.items())
        case list():
            return " ".join(_said(own) for own in value)
    return str(value)
