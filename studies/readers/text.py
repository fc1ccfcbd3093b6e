"""Ranking text to Queries: LETOR and SVMlight lines with qid:, or without it and LightGBM's .query file beside.

A line is GRADE qid:ID INDEX:VALUE ... # comment. Features that a line leaves out are 0. A comment names the
document: "#docid = X inc = ..." as LETOR writes it gives X, any other comment the whole comment.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ids, Ints, Sizes
from ranktune.solvers.core.errors import DataError, RankTuneWarning, listed
from ranktune.solvers.data.grouping import Grouping, group_rows
from ranktune.solvers.data.queries import Queries
from ranktune.studies.readers.decimals import Bytes, exact_double, exact_single
from ranktune.studies.readers.faults import fault_error, line_of, second_occurrence
from ranktune.studies.readers.feature_rows import Rows
from ranktune.studies.readers.options import Layout, Missing, check_missing, check_text_options
from ranktune.studies.readers.parser import Columns, Fault, Grouped, ParseBuffers, parse
from ranktune.studies.readers.query_runs import QueryRuns, decoded, group_file, group_sizes, text_array
from ranktune.studies.readers.streams import Position, line_blocks

_FORM = "A line is GRADE qid:ID INDEX:VALUE ... # comment."


def read_text(
    path: str | Path,
    *,
    n_features: int | None = None,
    dtype: type | str = np.float32,
    one_based: bool = True,
    missing: Missing = "keep",
    strict: bool = False,
    max_features: int = 1_000_000,
    layout: Layout = "auto",
    qid: Ids | None = None,
    group: Sizes | None = None,
    max_expansion: float = 200.0,
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
    dtype : {np.float32, np.float64} or their names, default=np.float32
        Type of the features; each value is the nearest such number to the decimal.
    one_based : bool, default=True
        Whether features are counted from 1; if not, from 0.
    missing : {"keep", "error", "zero"}, default="keep"
        Whether NULL, NaN, NA and None are missing values (NaN), are errors, or are read as 0. Infinite values are
        errors, or with "zero" read as 0.
    strict : bool, default=False
        Whether to raise an error for what is otherwise repaired with a RankTuneWarning: a query in several places,
        features out of order.
    max_features : int, default=1_000_000
        Feature indices above this number are errors.
    layout : {"auto", "dense", "sparse"}, default="auto"
        Layout of the features; "auto" is dense where at least a quarter of the values are written.
    qid : array-like of shape (n_documents,), optional
        Query of each line, where lines have no qid and no .query file is beside the file.
    group : array-like of shape (n_queries,), optional
        Number of lines of each query, as an alternative to qid.
    max_expansion : float, default=200
        How many times its size a compressed file may unpack to.

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
    >>> from ranktune.studies.readers.text import read_text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.txt"
    ...     _ = file.write_text("2 qid:1 1:0.5 3:1 # a\n0 qid:1 2:0.25 # b\n")
    ...     queries = read_text(file)
    >>> queries.features.tolist(), queries.document_ids.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], ['a', 'b'])
    """
    check_text_options(n_features, dtype, layout, max_features)
    check_missing(missing)
    reader = _Reader(Path(path), n_features, np.dtype(dtype), one_based, missing, strict, max_features, layout)
    into: ParseBuffers | None = None
    for text in line_blocks(reader.position, max_expansion=max_expansion):
        if into is None or len(into.columns) < len(text) // 4 + 2:
            into = ParseBuffers.for_text_of(len(text))
        reader.add(text, into)
    return reader.queries(qid, group)


class _Reader:
    """Collects the blocks of one file: one list entry a block."""

    def __init__(
        self, path: Path, n_features: int | None, dtype: np.dtype[np.floating], one_based: bool, missing: Missing,
        strict: bool, max_features: int, layout: Layout,
    ) -> None:  # fmt: skip
        self.position = Position(path)
        self.n_features, self.dtype, self.base = n_features, dtype, int(one_based)
        self.missing, self.strict, self.max_features = missing, strict, max_features
        self.has_missing = False
        self.single = dtype == np.float32
        self.grouped = Grouped.UNKNOWN
        self.unsorted_at = 0
        self.rows = Rows(layout, dtype, n_features)
        self.runs = QueryRuns()
        self.grades: list[Floats] = []
        self.documents: list[list[str] | int] = []  # an int: so many rows without a comment

    def add(self, text: Bytes, into: ParseBuffers) -> None:
        """Parse one block and add its rows."""
        found = parse(
            text, into, base=self.base, max_features=self.max_features, single=self.single,
            missing=self.missing, grouped=self.grouped,
        )  # fmt: skip
        self._finish_hard(text, into, found.n_hard)
        self.grouped = found.grouped
        self.has_missing |= found.has_missing
        values, columns, ends = into.values[: found.n_values], into.columns[: found.n_values], into.ends[: found.n_rows]
        if found.unsorted:
            values, columns = self._sorted(text, into, values, columns, ends)
        if self.n_features is not None and found.width > self.n_features:
            self._raise_width(text, into, columns, ends, self.n_features)
        if found.fault != Fault.NONE:  # last: the rows before it may hold an earlier fault
            self._raise(text, found.fault, found.offset)
        if found.n_rows:
            self.runs.add(text, into, found, self.rows.n_rows, self.position.lines)
            places = into.comments[: found.n_rows]
            self.documents.append(decoded(text, places[:, 0], places[:, 1]) if found.commented else found.n_rows)
            self.grades.append(into.grades[: found.n_rows].copy())
            # the first block tells how many rows to expect; with a margin
            expected = 16 + int(1.1 * found.n_rows * max(self.position.size / len(text), 1.0))
            self.rows.add(values, columns, ends, found.width, expected)
        self.position.lines += found.n_lines

    def queries(self, qid: Ids | None, group: Sizes | None) -> Queries:
        """Return all rows that were added."""
        path, rows = self.position.path, self.rows
        if rows.n_rows == 0:
            raise DataError(f"{path}: holds no documents. {_FORM}")
        if self.unsorted_at:
            self._repaired(f"{path}:{self.unsorted_at}: features are out of order on this line, and were sorted.")
        n_features = rows.width if self.n_features is None else self.n_features
        if n_features == 0:
            raise DataError(f"{path}: no line has a feature. {_FORM}")
        grouping = self._grouping(qid, group)
        features, grades, documents = rows.joined(n_features), np.concatenate(self.grades), self._document_ids()
        if grouping.rows is not None:
            features, grades = features[grouping.rows], grades[grouping.rows]
            documents = None if documents is None else documents[grouping.rows]
        return Queries(
            features, grades, grouping.starts, grouping.ids, documents, None, grouping.rows,
            has_missing=self.has_missing,
        )  # fmt: skip

    def _raise(self, text: Bytes, fault: Fault, offset: int) -> None:
        limit, dtype = self.max_features, self.dtype.name
        raise fault_error(self.position, text, fault, offset, max_features=limit, dtype=dtype)

    def _raise_width(self, text: Bytes, into: ParseBuffers, columns: Columns, ends: Ints, n_features: int) -> None:
        beyond = np.flatnonzero(columns >= n_features)
        line = int(into.lines[np.searchsorted(ends, beyond[0], side="right")])
        raise DataError(
            f"{self.position.path}:{line_of(text, self.position.lines, line)}: features that the training data does "
            f"not have: {listed(np.unique(columns[beyond]) + self.base)}. It has {n_features}. Remove them here, or "
            "train on data that has them."
        )

    def _repaired(self, message: str) -> None:
        if self.strict:
            raise DataError(f"{message} strict reading does not repair: fix the file, or read it without strict.")
        warnings.warn(message, RankTuneWarning, stacklevel=4)

    def _finish_hard(self, text: Bytes, into: ParseBuffers, n_hard: int) -> None:
        """Replace the numbers that need exact arithmetic, in the order of the text."""
        for which, first, end in into.hard[:n_hard].tolist():
            number = text[first:end].tobytes().decode("ascii")
            if which < 0:
                into.grades[-1 - which] = exact_double(number)
                if not 0.0 <= into.grades[-1 - which] < math.inf:
                    self._raise(text, Fault.GRADE_NEGATIVE if number[0] == "-" else Fault.GRADE_NOT_FINITE, first)
                continue
            value = exact_single(number) if self.single else exact_double(number)
            if math.isinf(value):
                if self.missing != "zero" or math.isfinite(exact_double(number)):
                    self._raise(text, Fault.VALUE_TOO_LARGE, first)
                value = 0.0
            into.values[which] = value

    def _sorted(
        self, text: Bytes, into: ParseBuffers, values: Floats, columns: Columns, ends: Ints
    ) -> tuple[Floats, Columns]:
        """Return values and columns with the columns of each row in ascending order."""
        row = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        order = np.lexsort((columns, row))
        same_row = row[1:] == row[:-1]
        if not self.unsorted_at:
            first = row[np.flatnonzero(same_row & (columns[1:] < columns[:-1]))[0]]
            self.unsorted_at = line_of(text, self.position.lines, int(into.lines[first]))
        values, columns = values[order], columns[order]
        twice = np.flatnonzero(same_row & (columns[1:] == columns[:-1]))
        if len(twice):
            index = int(columns[twice[0]]) + self.base
            line = int(into.lines[row[twice[0]]])
            self._raise(text, Fault.INDEX_TWICE, second_occurrence(text, line, index))
        return values, columns

    def _grouping(self, qid: Ids | None, group: Sizes | None) -> Grouping:
        path, n_rows = self.position.path, self.rows.n_rows
        if self.grouped == Grouped.YES:
            if qid is not None or group is not None:
                raise DataError(f"{path}: its lines have a qid: already. Leave qid= and group= out.")
            grouping, several_places = self.runs.grouping(n_rows)
            if several_places:
                self._repaired(f"{path}:{several_places}")
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

    def _document_ids(self) -> Array | None:
        if all(isinstance(part, int) for part in self.documents):
            return None
        return text_array(
            [name for part in self.documents for name in ([""] * part if isinstance(part, int) else part)]
        )
