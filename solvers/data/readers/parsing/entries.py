"""Kernels for the entries of a line of ranking text, INDEX:VALUE, and for which lines belong to which query.

Every loop over characters ends at the newline that ends the text, so none checks the length of the text. The lines of a
query are a run of lines of equal qid, or of a group size in a file beside the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

import numpy as np

from ranktune.solvers.core.arrays import Array, Ints, as_objects
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import LARGE, number_of
from ranktune.solvers.data.grouping import Grouping, group_rows
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
    ParseResult,
)
from ranktune.solvers.data.readers.parsing.streams import Position, words_of

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


_WIDEST_ID = 64  # longer ids are held as objects, so that one long line does not widen every row


BESIDE = ("query", "group", "weight", "position")
"""Endings of files beside one of documents, as LightGBM and XGBoost name them."""


@dataclass
class QueryRuns:
    """Runs of adjacent lines with one qid, one list entry a block of text."""

    starts: list[Ints] = field(default_factory=list)
    lines: list[Ints] = field(default_factory=list)
    ids: list[Ints | list[str]] = field(default_factory=list)

    def add(self, text: Bytes, into: ParseBuffers, result: ParseResult, n_rows: int, n_lines: int) -> None:
        """Add the runs of a block that follows n_rows rows and n_lines lines."""
        runs = into.runs[: result.n_runs]
        self.starts.append(runs[:, 0] + n_rows)
        if result.n_lines == result.n_rows:
            self.lines.append(runs[:, 0] + n_lines + 1)
        else:
            newlines = np.flatnonzero(text == 10)
            self.lines.append(np.searchsorted(newlines, runs[:, 1]) + n_lines + 1)
        whole = bool((runs[:, 3] == 1).all())
        self.ids.append(runs[:, 4].copy() if whole else decoded(text, runs[:, 1], runs[:, 2]))

    def grouping(self, n_rows: int) -> tuple[Grouping, str]:
        """Return the rows grouped by id, and where a query is in several places: LINE: the first such query."""
        starts, lines = np.concatenate(self.starts), np.concatenate(self.lines)
        ids = _joined(self.ids)
        heads = np.concatenate([[True], ids[1:] != ids[:-1]])  # a block may end inside a query
        starts, lines, ids = starts[heads], lines[heads], ids[heads]
        grouping = group_rows(len(ids), ids)
        names = text_array(grouping.ids.tolist()) if ids.dtype == object else grouping.ids
        if len(grouping.ids) == len(ids):
            return Grouping(np.append(starts, n_rows), names, None), ""
        order = np.arange(len(ids)) if grouping.rows is None else grouping.rows
        lengths = np.diff(starts, append=n_rows)[order]
        firsts = np.cumsum(lengths) - lengths  # where each run goes
        rows = np.repeat(starts[order] - firsts, lengths) + np.arange(n_rows)
        sizes = np.add.reduceat(lengths, grouping.starts[:-1])
        whole = Grouping(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), names, rows)
        return whole, _in_several_places(ids.tolist(), lines.tolist())


def _in_several_places(ids: Sequence[int | str], lines: Sequence[int]) -> str:
    """Return LINE: and a sentence about the ids that occur more than once."""
    seen: set[int | str] = set()
    repeated: dict[int | str, int] = {}
    for name, line in zip(ids, lines, strict=True):
        if name in seen:
            repeated.setdefault(name, line)
        seen.add(name)
    name, line = next(iter(repeated.items()))
    others = f" (as do {len(repeated) - 1} more)" if len(repeated) > 1 else ""
    return (
        f"{line}: query {name} appears again after other queries{others}; its documents were gathered into one query."
    )


def file_beside(path: Path, *kinds: str) -> Path | None:
    """Return the file beside path of one of these endings, or None."""
    bare = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    names = [f"{base.name}.{kind}{packed}" for base in (path, bare) for kind in kinds for packed in ("", ".gz")]
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def group_file(path: Path) -> Path | None:
    """Return the file of group sizes beside path, as LightGBM (.query) and XGBoost (.group) name it, or None."""
    return file_beside(path, "query", "group")


def columns_beside(path: Path, n_rows: int) -> dict[str, list[float] | None]:
    """Return the weights and the positions of documents that files beside path have a line for, as LightGBM does."""
    columns: dict[str, list[float] | None] = {}
    for name, kind in (("document_weights", "weight"), ("positions", "position")):
        file = file_beside(path, kind)
        values = None if file is None else [number_of(word) for (word, *_) in words_of(Position(file))]
        if values is not None and (len(values) != n_rows or None in values):
            raise DataError(
                f"{file}: must hold a number for each of the {n_rows} documents of {path.name}, as LightGBM reads it. "
                "Correct it, or move it elsewhere."
            )
        columns[name] = cast("list[float] | None", values)
    return columns


def group_sizes(path: Path) -> list[int]:
    """Return the numbers of documents in a file of group sizes, one a line."""
    position, sizes = Position(path), []
    for words in words_of(position):
        word = " ".join(words)
        if not (word.isascii() and word.isdigit() and len(word) < 19):
            raise DataError(f"{path}:{position.lines}:1: {word[:40]!r} is not the number of documents of a query.")
        sizes.append(int(word))
    return sizes


def decoded(text: Bytes, firsts: Ints, ends: Ints) -> list[str]:
    """Return the parts text[first:end] as text; bytes that are not UTF-8 are escaped."""
    data = text.tobytes()
    return [
        data[first:end].decode("utf-8", "backslashreplace")
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)
    ]


def text_array(texts: Sequence[str]) -> Array:
    """Return texts as an array: of text, or of objects where one of them is long."""
    return np.array(texts) if max(map(len, texts)) <= _WIDEST_ID else as_objects(texts)


def _joined(parts: list[Ints | list[str]]) -> Array:
    """Return the ids as int64 where all are whole numbers, else all as text, in an object array."""
    numbers = [part for part in parts if isinstance(part, np.ndarray)]
    if len(numbers) == len(parts):
        return np.concatenate(numbers)
    return as_objects(
        [str(name) for part in parts for name in (part.tolist() if isinstance(part, np.ndarray) else part)]
    )
