"""Which lines of a text belong to which query: runs of lines of equal qid, or group sizes in a file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from ranktune.solvers.core.arrays import Array, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.grouping import Grouping, group_rows
from ranktune.solvers.data.readers.parsing.decimals import Bytes
from ranktune.solvers.data.readers.parsing.parse_buffers import ParseBuffers, ParseResult
from ranktune.solvers.data.readers.parsing.streams import Position, words_of

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
    return np.array(texts) if max(map(len, texts)) <= _WIDEST_ID else _objects(texts)


def _objects(texts: Sequence[str]) -> Array:
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    return ids


def _joined(parts: list[Ints | list[str]]) -> Array:
    """Return the ids as int64 where all are whole numbers, else all as text, in an object array."""
    numbers = [part for part in parts if isinstance(part, np.ndarray)]
    if len(numbers) == len(parts):
        return np.concatenate(numbers)
    return _objects([str(name) for part in parts for name in (part.tolist() if isinstance(part, np.ndarray) else part)])
