"""Every error that RankTune raises on purpose.

RankTuneError
├── DataError          a file or an array is not what a ranking data set must be      (also a ValueError)
├── ParameterError     an option, name or parameter that cannot be                    (also a ValueError)
│   └── IncompatibleParts   a loss, weight, penalty and optimizer that do not compose
├── ModelFormatError   a model file that is damaged, foreign or of an unknown version (also a ValueError)
└── StudyError         a study that cannot start, resume or be found

A message says what was given, which rule it breaks and what to do. RankTuneWarning is for what was repaired
or is suspicious, but did not stop the work.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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


class RankTuneWarning(UserWarning):
    """Something was repaired or looks suspicious, and the work went on."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the known spelling nearest to name, and all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    by_lower = {k.lower(): k for k in known}
    hint = f"Did you mean '{by_lower[close[0]]}'? " if close else ""
    return f"{hint}Known: {', '.join(known)}."
