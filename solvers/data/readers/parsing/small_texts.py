"""Small texts of the commonest form, read without kernels, which take longer to load than the texts take to read.

The form is one of `parser`: whole grades, query ids that are whole numbers, features that rise, and values of at most
seven digits before the point and seven behind it. They are read to the bit as the kernels read them.
"""

from __future__ import annotations

import re

import numpy as np

from ranktune.solvers.data.readers.parsing.decimals import Bytes
from ranktune.solvers.data.readers.parsing.entries import BELOW_SINGLE, MIDWAY
from ranktune.solvers.data.readers.parsing.parse_buffers import Grouped, LineFault, ParseBuffers, ParseResult

SMALL_TEXT = 1 << 23  # bytes of a file

_LINE = re.compile(
    rb"(\d{1,9}) qid:(0|[1-9]\d{0,17})((?: \d{1,7}:-?\d{1,7}(?:\.\d{1,7})?)+)[ \t\r]*"
    rb"(?:#[# \t]*(?:docid[ \t]*=[ \t]*([^ \t\r\n\0]*)[^\n\0]*|([^\n\0]*?)[ \t\r]*))?\n"
)


def parse_common(text: Bytes, into: ParseBuffers, base: int, max_features: int, single: bool) -> ParseResult | None:
    """Parse a text of the commonest form, None for any other."""
    lines, end = list(_LINE.finditer(text.tobytes())), len(text)
    if not lines or sum(len(line[0]) for line in lines) < end:
        return None
    entries = np.fromstring(b"".join(line[3] for line in lines).replace(b":", b" "), sep=" ").reshape(-1, 2)
    columns, values = entries[:, 0].astype(np.int32) - base, entries[:, 1].copy()
    ends = np.cumsum([line[3].count(b":") for line in lines])
    rises = np.diff(columns, prepend=-1) > 0
    rises[ends[:-1]] = True
    if not rises.all() or columns.min() < 0 or columns.max() >= max_features:
        return None
    if single and (values.view(np.uint64) & BELOW_SINGLE == MIDWAY).any():
        return None
    n_rows, n_values, width = len(lines), len(values), int(columns.max()) + 1
    into.values[:n_values], into.columns[:n_values], into.ends[:n_rows] = values, columns, ends
    into.grades[:n_rows] = [float(line[1]) for line in lines]
    into.lines[:n_rows] = [line.start() for line in lines]
    starts = [row for row, line in enumerate(lines) if row == 0 or line[2] != lines[row - 1][2]]
    into.runs[: len(starts)] = [(row, *lines[row].span(2), 1, int(lines[row][2])) for row in starts]
    into.comments[:n_rows] = [line.span(line.lastindex or 0) if line.lastindex != 3 else (end, end) for line in lines]
    commented = bool(np.diff(into.comments[:n_rows]).any())
    return ParseResult(
        LineFault.NONE, end, n_rows, n_values, len(starts), 0, n_rows, width, False, commented, Grouped.YES, False
    )
