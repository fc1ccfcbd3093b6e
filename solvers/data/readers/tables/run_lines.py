"""Lines by which a file shows that it is a TREC run or holds judgments."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import number_of


def is_run_line(line: str) -> bool:
    """Return whether line can be one of a TREC run."""
    words = line.split()
    return len(words) == 6 and ":" not in words[1] and None not in map(number_of, words[3:5])


def is_judgment_line(line: str) -> bool:
    """Return whether line can be one of TREC judgments: QUERY 0 DOCUMENT GRADE."""
    words = line.split()
    return len(words) == 4 and ":" not in words[1] and number_of(words[3]) is not None


def refuse_judgments(path: str | Path, **options: object) -> NoReturn:
    """Raise DataError: judgments are no data, as they have no features."""
    raise DataError(
        f"{path}: holds TREC judgments and no features. Give the documents as data, such as a TREC run or a csv "
        f'file, and the judgments by qrels="{path}".'
    )
