"""The byte parser of ranking text: one compiled pass over complete lines, with exact numbers, up to the first fault.

A line is GRADE [qid:ID] INDEX:VALUE ... [# COMMENT]. The parser fills `ParseBuffers`, which are large enough for the
densest possible text (an entry takes at least four bytes, a line two), and stops at the first fault with its kind and
its offset. The caller (text.py) words the error and stores the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.studies.readers.decimals import BAD, SLOW, WORD, Bytes, digit_at, ends_token, read_number
from ranktune.studies.readers.options import Missing

Columns: TypeAlias = NDArray[np.int32]


class Fault(IntEnum):
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

    fault: Fault
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


def parse(
    text: Bytes, into: ParseBuffers, *, base: int, max_features: int, single: bool, missing: Missing, grouped: Grouped
) -> ParseResult:
    """Parse text, which consists of complete lines, into the buffers.

    base is the smallest index. With single, values that exact arithmetic must round to float32 are marked as hard.
    missing says whether NULL and NaN are read as NaN (keep), as 0 like infinity (zero), or are faults (error).
    """
    state = np.zeros(12, dtype=np.int64)
    state[_GROUPED] = grouped
    fault, offset = parse_lines(text, base, max_features, single, get_args(Missing).index(missing), state, into)
    rows, values, runs, hard, lines, width, is_unsorted, commented, found = (int(number) for number in state[:9])
    return ParseResult(
        Fault(fault), offset, rows, values, runs, hard, lines, width, bool(is_unsorted), bool(commented),
        Grouped(found), bool(state[_MISSING]),
    )  # fmt: skip


# Kernels. Every loop over characters ends at the newline that ends the text, so none checks the length of the text.
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON = 10, 13, 32, 9, 35, 58
_MINUS, _EQUALS, _ZERO, _F, _Y = 45, 61, 48, 102, 121
_AS_NAN, _AS_ERROR = (get_args(Missing).index(how) for how in ("keep", "error"))
_FAR = 1 << 40  # beyond any index
_SMALLEST_SINGLE, _LARGEST_SINGLE = 2.0**-126, float(np.finfo(np.float32).max)
_BELOW_SINGLE, _MIDWAY = np.uint64(0x1FFFFFFF), np.uint64(0x10000000)  # the bits of a double that float32 lacks
_DOCID = np.frombuffer(b"docid", dtype=np.uint8)

_ROWS, _VALUES, _RUNS, _HARD, _LINES, _WIDTH, _UNSORTED, _COMMENTED, _GROUPED, _QUERY, _QUERY_END, _MISSING = range(
    12
)  # state


@compiled
def _after_blanks(text: Bytes, p: int) -> int:
    while text[p] == _SPACE or text[p] == _TAB or text[p] == _RETURN:
        p += 1
    return p


@compiled
def _whole(text: Bytes, first: int, end: int) -> tuple[bool, int]:
    """Return (whether text[first:end] is a whole number in canonical spelling, the number)."""
    p = first
    negative = text[p] == _MINUS
    if negative:
        p += 1
    length = end - p
    if length < 1 or length > 18 or (text[p] == _ZERO and (length > 1 or negative)):
        return False, 0
    value = 0
    while p < end:
        digit = digit_at(text, p)
        if digit < 0 or digit > 9:
            return False, 0
        value = value * 10 + digit
        p += 1
    return True, -value if negative else value


@compiled
def _comment(text: Bytes, at: int, place: Ints) -> tuple[int, int]:
    """Write the offsets of the document id or of the comment to place, (2,); return (fault, offset of the newline)."""
    p = at
    while text[p] == _SPACE or text[p] == _TAB or text[p] == _HASH:
        p += 1
    newline = p
    while text[newline] != _NEWLINE:
        if text[newline] == 0:
            return Fault.CONTROL.value, newline
        newline += 1
    end = newline
    k = 0
    while k < 5 and text[p + k] == _DOCID[k]:
        k += 1
    word = p + k
    while text[word] == _SPACE or text[word] == _TAB:
        word += 1
    if k == 5 and text[word] == _EQUALS:  # "#docid = X inc = ..." is how LETOR names a document
        p = word + 1
        while text[p] == _SPACE or text[p] == _TAB:
            p += 1
        end = p
        while not (text[end] == _SPACE or text[end] == _TAB or text[end] == _RETURN or text[end] == _NEWLINE):
            end += 1
    while end > p and (text[end - 1] == _SPACE or text[end - 1] == _TAB or text[end - 1] == _RETURN):
        end -= 1
    place[0], place[1] = p, end
    return Fault.NONE.value, newline


@compiled
def _is_query(text: Bytes, p: int) -> bool:
    return bool(text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == _COLON)  # "qid:"


@compiled
def _mark_hard(hard: Ints, state: Ints, value: int, first: int, end: int) -> None:
    k = state[_HARD]
    hard[k, 0], hard[k, 1], hard[k, 2] = value, first, end
    state[_HARD] += 1


@compiled
def _grade(text: Bytes, p: int, state: Ints, grades: Floats, hard: Ints) -> tuple[int, int]:
    """Read the grade at p; return (fault, next offset)."""
    kind, grade, after = read_number(text, p)
    if kind == WORD:
        return Fault.GRADE_NOT_FINITE.value, p
    if kind == BAD or not ends_token(text[after]):
        return Fault.GRADE.value, after
    if grade < 0.0:
        return Fault.GRADE_NEGATIVE.value, p
    row = state[_ROWS]
    if kind == SLOW:
        _mark_hard(hard, state, -1 - row, p, after)
    grades[row] = grade
    return Fault.NONE.value, after


@compiled
def _query(text: Bytes, p: int, state: Ints, runs: Ints) -> tuple[int, int]:
    """Read qid:ID at p, if present, and record the start of a new run of rows; return (fault, next offset)."""
    present = _is_query(text, p)
    if state[_GROUPED] < 0:
        state[_GROUPED] = 1 if present else 0
    if present != (state[_GROUPED] == 1):
        return Fault.QUERY_UNEXPECTED.value if present else Fault.QUERY_MISSING.value, p
    if not present:
        return Fault.NONE.value, p
    first = p + 4
    p = first
    while not ends_token(text[p]):
        if text[p] < _SPACE:
            return Fault.CONTROL.value, p
        p += 1
    if p == first:
        return Fault.QUERY_EMPTY.value, p
    before = state[_QUERY]
    same = state[_RUNS] > 0 and p - first == state[_QUERY_END] - before
    k = 0
    while same and k < p - first:
        same = text[first + k] == text[before + k]
        k += 1
    if not same:
        run = state[_RUNS]
        whole, number = _whole(text, first, p)
        runs[run, 0], runs[run, 1], runs[run, 2], runs[run, 3], runs[run, 4] = state[_ROWS], first, p, whole, number
        state[_RUNS], state[_QUERY], state[_QUERY_END] = run + 1, first, p
    return Fault.NONE.value, p


@compiled
def _column(text: Bytes, p: int, base: int, max_features: int) -> tuple[int, int, int]:
    """Read INDEX: at p; return (fault, column, offset after the colon or of the fault)."""
    first = p
    column = 0
    digit = digit_at(text, p)
    while 0 <= digit <= 9:
        column = column * 10 + digit if column < _FAR else _FAR
        p += 1
        digit = digit_at(text, p)
    if text[p] != _COLON or p == first:
        if _is_query(text, first):
            return Fault.QUERY_MISPLACED.value, 0, first
        return Fault.COLON.value if p > first and ends_token(text[p]) else Fault.INDEX.value, 0, p
    column -= base
    if column < 0:
        return Fault.INDEX_ZERO.value, 0, first
    if column >= max_features:
        return Fault.INDEX_TOO_LARGE.value, 0, first
    return Fault.NONE.value, column, p + 1


@compiled
def _entries(
    text: Bytes, p: int, base: int, max_features: int, single: bool, missing: int, state: Ints, into: ParseBuffers
) -> tuple[int, int]:
    """Read INDEX:VALUE up to the comment or the end of the line; return (fault, next offset)."""
    values, columns = into.values, into.columns
    bits = values.view(np.uint64)
    n, width = state[_VALUES], state[_WIDTH]
    previous = -1
    rising = True
    while True:
        p = _after_blanks(text, p)
        if text[p] == _NEWLINE or text[p] == _HASH:
            break
        first = p
        fault, column, p = _column(text, p, base, max_features)
        if fault != 0:
            return fault, p
        if column == previous:
            return Fault.INDEX_TWICE.value, first
        kind, value, after = read_number(text, p)
        if kind == BAD:
            return Fault.VALUE_EMPTY.value if ends_token(text[p]) else Fault.VALUE.value, after
        if kind == WORD:
            last = text[after - 1] | 32
            if missing == _AS_ERROR or (missing == _AS_NAN and (last == _F or last == _Y)):  # inf, infinity
                return Fault.VALUE_MISSING.value, p
            if missing == _AS_NAN:
                value = np.nan
                state[_MISSING] = 1
        values[n] = value
        if kind == SLOW:
            _mark_hard(into.hard, state, n, p, after)
        elif single and kind != WORD and value != 0.0:
            odd = not (_SMALLEST_SINGLE <= abs(value) <= _LARGEST_SINGLE)
            if odd or bits[n] & _BELOW_SINGLE == _MIDWAY:
                _mark_hard(into.hard, state, n, p, after)
        columns[n] = column
        rising = rising and column > previous
        width = max(width, column + 1)
        previous, p = column, after
        n += 1
    state[_VALUES], state[_WIDTH] = n, width
    if not rising:
        state[_UNSORTED] = 1
    return Fault.NONE.value, p


@compiled
def parse_lines(
    text: Bytes, base: int, max_features: int, single: bool, missing: int, state: Ints, into: ParseBuffers
) -> tuple[int, int]:
    """Parse text, see `parse`; return (fault, offset). One pass, without allocations."""
    comments = into.comments
    p = 0
    while p < len(text):
        line = p
        p = _after_blanks(text, p)
        row = state[_ROWS]
        if text[p] != _NEWLINE and text[p] != _HASH:
            fault, p = _grade(text, p, state, into.grades, into.hard)
            if fault == 0:
                fault, p = _query(text, _after_blanks(text, p), state, into.runs)
            if fault == 0:
                fault, p = _entries(text, p, base, max_features, single, missing, state, into)
            if fault != 0:
                return fault, p
            into.lines[row], into.ends[row] = line, state[_VALUES]
            state[_ROWS] += 1
        comments[row, 0] = comments[row, 1] = p  # a line without a grade: the next row overwrites it
        if text[p] == _HASH:
            fault, p = _comment(text, p, comments[row])
            if fault != 0:
                return fault, p
            if state[_ROWS] > row and comments[row, 0] < comments[row, 1]:
                state[_COMMENTED] = 1
        p += 1
        state[_LINES] += 1
    return Fault.NONE.value, p


@compiled
def scatter(values: Floats, columns: Columns, ends: Ints, out: Matrix) -> None:
    """Write the values of each row to their columns of out, (n_rows, n_features), which holds zeros."""
    k = 0
    for row in range(len(ends)):
        while k < ends[row]:
            out[row, columns[k]] = values[k]
            k += 1
