"""Every error that RankTune raises on purpose.

RankTuneError
├── DataError          a file or an array is not what a ranking data set must be      (also a ValueError)
├── ParameterError     an option, name or parameter that cannot be                    (also a ValueError)
│   └── IncompatibleParts   a loss, weight, penalty and optimizer that do not compose
├── ModelFormatError   a model file that is damaged, foreign or of an unknown version (also a ValueError)
├── StudyError         a study that cannot start, resume or be found
│   └── AllFailed      every one of its last trials failed
├── WorkerLost         the process that computed something died, or was stopped      (also a BrokenExecutor)
├── TooLong            what was computed took longer than its limit, and was ended
└── ResultRefused      what was computed cannot be sent back: too large, or not to be pickled

A message says what was given, which rule it breaks and what to do. RankTuneWarning is for what was repaired
or is suspicious, but did not stop the work.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor


class RankTuneError(Exception):
    """Base of all errors that RankTune raises on purpose."""


class DataError(RankTuneError, ValueError):
    """A file or an array that is not what a ranking data set must be."""


class ParameterError(RankTuneError, ValueError):
    """An option, a name or a parameter value that cannot be."""


class IncompatibleParts(ParameterError):
    """A loss, pair weight, penalty and optimizer that do not compose."""


class ModelFormatError(RankTuneError, ValueError):
    """A model file that is damaged, foreign or of an unknown version."""


class StudyError(RankTuneError):
    """A study that cannot start, resume or be found."""


class AllFailed(StudyError):
    """Trials of a study failed one and all; what is wrong is hardly the configurations."""


class WorkerLost(RankTuneError, BrokenExecutor):
    """The process that computed something died: reason says how, last_words what it wrote last, if anything."""

    def __init__(self, reason: str, last_words: str = "") -> None:
        self.reason, self.last_words = reason, last_words
        said = f"; the last it wrote: {' | '.join(last_words.splitlines()[-3:])}" if last_words else ""
        super().__init__(f"the worker process is lost: {reason}{said}")

    def __reduce__(self) -> tuple[type[WorkerLost], tuple[str, str]]:
        return type(self), (self.reason, self.last_words)


class TooLong(RankTuneError):
    """What was computed took longer than its limit, in seconds, and its process was ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.reason = f"ended after its limit of {seconds:g} seconds"
        super().__init__(self.reason)

    def __reduce__(self) -> tuple[type[TooLong], tuple[float]]:
        return type(self), (self.seconds,)


class ResultRefused(RankTuneError):
    """What was computed cannot be sent back: it is too large, or cannot be pickled."""


class RankTuneWarning(UserWarning):
    """Something was repaired or looks suspicious, and the work went on."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the known spelling nearest to name, and all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    by_lower = {k.lower(): k for k in known}
    hint = f"Did you mean '{by_lower[close[0]]}'? " if close else ""
    return f"{hint}Known: {', '.join(known)}."


def listed(names: Iterable[object], most: int = 10) -> str:
    """Return names as text, "a, b and c"; of more than most the first ones and the total, "a, b, ... (12 in all)"."""
    texts = [str(name) for name in names]
    if len(texts) > most:
        return f"{', '.join(texts[:most])}, ... ({len(texts)} in all)"
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def printable(text: str, keep: str = "") -> str:
    """Return text with ? for control characters, except those to keep; quoted paths and messages may hold any."""
    return "".join(c if c.isprintable() or c in keep else "?" for c in text)
