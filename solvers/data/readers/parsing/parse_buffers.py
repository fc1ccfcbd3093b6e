"""What a pass over ranking text fills, and the faults at which it stops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints

Columns: TypeAlias = NDArray[np.int32]

ROWS, VALUES, RUNS, HARD, LINES, WIDTH, UNSORTED, COMMENTED, GROUPED, QUERY, QUERY_END, MISSING = range(12)
"""Where the state of a pass holds what."""


class LineFault(IntEnum):
    """The faults that a line can have; NONE where the whole text was parsed."""

    NONE = 0
    GRADE = 1
    GRADE_NEGATIVE = 2
    GRADE_NOT_FINITE = 3
    QUERY_MISSING = 4
    QUERY_UNEXPECTED = 5
    QUERY_EMPTY = 6
    QUERY_MISPLACED = 7
    INDEX = 8
    INDEX_ZERO = 9
    INDEX_TOO_LARGE = 10
    INDEX_TWICE = 11
    COLON = 12
    VALUE = 13
    VALUE_EMPTY = 14
    VALUE_MISSING = 15
    VALUE_TOO_LARGE = 16
    CONTROL = 17


class Grouped(IntEnum):
    """Whether lines have a qid: the first line decides for all."""

    UNKNOWN = -1
    NO = 0
    YES = 1


class ParseBuffers(NamedTuple):
    """Arrays that one pass fills, from their beginning. Offsets count bytes of the text.

    values, columns  (n_values,) float64 and int32 from 0, in the order of the text
    ends             (n_rows,) number of values up to the end of each row
    grades           (n_rows,) float64
    lines            (n_rows,) offset at which the row's line starts
    comments         (n_rows, 2) offsets of the document id or comment; equal where there is none
    runs             (n_runs, 5) first row, offsets of the query id, whether it is a whole number, and that number
    hard             (n_hard, 3) numbers for exact arithmetic: index of the value (or -1 - row for a grade), offsets
    """

    values: Floats
    columns: Columns
    ends: Ints
    grades: Floats
    lines: Ints
    comments: Ints
    runs: Ints
    hard: Ints

    @classmethod
    def for_text_of(cls, size: int) -> ParseBuffers:
        """Return arrays for any text of size bytes; pages that are never written take no memory."""
        entries, rows = size // 4 + 2, size // 2 + 2
        return cls(
            np.empty(entries),
            np.empty(entries, dtype=np.int32),
            np.empty(rows, dtype=np.int64),
            np.empty(rows),
            np.empty(rows, dtype=np.int64),
            np.empty((rows, 2), dtype=np.int64),
            np.empty((rows, 5), dtype=np.int64),
            np.empty((entries + rows, 3), dtype=np.int64),
        )


@dataclass(frozen=True)
class ParseResult:
    """The end of a pass: the fault and its offset (NONE and the end of the text), and how much was filled."""

    fault: LineFault
    offset: int
    n_rows: int
    n_values: int
    n_runs: int
    n_hard: int
    n_lines: int
    width: int  # the largest column, from 1
    unsorted: bool  # whether the columns of some row are out of order
    commented: bool
    grouped: Grouped
    has_missing: bool  # whether a value was read as NaN
