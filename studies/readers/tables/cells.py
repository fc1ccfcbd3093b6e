"""Whether the rows of a csv or tsv file are whole: libraries fill up what a row lacks, as in a file that is cut off."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ranktune.solvers.core.errors import DataError
from ranktune.studies.readers.streams import Position, line_blocks, lines_of

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


def check_cells(path: Path, separator: str) -> None:
    """Raise DataError for a row that has another number of cells than the first one; empty lines are none."""
    position, expected, sign = Position(path), 0, ord(separator)
    for text in line_blocks(position):
        if (text == _QUOTE).any():
            _check_quoted(path, separator)
            return
        ends = np.flatnonzero(text == _NEWLINE)
        returns = np.flatnonzero(text == _RETURN)
        lone = returns[text[np.minimum(returns + 1, len(text) - 1)] != _NEWLINE]
        if len(lone):
            line = position.lines + int(np.searchsorted(ends, lone[0])) + 1
            raise DataError(f"{path}:{line}: has a carriage return within a row. Remove it.")
        lengths = np.diff(ends, prepend=-1) - 1
        cells = np.diff(np.searchsorted(np.flatnonzero(text == sign), ends), prepend=0) + 1
        cells[(lengths == 0) | ((lengths == 1) & (text[ends - 1] == _RETURN))] = 0
        present = np.flatnonzero(cells)
        if len(present):
            expected = expected or int(cells[present[0]])
            wrong = present[cells[present] != expected]
            if len(wrong):
                raise _wrong(path, position.lines + int(wrong[0]) + 1, int(cells[wrong[0]]), expected)
        position.lines += len(ends)


def _check_quoted(path: Path, separator: str) -> None:
    position, expected = Position(path), 0
    reader = csv.reader(_lines(position), delimiter=separator)
    try:
        for row in reader:
            expected = expected or len(row)
            if row and len(row) != expected:
                raise _wrong(path, position.lines, len(row), expected)
    except csv.Error as error:
        raise DataError(f"{path}:{position.lines}: {error}.") from None


def _lines(position: Position) -> Iterator[str]:
    for line in lines_of(position):
        yield f"{line}\n"


def _wrong(path: Path, line: int, found: int, expected: int) -> DataError:
    return DataError(
        f"{path}:{line}: has {found} cells, and the first line {expected}: every row needs a cell for each column, if "
        "only an empty one. Is the file cut off?"
    )
