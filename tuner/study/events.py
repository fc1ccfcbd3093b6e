"""The log of a study: one JSON object per line for each event of its trials and workers.

events.jsonl stands beside the record. Only the process that owns the study writes it. A line has "at" (UTC, to the
millisecond), "event" (a kind below), "study", and further fields, usually split, trial (its number), attempt, worker,
solver, params, value, seconds, reason, name. At 10 MB the log is rotated: events.jsonl.1 is the previous one, and so on
up to 5. An incomplete line that a crash left at the end is cut off when the log is opened, and kept in
events.corrupt-TIME. An error of the file never stops the study.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from enum import StrEnum
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from ranktune.solvers.core.errors import printable, warn, without_secrets

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Json, JsonView

FILE = "events.jsonl"
BYTES, KEPT = 10_000_000, 5
"""Size at which the log is rotated, and how many previous logs are kept."""
LONGEST = 10_000
"""The most characters of one text in an event: a failed trial may have printed anything."""
_LINE_WIDTH = 400
_OPENING_ATTEMPTS = 1000


class Event(StrEnum):
    """The kinds of events."""

    STUDY_STARTED = "study_started"
    STAGE = "stage"
    ASKED = "asked"
    STARTED = "started"
    ROUNDS = "rounds"
    STEP = "step"
    PRUNED = "pruned"
    FINISHED = "finished"
    FAILED = "failed"
    REISSUED = "reissued"
    REQUEUED = "requeued"
    WORKER_JOINED = "worker_joined"
    WORKER_LOST = "worker_lost"
    LEFT_OUT = "left_out"
    STUDY_STOPPED = "study_stopped"
    STUDY_FINISHED = "study_finished"
    STORAGE_AWAY = "storage_away"
    STORAGE_BACK = "storage_back"


class Events:
    """Writes the events of one study; a context manager.

    Nothing here raises: a log that cannot be written gives one RankTuneWarning, and is tried again at each event.

    Parameters
    ----------
    folder : Path or None
        Folder of the study, None to write no file. A log that a crash left incomplete is repaired.
    on_event : callable, optional
        Is called with each event as a readable line.
    study : str, optional
        Name of the study in each event, by default that of the folder.
    """

    def __init__(
        self, folder: Path | None, on_event: Callable[[str], None] | None = None, *, study: str | None = None
    ) -> None:
        self._study = study if study is not None else folder.name if folder else ""
        self._on_event = on_event
        self._warned = False
        self._handler = None if folder is None else _Handler(folder / FILE, self._failed)
        if folder is not None:
            try:
                repair(folder / FILE)
            except OSError as error:
                self._failed(error)

    def write(self, event: Event, /, *, at: float | None = None, **fields: object) -> None:
        """Write an event of now, or of at (seconds since 1970). NaN and infinity become null."""
        line: Json = {"at": _timestamp(at), "event": str(event), "study": self._study}
        line |= {name: _as_json(value) for name, value in fields.items() if name not in line}
        if self._handler is not None:
            text = json.dumps(line, allow_nan=False)
            self._handler.handle(logging.LogRecord("ranktune.events", logging.INFO, FILE, 0, text, None, None))
        if self._on_event is not None:
            with suppress(OSError, ValueError):  # a terminal that was closed
                self._on_event(readable(line))

    def close(self) -> None:
        """Close the file. Later events go to on_event alone."""
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.close_stream()
            handler.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, error: BaseException | None) -> None:
        if not self._warned:
            self._warned = True
            cause = getattr(error, "strerror", None) or error
            warn(f"the log {FILE} of study '{self._study}' cannot be written: {cause}. The study continues without it.")


def read_events(folder: Path) -> Iterator[Json]:
    """Yield the events of a study, oldest first.

    The study may be running: events that were written before the call are read. Incomplete lines are skipped.

    Parameters
    ----------
    folder : Path
        Folder of the study, such as ranktune-runs/NAME.

    Yields
    ------
    dict
        An event, as a line of events.jsonl holds it. Nothing is yielded if there is no log.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktune.tuner.study.events import Event, Events, read_events
    >>> with tempfile.TemporaryDirectory() as folder, Events(Path(folder)) as events:
    ...     events.write(Event.FINISHED, trial=0, value=0.75)
    ...     [(event["event"], event["trial"], event["value"]) for event in read_events(Path(folder))]
    [('finished', 0, 0.75)]
    """
    yield from _read(folder)


def _read(folder: Path, containing: bytes = b"") -> Iterator[Json]:
    """Yield the events of a study in whose lines these bytes are, oldest first."""
    with ExitStack() as stack:
        for file in _opened(folder, stack):
            for line in file:
                if containing in line and (event := _parsed(line)) is not None:
                    yield event
                if not line.endswith(b"\n"):  # it is being written: the rest would be read without its beginning
                    break


def finished_trials(folder: Path) -> set[tuple[str, int]]:
    """Return the split and the number of every trial that the log says was finished: it was in the record by then."""
    return {
        (str(event.get("split", "")), int(event["trial"]))
        for event in _read(folder, b'"finished"')
        if event["event"] == Event.FINISHED and isinstance(event.get("trial"), int)
    }


def lost_trials(folder: Path, split: str, recorded: Iterable[int]) -> str:
    """Return a sentence on the trials of a split that were finished and are not recorded, "" if there are none."""
    lost = {number for name, number in finished_trials(folder) if name == split} - set(recorded)
    if not lost:
        return ""
    what = "a finished trial" if len(lost) == 1 else f"{len(lost)} finished trials"
    where = f" of {split}" if split else ""
    return f"The record{where} is damaged: {what} of the log {FILE} are missing. `ranktune resume` runs them again."


def _opened(folder: Path, stack: ExitStack) -> list[BinaryIO]:
    """Return the files of a log, oldest first, all of one moment between two rotations."""
    files: dict[tuple[int, int], BinaryIO] = {}
    for _ in range(_OPENING_ATTEMPTS):
        stack.close()
        files = {}
        # The newest first: a rotation meanwhile moves each file to a place that is opened later.
        for place in range(KEPT + 1):
            with suppress(OSError):
                file = stack.enter_context(open(folder / (f"{FILE}.{place}" if place else FILE), "rb"))
                files.setdefault(_identity(os.fstat(file.fileno())), file)
        if not files:  # there is no log: a rotation leaves at least the file that it moved
            break
        with suppress(OSError):
            if _identity(os.stat(folder / FILE)) == next(iter(files), None):
                break
    return list(reversed(files.values()))


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def readable(event: JsonView) -> str:
    """Return an event as a readable line without control characters."""
    fields = dict(event)
    moment = datetime.fromisoformat(str(fields.pop("at"))).astimezone()
    fields.pop("study", None)
    split, trial = fields.pop("split", None), fields.pop("trial", None)
    kind = str(fields.pop("event")).replace("_", " ")
    head = (f"{split}: " if split else "") + (f"trial {trial} " if trial is not None else "") + kind
    rest = ", ".join(f"{name} {_as_text(value)}" for name, value in fields.items() if value not in (None, "", {}, []))
    line = printable(f"{moment:%H:%M:%S} {head}" + (f": {rest}" if rest else ""))
    return line if len(line) <= _LINE_WIDTH else line[: _LINE_WIDTH - 3] + "..."


def repair(path: Path) -> None:
    """Cut a log after its last complete line; what is cut off is kept beside it. Raises OSError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    complete, end = b"", len(content)
    for line in reversed(content.split(b"\n")):
        if _parsed(line) is not None:
            complete = content[: end + 1]  # with its line feed, if it has one
            break
        end -= len(line) + 1
    rest = content[len(complete) :]
    if (not rest and complete.endswith(b"\n")) or not content:
        return
    if rest:
        corrupt = path.with_name(f"{path.stem}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
        with open(corrupt, "ab") as aside:
            aside.write(rest)
            aside.flush()
            os.fsync(aside.fileno())
    with open(path, "r+b") as file:
        file.truncate(len(complete))
        if complete and not complete.endswith(b"\n"):  # the event is complete, only its line feed is missing
            file.seek(len(complete))
            file.write(b"\n")


def _parsed(line: bytes) -> Json | None:
    """Return the event in a line, None if the line holds none."""
    try:
        event = json.loads(line.decode("ascii"))
        datetime.fromisoformat(event["at"])
    except (ValueError, RecursionError, TypeError, LookupError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


class _Handler(RotatingFileHandler):
    """The rotated file: repaired when it is opened, closed after an error, which goes to failed and is not raised."""

    def __init__(self, path: Path, failed: Callable[[BaseException | None], None]) -> None:
        super().__init__(path, maxBytes=BYTES, backupCount=KEPT, encoding="ascii", delay=True)
        self._failed = failed

    def _open(self) -> TextIOWrapper:
        repair(Path(self.baseFilename))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        self.close_stream()
        self._failed(error)

    def close_stream(self) -> None:
        """Close the file, although its buffer may hold what a full disk did not take."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.close()


def _timestamp(at: float | None) -> str:
    """Return at in UTC, or now if at is None or out of range."""
    try:
        moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    except (OverflowError, OSError, ValueError):
        moment = datetime.now(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_json(value: object) -> object:
    """Return value as JSON has it."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return float(value) if math.isfinite(value) else None
        case str():
            text = without_secrets(value)
            return text if len(text) <= LONGEST else text[:LONGEST] + "..."
        case Mapping():
            return {str(name): _as_json(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_as_json(each) for each in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _as_json(value.tolist())
    return _as_json(str(value))


def _as_text(value: object) -> str:
    match value:
        case float():
            return f"{value:.6g}"
        case Mapping():
            return " ".join(f"{name}={_as_text(each)}" for name, each in value.items())
        case list():
            return " ".join(_as_text(each) for each in value)
    return str(value)
