"""The form of csv and tsv files: what separates their cells, and whether their rows are whole.

Libraries fill up what a row lacks, as in a file that is cut off.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Ints, Mask
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.amounts import MISSING
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.readers.formats import ending, first_lines
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks, lines_of

_SEPARATORS = ",;\t|"
_DECIMAL_COMMA = re.compile(r'"?[+-]?(0,\d+|\d+,(\d\d?|\d{4,}))"?')
_DECIMAL_POINT = re.compile(r'"?[+-]?\d+\.\d+"?')
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


class Dialect(NamedTuple):
    """What separates the cells of a csv or tsv file, and whether a comma is the decimal sign of its numbers."""

    separator: str
    decimal_comma: bool


def dialect_of(path: Path) -> Dialect:
    """Return that of a csv or tsv file: the separator of its ending, unless only another one is in the first line.

    1,234 may be a thousand: a comma is the decimal sign where a number is there that can only be meant so, as 0,5 is,
    and none has a point.
    """
    title, *rows = first_lines(path, 100) or [""]
    usual = "\t" if ending(path).lower() in (".tsv", ".tab") else ","
    separator = usual if usual in title else next((sign for sign in _SEPARATORS if sign in title), usual)
    cells = [cell for row in rows for cell in row.split(separator)] if separator != "," else []
    commas, points = (any(map(sign.fullmatch, cells)) for sign in (_DECIMAL_COMMA, _DECIMAL_POINT))
    return Dialect(separator, commas and not points)


def is_row_of_numbers(line: str) -> bool:
    """Return whether a line can be the first one of a csv or tsv file without titles."""
    return any(count_cells(line, separator) for separator in ",\t")


def count_cells(line: str, separator: str) -> int:
    """Return how many cells a line has if it has several and all are numbers, else 0."""
    cells = [cell.strip() for cell in line.split(separator)]
    present = [cell for cell in cells if cell not in MISSING]
    return len(cells) if len(cells) > 1 and present and None not in map(number_of, present) else 0


def check_cells(path: Path, separator: str) -> int | None:
    """Return the number of rows, titles included, where the file ends with empty lines, else None.

    Raises DataError for a row that has another number of cells than the first one, and for an empty line before a row.
    """
    position, expected, sign = Position(path), 0, ord(separator)
    rows, empty = 0, 0  # the line of the first empty one, 0 without
    for text in line_blocks(position):
        if (text == _QUOTE).any():
            return _check_quoted(path, separator)
        ends = np.flatnonzero(text == _NEWLINE)
        returns = np.flatnonzero(text == _RETURN)
        lone = returns[text[np.minimum(returns + 1, len(text) - 1)] != _NEWLINE]
        if len(lone):
            line = position.lines + int(np.searchsorted(ends, lone[0])) + 1
            raise DataError(f"{path}:{line}: has a carriage return within a row. Remove it.")
        lengths = np.diff(ends, prepend=-1) - 1
        cells = np.diff(_counts(text == sign, ends), prepend=0) + 1
        cells[(lengths == 0) | ((lengths == 1) & (text[ends - 1] == _RETURN))] = 0
        present, absent = np.flatnonzero(cells), np.flatnonzero(cells == 0)
        if len(absent) and not empty:
            empty = position.lines + int(absent[0]) + 1
        if len(present):
            if empty and empty <= position.lines + int(present[-1]):
                raise _empty(path, empty)
            expected = expected or int(cells[present[0]])
            wrong = present[cells[present] != expected]
            if len(wrong):
                raise _wrong(path, position.lines + int(wrong[0]) + 1, int(cells[wrong[0]]), expected)
        rows += len(present)
        position.lines += len(ends)
    return rows if empty else None


def _counts(mask: Mask, ends: Ints) -> Ints:
    """Return how many values of a mask are true before each of some places: counted 64 at a time."""
    words = np.zeros(len(mask) // 64 + 1, dtype="<u8")
    packed = np.packbits(mask, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    before = np.concatenate([[0], np.cumsum(np.bitwise_count(words), dtype=np.int64)])
    lower = (np.uint64(1) << (ends % 64).astype(np.uint64)) - np.uint64(1)
    counts: Ints = before[ends // 64] + np.bitwise_count(words[ends // 64] & lower)
    return counts


def _check_quoted(path: Path, separator: str) -> int | None:
    position, expected, rows, empty = Position(path), 0, 0, 0
    reader = csv.reader((f"{line}\n" for line in lines_of(position)), delimiter=separator)
    try:
        for row in reader:
            if not row:
                empty = empty or position.lines
                continue
            if empty:
                raise _empty(path, empty)
            rows, expected = rows + 1, expected or len(row)
            if len(row) != expected:
                raise _wrong(path, position.lines, len(row), expected)
    except csv.Error as error:
        raise DataError(f"{path}:{position.lines}: {error}.") from None
    return rows if empty else None


def _empty(path: Path, line: int) -> DataError:
    return DataError(f"{path}:{line}: is empty, and rows follow. Remove the line, or give it a cell for each column.")


def _wrong(path: Path, line: int, cells: int, expected: int) -> DataError:
    return DataError(
        f"{path}:{line}: has {cells} cells, and the first line {expected}: every row needs a cell for each column, if "
        "only an empty one. Is the file cut off?"
    )
