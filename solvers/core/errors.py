"""The errors that RankTune raises, and its warning.

RankTuneError
├── DataError          a file or an array that is not a valid ranking data set        (also a ValueError)
├── ParameterError     an invalid option, name or parameter value                     (also a ValueError)
│   └── IncompatibleParts   a loss, weight, penalty and optimizer that do not compose
├── ModelFormatError   a model file that is damaged, foreign or of an unknown version (also a ValueError)
├── StudyError         a study that cannot start, resume or be found
│   ├── Damaged        a stored file that is missing, or is not what was written
│   └── AllFailed      all of its last trials failed
├── WorkerLost         a worker process died or was stopped                           (also a BrokenExecutor)
├── TooLong            a computation exceeded its time limit and was ended
└── ResultRefused      a result is too large to send back, or cannot be pickled

A message states what was given, which rule it breaks and what to do.
"""

from __future__ import annotations

import difflib
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar


class RankTuneError(Exception):
    """Base of all errors that RankTune raises.

    Examples
    --------
    >>> from ranktune.solvers import parse_metric
    >>> try:
    ...     parse_metric("ndgc@10")
    ... except RankTuneError as error:
    ...     print(type(error).__name__, str(error)[:54])
    ParameterError metric 'ndgc@10' is unknown. Did you mean 'ndcg'? Know
    """

    def __str__(self) -> str:
        return printable(without_secrets(super().__str__()), keep="\n")


class DataError(RankTuneError, ValueError):
    """A file or an array that is not a valid ranking data set.

    Examples
    --------
    >>> from ranktune.solvers import Queries
    >>> Queries.from_arrays([[1.0], [2.0]], [0, 1, 2])
    Traceback (most recent call last):
    ranktune.solvers.core.errors.DataError: y has shape (3,) for 2 rows of X: it needs one grade per row.
    """


class ParameterError(RankTuneError, ValueError):
    """An invalid option, name or parameter value.

    Examples
    --------
    >>> from ranktune.solvers import L1
    >>> L1(-1.0)
    Traceback (most recent call last):
    ranktune.solvers.core.errors.ParameterError: l1=-1.0: it must be a number of at least 0. Use 0 to do without.
    """


class IncompatibleParts(ParameterError):
    """A loss, pair weight, penalty and optimizer that do not compose.

    Examples
    --------
    >>> from ranktune.solvers import L1, LBFGS, Ranker
    >>> try:
    ...     Ranker(penalty=L1(0.1), optimizer=LBFGS()).fit([[0.0], [1.0]], [0, 1])
    ... except IncompatibleParts as error:
    ...     print(str(error)[:54])
    LBFGS needs Penalty.gradient, and L1 has none. Optimiz
    """


def counted_from(first: int, error: DataError, below: str = "") -> str:
    """Return what an error says, with its rows, which count from 0, counted from another number."""
    return re.sub(r"(?<=in row )\d+", lambda row: f"{int(row[0]) + first}{below}", str(error))


def in_file(path: object, error: DataError) -> DataError:
    """Return an error with the path of the table that it is of, whose rows count from 1."""
    below = " below the titles" * (".csv" in str(path) or ".tsv" in str(path))
    return DataError(f"{path}: {counted_from(1, error, below)}")


class ModelFormatError(RankTuneError, ValueError):
    """A model file that is damaged, foreign or of an unknown version."""


class StudyError(RankTuneError):
    """A study that cannot start, resume or be found."""


class Damaged(StudyError):
    """A stored file is missing, or is not what was written."""


class AllFailed(StudyError):
    """All of a study's last trials failed, so that the cause is hardly their configurations."""


class WorkersAway(StudyError):
    """The workers of a study were away for longer than is waited: no trial failed, and all are put back."""


class WorkerLost(RankTuneError, BrokenExecutor):
    """A worker process died or was stopped.

    Parameters
    ----------
    reason : str
        How it ended.
    last_words : str, default=""
        The end of what it wrote to standard error.

    Examples
    --------
    >>> str(WorkerLost("killed by signal 9"))
    'the worker process is lost: killed by signal 9'
    """

    def __init__(self, reason: str, last_words: str = "") -> None:
        self.reason, self.last_words = reason, last_words
        output = f"; the last it wrote: {' | '.join(last_words.splitlines()[-3:])}" if last_words else ""
        super().__init__(f"the worker process is lost: {reason}{output}")

    def __reduce__(self) -> tuple[type[WorkerLost], tuple[str, str]]:
        return type(self), (self.reason, self.last_words)


class TooLong(RankTuneError):
    """A computation exceeded its time limit, and its process was ended.

    Parameters
    ----------
    seconds : float
        The limit.

    Examples
    --------
    >>> str(TooLong(60.0))
    'ended after its limit of 60 seconds'
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.reason = f"ended after its limit of {seconds:g} seconds"
        super().__init__(self.reason)

    def __reduce__(self) -> tuple[type[TooLong], tuple[float]]:
        return type(self), (self.seconds,)


class ResultRefused(RankTuneError):
    """A result is too large to send back, or cannot be pickled."""


class RankTuneWarning(UserWarning):
    """Something was repaired or is suspicious, and the work continues."""

    def __str__(self) -> str:
        return printable(without_secrets(super().__str__()), keep="\n")


def warn(message: str | Warning, category: type[Warning] = RankTuneWarning) -> None:
    """Warn of something, at the line of the caller that is neither in RankTune nor in the standard library, if any."""
    place, passed = sys._getframe(), {"ranktune", *sys.stdlib_module_names}
    while place.f_back and str(place.f_globals.get("__name__")).partition(".")[0] in passed:
        place = place.f_back
    registry = place.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, place.f_code.co_filename, place.f_lineno, registry=registry)


SPELLINGS: list[Callable[[str], str]] = [str]
"""How arguments are written for the reader, the last of which counts: as in Python, or as options."""


def spelt(text: str) -> str:
    """Return text, which names arguments of tune as NAME=VALUE, as the reader writes them."""
    return SPELLINGS[-1](text)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a sentence that names the known spelling nearest to name, and all of them."""
    names = sorted(names)
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in names], n=1, cutoff=0.5)
    by_lower = {k.lower(): k for k in names}
    hint = f"Did you mean '{by_lower[close[0]]}'? " if close else ""
    return f"{hint}Known: {', '.join(names)}."


def listed(names: Iterable[object], most: int = 10) -> str:
    """Return names as text, "a, b and c"; of more than most the first ones and the total, "a, b, ... (12 in all)"."""
    texts = [str(name) for name in names]
    if len(texts) > most:
        return f"{', '.join(texts[:most])}, ... ({len(texts)} in all)"
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def printable(text: str, keep: str = "") -> str:
    """Return text that no terminal obeys and in which nothing hides: what data, paths and messages hold may do either.

    Every kind of white space becomes a space. Control characters, marks of direction, characters without width and
    halves of characters become a question mark. Those to keep stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else " " if c.isspace() else "?" for c in text)


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def guarded(cell: str) -> str:
    """Return a cell of a table that no spreadsheet evaluates: what begins like a formula begins with an apostrophe."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Return what guarded returned this cell for."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


HIDDEN = "***"
_SECRETS = (
    # s3://KEY:SECRET@bucket, where a password may hold quotes and an @, a path has one slash, and messages may cut both
    (re.compile(r"(:/{1,2}[^\s/?#@:]*):[^\s]*@"), rf"\1:{HIDDEN}@"),
    (re.compile(r"(://[^\s/?#@:\[]*):(?![0-9]{1,5}(?![^\s/?#'\".,;:)\]}>])|\*{3}@)[^\s'\"/]*"), rf"\1:{HIDDEN}"),
    (re.compile(r"(?i)(\bhttps?:/{1,2})[^\s/?#@:]+@"), rf"\1{HIDDEN}@"),
    # A password may stand in the query of a URL, in a connection string, and in JSON or YAML, quoted or not.
    (
        re.compile(
            r"(?i)\b([\w-]*(?:pass(?:word|wd|file|phrase)|token|secret\w*|signature|credential|api_?key|access_?key)"
            r"""['\"]?\s*[=:]|\w*pass\s*=)(\s*)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s&'",;)]+)"""
        ),
        rf"\1\2{HIDDEN}",
    ),
)


def without_secrets(text: str) -> str:
    """Return text with *** for what may be a password: before the @ of a URL, or the value of a key named like one.

    Examples
    --------
    >>> without_secrets("postgresql://h/db?user=me&password=abc&sslmode=require")
    'postgresql://h/db?user=me&password=***&sslmode=require'
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


T = TypeVar("T")
U = TypeVar("U")

MOST, MOST_OF_TRACE = 300, 8000
"""Characters of the text of an error in the warning, and of the end of its traceback that is kept."""


@dataclass(frozen=True)
class LeftOut:
    """What failed at the end of a study and is missing in its result.

    Attributes
    ----------
    what : str
        What it is, as in a sentence: "the explanation of the models".
    error : str
        The cause, in one line.
    trace : str
        The traceback, with that of the worker process.
    split : str
        The split of the study, empty where it has one.

    Examples
    --------
    >>> LeftOut.of("the report", StudyError("the disk is full: free space.")).error
    'the disk is full: free space.'
    """

    what: str
    error: str
    trace: str
    split: str = ""

    @classmethod
    def of(cls, what: str, error: Exception) -> LeftOut:
        """Return what failed with this error."""
        trace = "".join(traceback.format_exception(error))
        return cls(what, _cause(error, trace), trace[-MOST_OF_TRACE:])


def or_left_out(
    what: str,
    make: Callable[[], T],
    instead: U,
    remedy: str = "The result is saved without it.",
    raised: tuple[type[Exception], ...] = (StudyError,),
    into: list[LeftOut] | None = None,
) -> T | U:
    """Return what make returns; where it fails, say that what it makes is left out, and return `instead`.

    The errors `raised` are raised as they are: by default where the folder or the record of the study cannot be used.
    So are warnings that are to be errors, and interrupts. What is left out is appended to `into`.
    """
    try:
        return make()
    except Exception as error:
        if isinstance(error, (*raised, RankTuneWarning)):
            raise
        missing = LeftOut.of(what, error)
        if into is not None:
            into.append(missing)
        warn(f"{what} failed and is left out: {missing.error} {remedy}")
        return instead


def _cause(error: Exception, trace: str) -> str:
    """Return an error in one line; one that was not raised on purpose with its kind and place."""
    text = " ".join(str(error).split())
    text = text if len(text) <= MOST else f"{text[: MOST - 3]}..."
    if isinstance(error, RankTuneError) and text:
        return text
    (*_, (file, line)) = re.findall(
        r'^\s*File "(.+)", line (\d+)', trace, re.MULTILINE
    )  # in the worker process, if any
    where = f"{type(error).__name__} in {Path(file).name}, line {line}"
    return f"{where}: {text.rstrip('.')}." if text else f"{where}."
