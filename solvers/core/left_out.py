"""What a study makes at its end besides its result: what fails there is said and left out."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning, StudyError

T = TypeVar("T")
U = TypeVar("U")

MOST = 300
"""Characters of an error's own text in the warning."""


def or_left_out(
    what: str,
    make: Callable[[], T],
    instead: U,
    remedy: str = "The result is saved without it.",
    raised: tuple[type[Exception], ...] = (StudyError,),
) -> T | U:
    """Return what make returns; where it fails, say that what it makes is left out, and return `instead`.

    The errors `raised` are raised as they are: by default where the folder or the record of the study cannot be used.
    So are warnings that are to be errors, and interrupts.
    """
    try:
        return make()
    except Exception as error:
        if isinstance(error, (*raised, RankTuneWarning)):
            raise
        warnings.warn(f"{what} failed and is left out: {_cause(error)} {remedy}", RankTuneWarning, stacklevel=2)
        return instead


def _cause(error: Exception) -> str:
    """Return an error in one line; one that was not raised on purpose with its kind and place."""
    own = " ".join(str(error).split())
    own = own if len(own) <= MOST else f"{own[: MOST - 3]}..."
    if isinstance(error, RankTuneError) and own:
        return own
    (*_, last) = traceback.extract_tb(error.__traceback__)
    where = f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
    return f"{where}: {own.rstrip('.')}." if own else f"{where}."
