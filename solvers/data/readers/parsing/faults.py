"""Error messages for the faults of ranking text: file, line, column, the rule, the remedy, the text nearby."""

from __future__ import annotations

import re

import numpy as np

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.decimals import Bytes
from ranktune.solvers.data.readers.parsing.parse_buffers import LineFault
from ranktune.solvers.data.readers.parsing.streams import Position

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
