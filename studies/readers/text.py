"""Ranking text to Queries: LETOR and SVMlight lines with qid:, or without it and LightGBM's .query file beside.

A line is GRADE qid:ID INDEX:VALUE ... # comment. Features that a line leaves out are 0. A comment names the
document: "#docid = X inc = ..." as LETOR writes it gives X, any other comment the whole comment.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning, nearest
from ranktune.solvers.data.grouping import Grouping, group_rows
from ranktune.solvers.data.queries import Queries
from ranktune.studies.readers.decimals import exact_double, exact_single
from ranktune.studies.readers.faults import complaint, line_of, second_occurrence
from ranktune.studies.readers.feature_rows import Layout, Rows
from ranktune.studies.readers.parser import Fault, Grouped, ParseBuffers, ParseResult, parse
from ranktune.studies.readers.streams import Place, line_blocks

Missing = Literal["error", "zero"]
_WIDEST_ID = 64  # longer ids are held as objects, so that one long line does not widen every row


def read_text(
    path: str | Path,
    *,
    n_features: int | None = None,
    dtype: type | str = np.float32,
    one_based: bool = True,
    missing: Missing = "error",
    strict: bool = False,
    max_features: int = 1_000_000,
    layout: Layout = "auto",
    qid: Sequence[Hashable] | NDArray[Any] | None = None,
    group: Sequence[int] | NDArray[Any] | None = None,
    max_expansion: float = 200.0,
) -> Queries:
    """Return the queries of a text file; plain, gzip and bzip2 are told apart by content.

    n_features     fixes the number of features: fewer in the file are padded by 0, more are an error
    dtype          np.float32 or np.float64, or their names; values are the nearest such number to the decimal
    one_based      whether features are counted from 1; if not, from 0
    missing        "error", or "zero": NULL, NaN, NA, None and infinite values are read as 0
    strict         whether what is otherwise repaired with a RankTuneWarning (a query in several places, features
                   out of order) is an error
    max_features   the largest number of features that is believed
    layout         "dense", "sparse", or "auto": dense where a quarter of the values are written
    qid, group     ids or sizes of the queries, where the file itself has no qid: and no .query file beside it
    max_expansion  how many times its size a compressed file may unpack to

    A query whose lines are not adjacent is gathered; `Queries.rows` holds the file's row of each document.

    Raises DataError, which names file, line and column, for whatever is not such text. Memory: about twice the
    arrays returned. Cost: one pass over the bytes.
    """
    options = _Options(n_features, dtype, one_based, missing, strict, max_features, layout)
    reading = _Reading(Place(Path(path)), options)
    into: ParseBuffers | None = None
    for text in line_blocks(reading.place, max_expansion=max_expansion):
        if into is None or len(into.columns) < len(text) // 4 + 2:
            into = ParseBuffers.for_text_of(len(text))
        reading.add(text, into)
    return reading.queries(qid, group)


@dataclass(frozen=True)
class _Options:
    n_features: int | None
    dtype: type | str
    one_based: bool
    missing: Missing
    strict: bool
    max_features: int
    layout: Layout

    def __post_init__(self) -> None:
        try:
            known_dtype = np.dtype(self.dtype) in (np.float32, np.float64)
        except TypeError:
            known_dtype = False
        if not known_dtype:
            raise ParameterError(f"dtype={self.dtype!r}: features are held as np.float32 or np.float64.")
        for name in ("n_features", "max_features"):
            count = getattr(self, name)
            if count is not None and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0):
                raise ParameterError(f"{name}={count!r}: it must be a whole number of at least 0.")
        for name, known in (("missing", ("error", "zero")), ("layout", ("auto", "dense", "sparse"))):
            given = getattr(self, name)
            if given not in known:
                raise ParameterError(f"{name}={given!r} is unknown. {nearest(str(given), known)}")

    @property
    def single(self) -> bool:
        return np.dtype(self.dtype) == np.float32


@dataclass
class _Reading:
    """What has been read so far: one list entry a block."""

    place: Place
    options: _Options
    rows: Rows = field(init=False)
    grouped: Grouped = Grouped.UNKNOWN
    unsorted_at: int = 0
    grades: list[Floats] = field(default_factory=list)
    run_starts: list[Ints] = field(default_factory=list)
    run_lines: list[Ints] = field(default_factory=list)
    run_ids: list[Ints | list[str]] = field(default_factory=list)
    documents: list[list[str] | int] = field(default_factory=list)  # an int: so many rows without a comment

    def __post_init__(self) -> None:
        self.rows = Rows(self.options.layout, self.options.dtype, self.options.n_features)

    def add(self, text: NDArray[np.uint8], into: ParseBuffers) -> None:
        """Parse one block and keep what it holds."""
        options = self.options
        found = parse(
            text,
            into,
            base=int(options.one_based),
            max_features=options.max_features,
            single=options.single,
            zero_missing=options.missing == "zero",
            grouped=self.grouped,
        )
        self._finish_hard(text, into, found.n_hard)
        self.grouped = found.grouped
        values, columns, ends = into.values[: found.n_values], into.columns[: found.n_values], into.ends[: found.n_rows]
        if found.unsorted:
            values, columns = self._sorted(text, into, values, columns, ends)
        if options.n_features is not None and found.width > options.n_features:
            self._refuse_width(text, into, columns, ends, options.n_features)
        if found.fault != Fault.NONE:  # last: the rows before it may hold an earlier fault
            self._refuse(text, found.fault, found.offset)
        if found.n_rows:
            self._keep_names(text, into, found)
            self.grades.append(into.grades[: found.n_rows].copy())
            self.rows.add(values, columns, ends, found.width, self._expected_rows(found.n_rows, len(text)))
        self.place.lines += found.n_lines

    def _expected_rows(self, n_rows: int, n_bytes: int) -> int:
        """Return how many rows the file may have, judged by its first block; with something to spare."""
        return 16 + int(1.1 * n_rows * max(self.place.size / n_bytes, 1.0))

    def queries(self, qid: Any, group: Any) -> Queries:
        """Return all that was read."""
        path, rows = self.place.path, self.rows
        if rows.n_rows == 0:
            raise DataError(f"{path}: holds no documents. A line is GRADE qid:ID INDEX:VALUE ... # comment.")
        if self.unsorted_at:
            self._repaired(f"{path}:{self.unsorted_at}: features are out of order on this line, and were sorted.")
        n_features = rows.width if self.options.n_features is None else self.options.n_features
        if n_features == 0:
            raise DataError(f"{path}: no line has a feature. A line is GRADE qid:ID INDEX:VALUE ... # comment.")
        grouping = self._grouping(qid, group)
        features, grades, documents = rows.joined(n_features), np.concatenate(self.grades), self._document_ids()
        if grouping.rows is not None:
            features, grades = features[grouping.rows], grades[grouping.rows]
            documents = None if documents is None else documents[grouping.rows]
        return Queries(features, grades, grouping.starts, grouping.ids, documents, None, grouping.rows)

    def _refuse(self, text: NDArray[np.uint8], fault: Fault, offset: int) -> None:
        dtype = np.dtype(self.options.dtype).name
        limit = self.options.max_features
        raise complaint(self.place.path, self.place.lines, text, fault, offset, max_features=limit, dtype=dtype)

    def _refuse_width(self, text: NDArray[np.uint8], into: ParseBuffers, columns: Any, ends: Ints, n_features: int) -> None:
        base = int(self.options.one_based)
        beyond = np.unique(columns[columns >= n_features]) + base
        first = int(np.flatnonzero(columns >= n_features)[0])
        line = int(into.lines[np.searchsorted(ends, first, side="right")])
        listed = ", ".join(str(index) for index in beyond[:10]) + (", ..." if len(beyond) > 10 else "")
        raise DataError(
            f"{self.place.path}:{line_of(text, self.place.lines, line)}: features that the training data does not "
            f"have: {listed}. It has {n_features}. Remove them here, or train on data that has them."
        )

    def _repaired(self, message: str) -> None:
        if self.options.strict:
            raise DataError(f"{message} strict reading does not repair: fix the file, or read it without strict.")
        warnings.warn(message, RankTuneWarning, stacklevel=4)

    def _finish_hard(self, text: NDArray[np.uint8], into: ParseBuffers, n_hard: int) -> None:
        """Replace the numbers that the parser left, in the order of the text."""
        for which, first, end in into.hard[:n_hard].tolist():
            number = text[first:end].tobytes().decode("ascii")
            if which < 0:
                into.grades[-1 - which] = exact_double(number)
                if not 0.0 <= into.grades[-1 - which] < math.inf:
                    self._refuse(text, Fault.GRADE_NEGATIVE if number[0] == "-" else Fault.GRADE_NOT_FINITE, first)
                continue
            value = exact_single(number) if self.options.single else exact_double(number)
            if math.isinf(value):
                if self.options.missing == "error" or math.isfinite(exact_double(number)):
                    self._refuse(text, Fault.VALUE_TOO_LARGE, first)
                value = 0.0
            into.values[which] = value

    def _sorted(self, text: NDArray[np.uint8], into: ParseBuffers, values: Floats, columns: Any, ends: Ints) -> Any:
        """Return values and columns with the columns of each row rising."""
        row = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        order = np.lexsort((columns, row))
        same_row = row[1:] == row[:-1]
        if not self.unsorted_at:
            first = row[np.flatnonzero(same_row & (columns[1:] < columns[:-1]))[0]]
            self.unsorted_at = line_of(text, self.place.lines, int(into.lines[first]))
        values, columns = values[order], columns[order]
        twice = np.flatnonzero(same_row & (columns[1:] == columns[:-1]))
        if len(twice):
            index = int(columns[twice[0]]) + int(self.options.one_based)
            line = int(into.lines[row[twice[0]]])
            self._refuse(text, Fault.INDEX_TWICE, second_occurrence(text, line, index))
        return values, columns

    def _keep_names(self, text: NDArray[np.uint8], into: ParseBuffers, found: ParseResult) -> None:
        runs = into.runs[: found.n_runs]
        self.run_starts.append(runs[:, 0] + self.rows.n_rows)
        if found.n_lines == found.n_rows:
            self.run_lines.append(runs[:, 0] + self.place.lines + 1)
        else:
            newlines = np.flatnonzero(text == 10)
            self.run_lines.append(np.searchsorted(newlines, runs[:, 1]) + self.place.lines + 1)
        whole = bool((runs[:, 3] == 1).all())
        self.run_ids.append(runs[:, 4].copy() if whole else _decoded(text, runs[:, 1], runs[:, 2]))
        places = into.comments[: found.n_rows]
        self.documents.append(_decoded(text, places[:, 0], places[:, 1]) if found.commented else found.n_rows)

    def _grouping(self, qid: Any, group: Any) -> Grouping:
        path = self.place.path
        if self.grouped == Grouped.YES:
            if qid is not None or group is not None:
                raise DataError(f"{path}: its lines have a qid: already. Leave qid= and group= out.")
            return self._grouping_of_runs()
        if qid is not None or group is not None:
            return group_rows(self.rows.n_rows, qid, group)
        sizes = side_file(path)
        if sizes is None:
            raise DataError(
                f"{path}: no line has a qid: after its grade, and there is no {path.name}.query beside it with the "
                "number of documents of each query. Add one of them, or pass qid= or group=."
            )
        try:
            return group_rows(self.rows.n_rows, None, _read_sizes(sizes))
        except DataError as error:
            raise DataError(f"{sizes}: {error}") from None

    def _grouping_of_runs(self) -> Grouping:
        """Join the runs of equal ids: lines of a query that are apart are gathered, with a warning."""
        starts, lines = np.concatenate(self.run_starts), np.concatenate(self.run_lines)
        ids = _joined_ids(self.run_ids)
        heads = np.concatenate([[True], ids[1:] != ids[:-1]])  # a block may end inside a query
        starts, lines, ids = starts[heads], lines[heads], ids[heads]
        grouping = group_rows(len(ids), ids)
        ends = np.append(starts[1:], self.rows.n_rows)
        names = _text_array(grouping.ids.tolist()) if ids.dtype == object else grouping.ids
        if len(grouping.ids) == len(ids):
            return Grouping(np.append(starts, self.rows.n_rows), names, None)
        order = np.arange(len(ids)) if grouping.rows is None else grouping.rows
        self._warn_apart(ids, lines)
        lengths = (ends - starts)[order]
        firsts = np.cumsum(lengths) - lengths  # where each run goes
        rows = np.repeat(starts[order] - firsts, lengths) + np.arange(self.rows.n_rows)
        sizes = np.add.reduceat(lengths, grouping.starts[:-1])
        return Grouping(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), names, rows)

    def _warn_apart(self, ids: NDArray[Any], lines: Ints) -> None:
        seen: set[Hashable] = set()
        again = [(name, int(line)) for name, line in zip(ids.tolist(), lines, strict=True) if _seen(name, seen)]
        name, line = again[0]
        count = len({name for name, _ in again})
        self._repaired(
            f"{self.place.path}:{line}: query {name} appears again after other queries"
            f"{f' (as do {count - 1} more)' if count > 1 else ''}; its documents were gathered into one query."
        )

    def _document_ids(self) -> NDArray[Any] | None:
        if all(isinstance(part, int) for part in self.documents):
            return None
        return _text_array(
            [name for part in self.documents for name in ([""] * part if isinstance(part, int) else part)]
        )


def side_file(path: Path) -> Path | None:
    """Return the file of group sizes beside path, as LightGBM (.query) and XGBoost (.group) name it, or None."""
    bare = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    names = [
        f"{base.name}.{kind}{packed}" for base in (path, bare) for kind in ("query", "group") for packed in ("", ".gz")
    ]
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def _read_sizes(path: Path) -> list[int]:
    place = Place(path)
    sizes = []
    for text in line_blocks(place):
        for line in text.tobytes().splitlines():
            place.lines += 1
            word = line.strip()
            if word and not (word.isdigit() and len(word) < 19):
                shown = word[:40].decode("utf-8", "replace")
                raise DataError(f"{path}:{place.lines}:1: {shown!r} is not the number of documents of a query.")
            if word:
                sizes.append(int(word))
    return sizes


def _seen(name: Hashable, seen: set[Hashable]) -> bool:
    known = name in seen
    seen.add(name)
    return known


def _decoded(text: NDArray[np.uint8], firsts: Ints, ends: Ints) -> list[str]:
    data = text.tobytes()
    return [
        data[first:end].decode("utf-8", "backslashreplace")
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)
    ]


def _joined_ids(parts: list[Ints | list[str]]) -> NDArray[Any]:
    """Return the ids as int64 where all are whole numbers, else all as text, in an object array."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    texts = [str(name) for part in parts for name in (part.tolist() if isinstance(part, np.ndarray) else part)]
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    return ids


def _text_array(texts: list[str]) -> NDArray[Any]:
    if max(map(len, texts)) <= _WIDEST_ID:
        return np.array(texts)
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    return ids
