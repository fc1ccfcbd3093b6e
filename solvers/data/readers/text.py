"""Ranking text to Queries: LETOR and SVMlight lines with qid:, or without it and LightGBM's .query file beside.

A line is GRADE qid:ID INDEX:VALUE ... # comment. Features that a line leaves out are 0. A comment names the
document: "#docid = X inc = ..." as LETOR writes it gives X, any other comment the whole comment.

Small texts of the commonest form are read without kernels, which take longer to load than the texts take to read, and
to the same bits. The form is one of `parser`: whole grades, query ids that are whole numbers, features that rise, and
values of at most seven digits before the point and seven behind it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Unpack, get_args

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ids, Ints, Sizes
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import DataError, ParameterError, listed, warn
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.columns.grammar import ABSENT, is_largest, number_of, values_by_name
from ranktune.solvers.data.columns.roles import GRADES_RULE
from ranktune.solvers.data.grouping import Grouping, group_rows
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.decimals import Bytes, exact_double, exact_single
from ranktune.solvers.data.readers.parsing.entries import (
    BELOW_SINGLE,
    MIDWAY,
    QueryRuns,
    decoded,
    group_file,
    group_sizes,
    text_array,
)
from ranktune.solvers.data.readers.parsing.feature_rows import RowCollector
from ranktune.solvers.data.readers.parsing.options import Layout, LineOptions, Missing
from ranktune.solvers.data.readers.parsing.parse_buffers import (
    Columns,
    Grouped,
    LineFault,
    ParseBuffers,
    ParseResult,
    fault_error,
    line_of,
    second_occurrence,
)
from ranktune.solvers.data.readers.parsing.parser import in_order, parse
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks

_FORM = "A line is GRADE qid:ID INDEX:VALUE ... # comment."


def read_text(
    path: str | Path,
    *,
    n_features: int | None = None,
    qid: Ids | None = None,
    group: Sizes | None = None,
    **options: Unpack[LineOptions],
) -> Queries:
    r"""Return the queries of a text file, plain or compressed by gzip or bzip2.

    Lines of one query that are not adjacent are gathered; `Queries.rows` holds the file's row of each document. Reading
    is one pass over the bytes and takes about twice the memory of the arrays that are returned.

    Parameters
    ----------
    path : str or Path
        The file. Its content, not its name, decides whether it is compressed.
    n_features : int, optional
        Number of features: if the file has fewer, the others are 0; more are an error. By default the largest index.
    qid : array-like of shape (n_documents,), optional
        Query of each line, where lines have no qid and no .query file is beside the file.
    group : array-like of shape (n_queries,), optional
        Number of lines of each query, as an alternative to qid.
    **options
        dtype, np.float32 or np.float64, by default the first: type of the features; each value is the nearest such
        number to the decimal. one_based=False: features are counted from 0, not from 1. missing="keep", "error" or
        "zero": whether NULL, NaN, NA and None are missing values (NaN), are errors, or are read as 0; infinite values
        are errors, or with "zero" read as 0. max_features=1_000_000: feature indices
        above this number are errors. layout="auto", "dense", "sparse" or "written": "auto" is dense where at least a
        quarter of the values are written; "written" is sparse and keeps zeros that are written, which to XGBoost are
        other values than those that a line leaves out. grades="bad=0,good=1" or "-1=0", or a mapping: the numbers of
        grades that are no numbers, or are other ones.

    Returns
    -------
    Queries
        The documents grouped by query.

    Raises
    ------
    DataError
        The file is not such text. The message names file, line and column.
    ParameterError
        An option has a value that it cannot have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktune.solvers.data.readers.text import read_text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.txt"
    ...     _ = file.write_text("2 qid:1 1:0.5 3:1 # a\n0 qid:1 2:0.25 # b\n")
    ...     queries = read_text(file)
    >>> queries.features.tolist(), queries.document_ids.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], ['a', 'b'])
    """
    blocks = TextBlocks(Path(path), n_features=n_features, **options)
    rows = RowCollector(options.get("layout", "auto"), blocks.dtype, n_features)
    parts: list[Floats] = []
    documents: list[Sequence[str] | int] = []  # an int: so many rows without a comment
    for block in blocks:
        # the first block tells how many rows to expect; with a margin
        expected = 16 + int(1.1 * len(block.grades) * max(blocks.position.size / block.n_bytes, 1.0))
        if rows.n_rows == 0:
            _check_room(block, expected, blocks)
        rows.add(block.values, block.columns, block.ends, block.width, expected)
        parts.append(block.grades)
        documents.append(len(block.grades) if block.document_ids is None else block.document_ids)
    grouping, n_features = blocks.grouping(qid, group), blocks.check_features()
    features, joined, ids = rows.joined(n_features), np.concatenate(parts), _document_ids(documents)
    if grouping.rows is not None:
        features, joined = features[grouping.rows], joined[grouping.rows]
        ids = None if ids is None else ids[grouping.rows]
    has_missing = blocks.has_missing
    return Queries(features, joined, grouping.starts, grouping.ids, ids, None, grouping.rows, has_missing=has_missing)


SMALL = 16 << 20
"""The least bytes for which the free memory is checked."""


class TextBlock(NamedTuple):
    """The documents of some lines. The arrays of entries are valid until the next block is taken.

    values, columns  (n_values,) the entries, columns from 0 and rising in a row, below width
    ends             (n_rows,) number of values up to the end of each row
    grades           (n_rows,)
    document_ids     one a row, None where no line has a comment
    n_bytes          of the lines
    """

    values: Floats
    columns: Columns
    ends: Ints
    width: int
    grades: Floats
    document_ids: Sequence[str] | None
    n_bytes: int


class TextBlocks:
    """The documents of one file in blocks, which end anywhere; at the end, the queries that they belong to."""

    def __init__(
        self, path: Path, *, n_features: int | None = None, dtype: type | str = np.float32, one_based: bool = True,
        missing: Missing = "keep", max_features: int = 1_000_000, layout: Layout = "auto",
        grades: object = None,
    ) -> None:  # fmt: skip
        _check_options(n_features, dtype, layout, max_features, missing)
        self.position = self._at = Position(path)
        self.n_features, self.dtype, self.base = n_features, np.dtype(dtype), int(one_based)
        self.missing, self.max_features = missing, max_features
        self.has_missing = self._marked = False
        self.n_rows = self.width = 0
        self._single = self.dtype == np.float32
        self._grouped = Grouped.UNKNOWN
        self._unsorted_at = 0
        self._runs = QueryRuns()
        grade_of = values_by_name(grades, GRADES_RULE, number_of) if grades else {}
        self._grades = {word.encode(): repr(number).encode() for word, number in grade_of.items()}

    def __iter__(self) -> Iterator[TextBlock]:
        """Yield the blocks of the file, once. Raises DataError at the first fault."""
        texts = line_blocks(self.position)
        for parsed in in_order(map(self._numbered, texts) if self._grades else texts, self._parse, self.position):
            block = self._block(*parsed)
            if block is not None:
                yield block

    def _numbered(self, text: Bytes) -> Bytes:
        """Return lines with the numbers of grades in place of the words that stand for them."""
        grade_of = self._grades
        graded = re.sub(rb"(?m)^([ \t]*)([^\s#]+)", lambda hit: hit[1] + grade_of.get(hit[2], hit[2]), text.tobytes())
        return np.frombuffer(bytearray(graded), dtype=np.uint8)

    def _parse(self, text: Bytes, into: ParseBuffers) -> ParseResult:
        """Parse some lines, in any thread."""
        if self._grouped != Grouped.NO and self.position.size <= SMALL_TEXT:
            if (common := parse_common(text, into, self.base, self.max_features, self._single)) is not None:
                return common
        return parse(
            text, into, base=self.base, max_features=self.max_features, single=self._single,
            missing=self.missing, grouped=self._grouped,
        )  # fmt: skip

    def _block(self, text: Bytes, into: ParseBuffers, result: ParseResult, lines: int) -> TextBlock | None:
        """Return the documents of some lines that follow so many lines, None where they have none."""
        self._at = Position(self.position.path, lines)
        self._finish_hard(text, into, result.n_hard)
        self._grouped = result.grouped
        self.has_missing |= result.has_missing
        n_values, n_rows = result.n_values, result.n_rows
        values, columns, ends = into.values[:n_values], into.columns[:n_values], into.ends[:n_rows]
        if result.unsorted:
            values, columns = self._sorted(text, into, values, columns, ends)
        if self.n_features is not None and result.width > self.n_features:
            self._raise_width(text, into, columns, ends, self.n_features)
        if result.fault != LineFault.NONE:  # last: the rows before it may hold an earlier fault
            self._raise(text, result.fault, result.offset)
        block = None
        if n_rows:
            self._runs.add(text, into, result, self.n_rows, lines)
            places = into.comments[:n_rows]
            ids = decoded(text, places[:, 0], places[:, 1]) if result.commented else None
            block = TextBlock(values, columns, ends, result.width, into.grades[:n_rows].copy(), ids, len(text))
            self.n_rows += n_rows
            self.width = max(self.width, result.width)
        return block

    def check_features(self) -> int:
        """Return the number of features, after all blocks. Raises DataError where there is none."""
        if self._unsorted_at:
            warn(f"{self.position.path}:{self._unsorted_at}: features are out of order on this line, and were sorted.")
        if self._marked:
            warn(f"{self.position.path} {ABSENT}")
        n_features = self.width if self.n_features is None else self.n_features
        if n_features == 0:
            raise DataError(f"{self.position.path}: no line has a feature. {_FORM}")
        return n_features

    def _raise(self, text: Bytes, fault: LineFault, offset: int) -> None:
        limit, dtype = self.max_features, self.dtype.name
        raise fault_error(self._at, text, fault, offset, max_features=limit, dtype=dtype)

    def _raise_width(self, text: Bytes, into: ParseBuffers, columns: Columns, ends: Ints, n_features: int) -> None:
        beyond = np.flatnonzero(columns >= n_features)
        line = int(into.lines[np.searchsorted(ends, beyond[0], side="right")])
        raise DataError(
            f"{self.position.path}:{line_of(text, self._at.lines, line)}: features that the training data does "
            f"not have: {listed(np.unique(columns[beyond]) + self.base)}. It has {n_features}. Remove them here, or "
            "train on data that has them."
        )

    def _finish_hard(self, text: Bytes, into: ParseBuffers, n_hard: int) -> None:
        """Replace the numbers that need exact arithmetic, in the order of the text."""
        for which, first, end in into.hard[:n_hard].tolist():
            number = text[first:end].tobytes().decode("ascii")
            if which < 0:
                into.grades[-1 - which] = exact_double(number)
                if not 0.0 <= into.grades[-1 - which] < math.inf:
                    self._raise(
                        text, LineFault.GRADE_NEGATIVE if number[0] == "-" else LineFault.GRADE_NOT_FINITE, first
                    )
                continue
            double = exact_double(number)
            value = exact_single(number) if self._single else double
            if is_largest(double):
                if self.missing == "error":
                    self._raise(text, LineFault.VALUE_MISSING, first)
                value, self._marked = math.nan if self.missing == "keep" else 0.0, True
                self.has_missing |= self.missing == "keep"
            elif math.isinf(value):
                if self.missing != "zero" or math.isfinite(double):
                    self._raise(text, LineFault.VALUE_TOO_LARGE, first)
                value = 0.0
            into.values[which] = value

    def _sorted(
        self, text: Bytes, into: ParseBuffers, values: Floats, columns: Columns, ends: Ints
    ) -> tuple[Floats, Columns]:
        """Return values and columns with the columns of each row in ascending order."""
        row = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        order = np.lexsort((columns, row))
        same_row = row[1:] == row[:-1]
        if not self._unsorted_at:
            first = row[np.flatnonzero(same_row & (columns[1:] < columns[:-1]))[0]]
            self._unsorted_at = line_of(text, self._at.lines, int(into.lines[first]))
        values, columns = values[order], columns[order]
        twice = np.flatnonzero(same_row & (columns[1:] == columns[:-1]))
        if len(twice):
            index = int(columns[twice[0]]) + self.base
            line = int(into.lines[row[twice[0]]])
            self._raise(text, LineFault.INDEX_TWICE, second_occurrence(text, line, index))
        return values, columns

    def grouping(self, qid: Ids | None, group: Sizes | None) -> Grouping:
        """Return the queries of the rows, after all blocks; of lines without a qid those of qid, group or a file."""
        path, n_rows = self.position.path, self.n_rows
        if n_rows == 0:
            raise DataError(f"{path}: holds no documents. {_FORM}")
        if self._grouped == Grouped.YES:
            if qid is not None or group is not None:
                raise DataError(f"{path}: its lines have a qid: already. Leave qid= and group= out.")
            grouping, several_places = self._runs.grouping(n_rows)
            if several_places:
                warn(f"{path}:{several_places}")
            return grouping
        if qid is not None or group is not None:
            return group_rows(n_rows, qid, group)
        sizes = group_file(path)
        if sizes is None:
            raise DataError(
                f"{path}: no line has a qid: after its grade, and there is no {path.name}.query beside it with the "
                "number of documents of each query. Add one of them, or pass qid= or group=."
            )
        try:
            return group_rows(n_rows, None, group_sizes(sizes))
        except DataError as error:
            raise DataError(f"{sizes}: {error}") from None


def _check_options(n_features: int | None, dtype: type | str, layout: str, max_features: int, missing: str) -> None:
    """Raise ParameterError for a value that an option of `read_text` cannot have."""
    if dtype not in (np.float32, np.float64, "float32", "float64"):
        raise ParameterError(f"dtype={dtype!r}: features are held as np.float32 or np.float64.")
    if n_features is not None:
        check_count("n_features", n_features)
    check_count("max_features", max_features)
    check_choice("layout", layout, get_args(Layout))
    check_choice("missing", missing, get_args(Missing))


def _check_room(block: TextBlock, expected: int, blocks: TextBlocks) -> None:
    """Raise DataError where so many rows like those of the first block are more than fits in memory."""
    size = blocks.dtype.itemsize
    of_row = min(block.width * size, len(block.values) // len(block.grades) * (size + 4))
    if expected * of_row > SMALL:
        check_room(f"{blocks.position.path}: about {expected} documents", expected * of_row)


def _document_ids(documents: list[Sequence[str] | int]) -> Array | None:
    if all(isinstance(part, int) for part in documents):
        return None
    return text_array([name for part in documents for name in ([""] * part if isinstance(part, int) else part)])


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
