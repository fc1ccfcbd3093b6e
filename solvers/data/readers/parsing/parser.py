"""The byte parser of ranking text: one compiled pass over complete lines, with exact numbers, up to the first fault.

A line is GRADE [qid:ID] INDEX:VALUE ... [# COMMENT]. The parser fills `ParseBuffers`, which are large enough for the
densest possible text (an entry takes at least four bytes, a line two), and stops at the first fault with its kind and
its offset. The caller (text.py) words the error and stores the rows.

Of large files, two threads parse blocks of text, which `in_order` yields in their order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias, get_args

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.decimals import BAD, SLOW, WORD, Bytes, digit_at, ends_token, read_number
from ranktune.solvers.data.readers.parsing.entries import after_blanks, is_query, mark_hard, read_entries
from ranktune.solvers.data.readers.parsing.options import Missing
from ranktune.solvers.data.readers.parsing.parse_buffers import (
    COMMENTED,
    GROUPED,
    LINES,
    MISSING,
    QUERY,
    QUERY_END,
    ROWS,
    RUNS,
    UNSORTED,
    VALUES,
    Grouped,
    LineFault,
    ParseBuffers,
    ParseResult,
)
from ranktune.solvers.data.readers.parsing.streams import BLOCK, Position


def parse(
    text: Bytes, into: ParseBuffers, *, base: int, max_features: int, single: bool, missing: Missing, grouped: Grouped
) -> ParseResult:
    """Parse text, which consists of complete lines, into the buffers.

    base is the smallest index. With single, values that exact arithmetic must round to float32 are marked as hard.
    missing says whether NULL and NaN are read as NaN (keep), as 0 like infinity (zero), or are faults (error).
    """
    state = np.zeros(12, dtype=np.int64)
    state[GROUPED] = grouped
    fault, offset = parse_lines(text, base, max_features, single, get_args(Missing).index(missing), state, into)
    rows, values, runs, hard, lines, width = state[:UNSORTED].tolist()
    return ParseResult(
        LineFault(fault), offset, rows, values, runs, hard, lines, width, bool(state[UNSORTED]), bool(state[COMMENTED]),
        Grouped(state[GROUPED]), bool(state[MISSING]),
    )  # fmt: skip


# Kernels. Every loop over characters ends at the newline that ends the text, so none checks the length of the text.
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON, _MINUS, _EQUALS, _ZERO = 10, 13, 32, 9, 35, 58, 45, 61, 48
_DOCID = np.frombuffer(b"docid", dtype=np.uint8)


@inlined
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


@inlined
def _comment(text: Bytes, at: int, place: Ints) -> tuple[int, int]:
    """Write the offsets of the document id or of the comment to place, (2,); return (fault, offset of the newline)."""
    p = at
    while text[p] == _SPACE or text[p] == _TAB or text[p] == _HASH:
        p += 1
    newline = p
    while text[newline] != _NEWLINE:
        if text[newline] == 0:
            return LineFault.CONTROL.value, newline
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
    return LineFault.NONE.value, newline


@inlined
def _grade(text: Bytes, p: int, state: Ints, grades: Floats, hard: Ints) -> tuple[int, int]:
    """Read the grade at p; return (fault, next offset)."""
    kind, grade, after = read_number(text, p)
    if kind == WORD:
        return LineFault.GRADE_NOT_FINITE.value, p
    if kind == BAD or not ends_token(text[after]):
        return LineFault.GRADE.value, after
    if grade < 0.0:
        return LineFault.GRADE_NEGATIVE.value, p
    row = state[ROWS]
    if kind == SLOW:
        mark_hard(hard, state, -1 - row, p, after)
    grades[row] = grade
    return LineFault.NONE.value, after


@inlined
def _query(text: Bytes, p: int, state: Ints, runs: Ints) -> tuple[int, int]:
    """Read qid:ID at p, if present, and record the start of a new run of rows; return (fault, next offset)."""
    present = is_query(text, p)
    if state[GROUPED] < 0:
        state[GROUPED] = 1 if present else 0
    if present != (state[GROUPED] == 1):
        return LineFault.QUERY_UNEXPECTED.value if present else LineFault.QUERY_MISSING.value, p
    if not present:
        return LineFault.NONE.value, p
    first = p + 4
    p = first
    while not ends_token(text[p]):
        if text[p] < _SPACE:
            return LineFault.CONTROL.value, p
        p += 1
    if p == first:
        return LineFault.QUERY_EMPTY.value, p
    before = state[QUERY]
    same = state[RUNS] > 0 and p - first == state[QUERY_END] - before
    k = 0
    while same and k < p - first:
        same = text[first + k] == text[before + k]
        k += 1
    if not same:
        run = state[RUNS]
        whole, number = _whole(text, first, p)
        runs[run, 0], runs[run, 1], runs[run, 2], runs[run, 3], runs[run, 4] = state[ROWS], first, p, whole, number
        state[RUNS], state[QUERY], state[QUERY_END] = run + 1, first, p
    return LineFault.NONE.value, p


@compiled
def parse_lines(
    text: Bytes, base: int, max_features: int, single: bool, missing: int, state: Ints, into: ParseBuffers
) -> tuple[int, int]:
    """Parse text, see `parse`; return (fault, offset). One pass, without allocations."""
    comments = into.comments
    p = 0
    while p < len(text):
        line = p
        p = after_blanks(text, p)
        row = state[ROWS]
        if text[p] != _NEWLINE and text[p] != _HASH:
            fault, p = _grade(text, p, state, into.grades, into.hard)
            if fault == 0:
                fault, p = _query(text, after_blanks(text, p), state, into.runs)
            if fault == 0:
                fault, p = read_entries(text, p, base, max_features, single, missing, state, into)
            if fault != 0:
                return fault, p
            into.lines[row], into.ends[row] = line, state[VALUES]
            state[ROWS] += 1
        comments[row, 0] = comments[row, 1] = p  # a line without a grade: the next row overwrites it
        if text[p] == _HASH:
            fault, p = _comment(text, p, comments[row])
            if fault != 0:
                return fault, p
            if state[ROWS] > row and comments[row, 0] < comments[row, 1]:
                state[COMMENTED] = 1
        p += 1
        state[LINES] += 1
    return LineFault.NONE.value, p


THREADS = 2
"""More would wait for the one thread that places what they have parsed."""
MIN_SIZE = 8 * BLOCK
"""Bytes of a file that several threads parse."""

Parse: TypeAlias = Callable[[Bytes, ParseBuffers], ParseResult]


class Parsed(NamedTuple):
    """A block, what was parsed of it, and the number of lines before it. It is valid until the next one is taken."""

    text: Bytes
    into: ParseBuffers
    result: ParseResult
    lines: int


def in_order(texts: Iterator[Bytes], parse: Parse, position: Position) -> Iterator[Parsed]:
    """Yield the parsed blocks of texts; lines are counted in position as blocks are taken from texts.

    Once a block has shown whether lines have a qid, the other blocks of a large file are parsed by as many threads as
    there are processors for this process, at most THREADS. An error of texts is raised after the blocks before it.
    """
    into: ParseBuffers | None = None
    threads = min(processors(), THREADS)
    for text in texts:
        into = _large_enough(into, text)
        result, lines = parse(text, into), position.lines
        position.lines += result.n_lines
        yield Parsed(text, into, result, lines)
        if threads > 1 and result.grouped != Grouped.UNKNOWN and position.size >= MIN_SIZE:
            yield from _in_parallel(texts, parse, position, threads)


def _in_parallel(texts: Iterator[Bytes], parse: Parse, position: Position, threads: int) -> Iterator[Parsed]:
    waiting: deque[tuple[Bytes, ParseBuffers, Future[ParseResult], int]] = deque()
    slots = deque((np.empty(BLOCK, dtype=np.uint8), ParseBuffers.for_text_of(BLOCK)) for _ in range(threads + 2))
    failed: DataError | None = None

    def next_parsed() -> Parsed:
        text, into, future, lines = waiting.popleft()
        slots.append((text if text.base is None else text.base, into))
        return Parsed(text, into, future.result(), lines)

    with ThreadPoolExecutor(threads) as pool:
        try:
            for text in texts:
                room, into = slots.popleft()
                room = room if len(room) >= len(text) else np.empty(len(text), dtype=np.uint8)
                copy = room[: len(text)]
                copy[:] = text
                into = _large_enough(into, copy)
                waiting.append((copy, into, pool.submit(parse, copy, into), position.lines))
                position.lines += int(np.count_nonzero(copy == 10))
                if len(waiting) > threads:
                    yield next_parsed()
        except DataError as error:
            failed = error
        while waiting:
            yield next_parsed()
    if failed is not None:
        raise failed


def _large_enough(into: ParseBuffers | None, text: Bytes) -> ParseBuffers:
    return ParseBuffers.for_text_of(len(text)) if into is None or len(into.columns) < len(text) // 4 + 2 else into


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
