"""Whether the rows of a csv or tsv file are whole: libraries fill up what a row lacks, as in a file that is cut off."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ranktune.solvers.core.errors import DataError
from ranktune.studies.readers.streams import Position, line_blocks, lines_of

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


def check_cells(path: Path, separator: str) -> bool:
    """Return whether there are empty lines, which are no rows.

    Raises DataError for a row that has another number of cells than the first one, and for an empty first line.
    """
    position, expected, sign, has_empty = Position(path), 0, ord(separator), False
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
        cells = np.diff(np.searchsorted(np.flatnonzero(text == sign), ends), prepend=0) + 1
        cells[(lengths == 0) | ((lengths == 1) & (text[ends - 1] == _RETURN))] = 0
        present = np.flatnonzero(cells)
        has_empty = has_empty or len(present) < len(cells)
        if has_empty and not expected and (not len(present) or present[0] > 0):
            raise _no_titles(path)
        if len(present):
            expected = expected or int(cells[present[0]])
            wrong = present[cells[present] != expected]
            if len(wrong):
                raise _wrong(path, position.lines + int(wrong[0]) + 1, int(cells[wrong[0]]), expected)
        position.lines += len(ends)
    return has_empty


def _check_quoted(path: Path, separator: str) -> bool:
    position, expected, has_empty = Position(path), 0, False
    reader = csv.reader(_lines(position), delimiter=separator)
    try:
        for row in reader:
            has_empty = has_empty or not row
            if has_empty and not expected:
                raise _no_titles(path)
            expected = expected or len(row)
            if row and len(row) != expected:
                raise _wrong(path, position.lines, len(row), expected)
    except csv.Error as error:
        raise DataError(f"{path}:{position.lines}: {error}.") from None
    return has_empty


def without_empty_rows(polars: ModuleType, frame: Any) -> Any:
    """Return a frame of polars, lazy or not, without the rows that empty lines become."""
    return frame.filter(~polars.all_horizontal(polars.all().is_null()))


def _lines(position: Position) -> Iterator[str]:
    for line in lines_of(position):
        yield f"{line}\n"


def _no_titles(path: Path) -> DataError:
    return DataError(
        f"{path}:1: is empty, and must hold the titles of the columns. Remove the empty lines before them."
    )


def _wrong(path: Path, line: int, found: int, expected: int) -> DataError:
    return DataError(
        f"{path}:{line}: has {found} cells, and the first line {expected}: every row needs a cell for each column, if "
        "only an empty one. Is the file cut off?"
    )
