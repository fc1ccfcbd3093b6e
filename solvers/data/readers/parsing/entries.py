"""Kernels for the entries of a line of ranking text, INDEX:VALUE.

Every loop over characters ends at the newline that ends the text, so none checks the length of the text.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.columns.grammar import LARGE
from ranktune.solvers.data.readers.parsing.decimals import (
    BAD,
    SLOW,
    WORD,
    Bytes,
    byte_at,
    digit_at,
    ends_token,
    leading_digits,
    read_number,
)
from ranktune.solvers.data.readers.parsing.options import Missing
from ranktune.solvers.data.readers.parsing.parse_buffers import (
    HARD,
    MISSING,
    UNSORTED,
    VALUES,
    WIDTH,
    LineFault,
    ParseBuffers,
)

_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON, _MINUS, _POINT, _F, _Y = 10, 13, 32, 9, 35, 58, 45, 46, 102, 121
_COMMON_ENTRY = 40  # bytes: more than a common entry and the eight that are read at once take
_AS_NAN, _AS_ERROR = (get_args(Missing).index(how) for how in ("keep", "error"))
_FAR = 1 << 40  # beyond any index
_SMALLEST_SINGLE = 2.0**-126
BELOW_SINGLE, MIDWAY = np.uint64(0x1FFFFFFF), np.uint64(0x10000000)  # the bits of a double that float32 lacks


@inlined
def after_blanks(text: Bytes, p: int) -> int:
    """Return the offset of the first byte from p on that is no blank."""
    while byte_at(text, p) == _SPACE or byte_at(text, p) == _TAB or byte_at(text, p) == _RETURN:
        p += 1
    return p


@inlined
def is_query(text: Bytes, p: int) -> bool:
    """Return whether a query id starts at p."""
    return bool(text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == _COLON)  # "qid:"


@inlined
def mark_hard(hard: Ints, state: Ints, value: int, first: int, end: int) -> None:
    """Leave the number text[first:end] to exact arithmetic; value is its index, or -1 - row of a grade."""
    k = state[HARD]
    hard[k, 0], hard[k, 1], hard[k, 2] = value, first, end
    state[HARD] += 1


@inlined
def _column(text: Bytes, p: int, base: int, max_features: int) -> tuple[int, int, int]:
    """Read INDEX: at p; return (fault, column, offset after the colon or of the fault)."""
    first = p
    column = 0
    digit = digit_at(text, p)
    while 0 <= digit <= 9:
        column = column * 10 + digit if column < _FAR else _FAR
        p += 1
        digit = digit_at(text, p)
    if byte_at(text, p) != _COLON or p == first:
        if is_query(text, first):
            return LineFault.QUERY_MISPLACED.value, 0, first
        return LineFault.COLON.value if p > first and ends_token(byte_at(text, p)) else LineFault.INDEX.value, 0, p
    column -= base
    if column < 0:
        return LineFault.INDEX_ZERO.value, 0, first
    if column >= max_features:
        return LineFault.INDEX_TOO_LARGE.value, 0, first
    return LineFault.NONE.value, column, p + 1


@compiled
def _common_entries(
    text: Bytes, at: int, base: int, max_features: int, single: bool, n: int, previous: int, into: ParseBuffers
) -> tuple[int, int, int]:
    """Read entries of the commonest form after one blank each, from offset `at` on, up to the first other one.

    That form is an INDEX that rises, and a VALUE of one to seven digits before the point and at most seven behind it,
    without an exponent. n values were read, the last one of column previous. Return (next offset, n, previous). Entries
    take half the time of the general path, because nothing is called and the digits behind the point are one word.
    """
    values, columns = into.values, into.columns
    bits = values.view(np.uint64)
    room = len(text) - _COMMON_ENTRY
    while at < room and byte_at(text, at) == _SPACE:
        p = at + 1
        column = w = 0
        digit = digit_at(text, p)
        while 0 <= digit <= 9:
            column = column * 10 + digit
            p += 1
            digit = digit_at(text, p)
        if byte_at(text, p) != _COLON or not 2 <= p - at <= 10:
            break
        p += 1
        negative = byte_at(text, p) == _MINUS
        if negative:
            p += 1
        first = p
        digit = digit_at(text, p)
        while 0 <= digit <= 9:
            w = w * 10 + digit
            p += 1
            digit = digit_at(text, p)
        if not 1 <= p - first <= 7:
            break
        value = float(w)
        if byte_at(text, p) == _POINT:
            digits, fraction = leading_digits(text, p + 1)
            if digits == 8:
                break
            value = (w * 100_000_000 + fraction) / 1e8  # of exact doubles: rounded once
            p += 1 + digits
        column -= base
        ended = byte_at(text, p) == _SPACE or byte_at(text, p) == _NEWLINE
        if not (ended and previous < column < max_features):
            break
        values[np.uint64(n)] = -value if negative else value
        if single and bits[np.uint64(n)] & BELOW_SINGLE == MIDWAY:
            break
        columns[np.uint64(n)] = column
        previous, at = column, p
        n += 1
    return at, n, previous


@compiled
def read_entries(
    text: Bytes, p: int, base: int, max_features: int, single: bool, missing: int, state: Ints, into: ParseBuffers
) -> tuple[int, int]:
    """Read INDEX:VALUE up to the comment or the end of the line; return (fault, next offset)."""
    values, columns = into.values, into.columns
    bits = values.view(np.uint64)
    n, width = state[VALUES], state[WIDTH]
    previous = int(np.int64(-1))  # no constant
    rising = True
    while True:
        p, n, previous = _common_entries(text, p, base, max_features, single, n, previous, into)
        width = max(width, previous + 1)
        p = after_blanks(text, p)
        if byte_at(text, p) == _NEWLINE or byte_at(text, p) == _HASH:
            break
        first = p
        fault, column, p = _column(text, p, base, max_features)
        if fault != 0:
            return fault, p
        if column == previous:
            return LineFault.INDEX_TWICE.value, first
        kind, value, after = read_number(text, p)
        if kind == BAD:
            return LineFault.VALUE_EMPTY.value if ends_token(byte_at(text, p)) else LineFault.VALUE.value, after
        if kind == WORD:
            last = byte_at(text, after - 1) | 32
            if missing == _AS_ERROR or (missing == _AS_NAN and (last == _F or last == _Y)):  # inf, infinity
                return LineFault.VALUE_MISSING.value, p
            if missing == _AS_NAN:
                value = np.nan
                state[MISSING] = 1
        values[n] = value
        if kind == SLOW:
            mark_hard(into.hard, state, n, p, after)
        elif kind != WORD and value != 0.0 and (single or abs(value) > LARGE):
            odd = not (_SMALLEST_SINGLE <= abs(value) <= LARGE)
            if odd or bits[n] & BELOW_SINGLE == MIDWAY:
                mark_hard(into.hard, state, n, p, after)
        columns[n] = column
        rising = rising and column > previous
        width = max(width, column + 1)
        previous, p = column, after
        n += 1
    state[VALUES], state[WIDTH] = n, width
    if not rising:
        state[UNSORTED] = 1
    return LineFault.NONE.value, p
