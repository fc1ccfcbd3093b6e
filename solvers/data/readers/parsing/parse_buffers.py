"""What a pass over ranking text fills, and the faults at which it stops, as errors with place, rule and remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.decimals import Bytes
from ranktune.solvers.data.readers.parsing.streams import Position

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


_FORM = "A line is GRADE qid:ID INDEX:VALUE ... # comment"
_RULES = {
    LineFault.GRADE: f"the grade is not a number. {_FORM}. Of a word for a grade give the number: grades='WORD=NUMBER'",
    LineFault.GRADE_NEGATIVE: "the grade is negative. Grades start at 0, not relevant. Give its number: grades='-1=0'",
    LineFault.GRADE_NOT_FINITE: "the grade is not finite. Remove the document or give it a grade",
    LineFault.QUERY_MISSING: "the line has no qid: after its grade, though the lines before have. "
    "Add the id of its query",
    LineFault.QUERY_UNEXPECTED: "the line has a qid:, though the lines before have none. "
    "Give it to all lines or to none",
    LineFault.QUERY_EMPTY: "qid: is followed by nothing. Write the id of the query right after the colon",
    LineFault.QUERY_MISPLACED: "qid: must stand once, right after the grade",
    LineFault.INDEX: f"expected the number of a feature, then a colon. {_FORM}",
    LineFault.INDEX_ZERO: "feature 0, though features are counted from 1. If this data counts from 0, "
    "pass one_based=False (for training and test data alike)",
    LineFault.INDEX_TOO_LARGE: "the number of the feature is above the limit of {max_features:,} features. "
    "Number the features from 1 without gaps, or raise max_features",
    LineFault.INDEX_TWICE: "the feature is given twice on this line. Keep one value",
    LineFault.COLON: "the number of the feature must be followed by a colon and the value, without spaces",
    LineFault.VALUE: "the value is not a decimal number such as 0.5 or -1e-3",
    LineFault.VALUE_EMPTY: "the value is missing after the colon. Write it, or leave the feature out (it is then 0)",
    LineFault.VALUE_MISSING: 'the value is missing or infinite. Correct it, or pass missing="zero" to read it as 0',
    LineFault.VALUE_TOO_LARGE: "the value is too large for {dtype}. Divide the feature by a power of 10",
    LineFault.CONTROL: "a control character. Is the file text, and undamaged? Remove the character",
}


def fault_error(
    position: Position, text: Bytes, fault: LineFault, offset: int, *, max_features: int, dtype: str
) -> DataError:
    """Return the error for a fault at an offset of text, the block at position."""
    data = text.tobytes()
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    number = position.lines + data.count(b"\n", 0, offset) + 1
    column = len(data[start:offset].decode("utf-8", "replace")) + 1
    rule = _RULES[fault].format(max_features=max_features, dtype=dtype)
    first = max(start, offset - 24, data.rfind(b" ", start, max(offset - 8, start)) + 1)
    snippet = data[first : min(end, offset + 24)].decode("utf-8", "replace")
    return DataError(f"{position.path}:{number}:{column}: {rule}. Near {snippet.rstrip()!r}.")


def second_occurrence(text: Bytes, line: int, index: int) -> int:
    """Return the offset at which the line that starts at offset `line` names feature `index` for the second time."""
    data = text[line:].tobytes().split(b"\n", 1)[0]
    places = [match.start(1) for match in re.finditer(rb"[\s]0*(%d):" % index, data)]
    return line + places[1]


def line_of(text: Bytes, lines: int, offset: int) -> int:
    """Return the number of the line at an offset of text, a block that starts after so many lines."""
    return lines + int(np.count_nonzero(text[:offset] == 10)) + 1
