"""What kind of table a file holds, by its ending or, for other endings, by its first line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks
from ranktune.solvers.data.readers.tables.runs import is_run_line, runs_in

CSV, TSV, PARQUET, ARROW, JSON, JSON_LINES, RUN = "csv", "tsv", "parquet", "arrow", "json", "jsonl", "run"
ENDINGS: Mapping[str, str] = {
    ".csv": CSV, ".tsv": TSV, ".tab": TSV, ".parquet": PARQUET, ".pq": PARQUET, ".arrow": ARROW, ".feather": ARROW,
    ".ipc": ARROW, ".json": JSON, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES, ".run": RUN, ".trec": RUN,
}  # fmt: skip
"""Ending of a name -> kind of table."""

COMPRESSED = (".gz", ".bz2", ".xz")
SEPARATORS = {CSV: ",", TSV: "\t"}
_OTHER_SEPARATORS = ";\t|"
_DECIMAL_COMMA = re.compile(r'"?[+-]?(0,\d+|\d+,(\d\d?|\d{4,}))"?')
_DECIMAL_POINT = re.compile(r'"?[+-]?\d+\.\d+"?')


class Dialect(NamedTuple):
    """What separates the cells of a csv or tsv file, and whether a comma is the decimal sign of its numbers."""

    separator: str
    decimal_comma: bool


def ending(path: Path) -> str:
    """Return the ending of path without that of a compression."""
    return Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix


def table_kind(path: Path) -> str | None:
    """Return the kind of table that a file or a folder of runs holds, None for ranking text."""
    if path.is_dir():
        return RUN if runs_in(path) else None
    known = ENDINGS.get(ending(path).lower())
    if known or path.suffix == ".npz" or not path.is_file():
        return known
    line = first_line(path)
    if is_run_line(line):
        return RUN
    return next((kind for kind, separator in SEPARATORS.items() if count_cells(line, separator)), None)


def first_line(path: Path) -> str:
    """Return the first line that is neither empty nor a comment, "" if there is none."""
    return next(_text_lines(path), "")


def _text_lines(path: Path) -> Iterator[str]:
    for block in line_blocks(Position(path), size=1 << 16):
        for line in block.tobytes().splitlines():
            text = line.decode(errors="replace").strip()
            if text and not text.startswith("#"):
                yield text


def dialect_of(path: Path, kind: str) -> Dialect:
    """Return that of a csv or tsv file: the separator of its ending, unless only another one is in the first line.

    1,234 may be a thousand: a comma is the decimal sign where a number is there that can only be meant so, as 0,5 is,
    and none has a point.
    """
    title, *rows = [*islice(_text_lines(path), 100)] or [""]
    own = SEPARATORS[kind]
    separator = own if own in title else next((sign for sign in _OTHER_SEPARATORS if sign in title), own)
    cells = [cell for row in rows for cell in row.split(separator)] if separator != "," else []
    commas, points = (any(map(sign.fullmatch, cells)) for sign in (_DECIMAL_COMMA, _DECIMAL_POINT))
    return Dialect(separator, commas and not points)


def count_cells(line: str, separator: str) -> int:
    """Return how many cells a line has if it has several and all are numbers, else 0."""
    cells = line.split(separator)
    try:
        numbers = [float(cell) for cell in cells if cell.strip()]
    except ValueError:
        return 0
    return len(cells) if len(cells) > 1 and numbers else 0
