"""csv and tsv files as open tables: what separates their cells, the types of their columns, whether rows are whole."""

from __future__ import annotations

import csv as python_csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.arrow import is_dated, is_number
from ranktune.solvers.data.columns.grammar import MISSING
from ranktune.solvers.data.readers.formats import COMPRESSED, count_cells, ending, first_line, first_lines
from ranktune.solvers.data.readers.parsing.streams import LONGEST_LINE, PACKED, Position, line_blocks, lines_of
from ranktune.solvers.data.readers.tables.batches import OpenTable, WiderType, check_titles

_SEPARATORS = ",;\t|"
_DECIMAL_COMMA = re.compile(r'"?[+-]?(0,\d+|\d+,(\d\d?|\d{4,}))"?')
_DECIMAL_POINT = re.compile(r'"?[+-]?\d+\.\d+"?')
_NEWLINE = 10
BLOCK = 1 << 20
"""Bytes that are read at a time; the first ones give the types of columns."""


class Dialect(NamedTuple):
    """What separates the cells of a csv or tsv file, and whether a comma is the decimal sign of its numbers.

    is_loose: quotes that are not those of csv are text, and rows without cells are left out, as are those of one cell,
    by which Quepid writes a query without documents; with tabs, spaces may part the cells of such a row.
    """

    separator: str
    decimal_comma: bool
    is_loose: bool = False


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


Cells: TypeAlias = Sequence[tuple[int, list[str]]]
"""The number and the cells of each row."""


def open_csv(path: Path) -> OpenTable:
    """Return a csv or tsv file as a table. Raises DataError where its first line has no titles."""
    first, dialect = first_line(path), dialect_of(path)
    if not first or count_cells(first, dialect.separator):
        what = "holds numbers" if first else "is not there"
        raise DataError(f"{path}: its first line {what}. Give the columns titles there.")
    return OpenTable(str(path), CsvFile(path, dialect))


class CsvFile:
    """A csv or tsv file.

    texts are the columns, of those of some names, that are text even where all values look like numbers; titles the
    names of the columns of a file that has none. A column has the type of its values in the first block of the file, or
    in all of it where it has none there. Where a later value does not fit, the type becomes wider and the file is to be
    read anew.
    """

    def __init__(
        self,
        path: Path,
        dialect: Dialect,
        *,
        texts: Callable[[Sequence[str]], Sequence[str]] = lambda names: (),
        titles: Sequence[str] = (),
    ) -> None:
        self.path, self._dialect, self._titles, self._block = path, dialect, list(titles), BLOCK
        self._rows: int | None = None
        self._types = dict[str, pa.DataType]()
        try:
            self._types = self._inferred(texts)
        except WiderType:
            self._types = self._inferred(texts)

    def _inferred(self, texts: Callable[[Sequence[str]], Sequence[str]]) -> dict[str, pa.DataType]:
        """Return the type of each column by its values in the first block."""
        with self._faults():
            with self._opened((), {}) as begin:
                types = {field.name: field.type for field in begin.schema}
                check_titles(str(self.path), begin.schema.names)
            types |= dict.fromkeys(set(texts(list(types))) & types.keys(), pa.string())
            unknown = [name for name in types if pa.types.is_null(types[name])]
            if unknown:
                types |= {field.name: field.type for field in self._read(unknown).schema}
            if whole := [name for name in types if pa.types.is_integer(types[name])]:
                with self._opened(whole, dict.fromkeys(whole, pa.string())) as begin:
                    first = next(iter(begin))
                codes = [
                    name for name in whole if pc.any(pc.match_substring(first[name], "x", ignore_case=True)).as_py()
                ]
                types |= dict.fromkeys(codes, pa.string())  # 0x1F is a code to people, and a number to Arrow
        return {name: kind if is_number(kind) or is_dated(kind) else pa.string() for name, kind in types.items()}

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns, as far as they are known."""
        return pa.schema(list(self._types.items()))

    @property
    def n_rows(self) -> int:
        """The number of lines, which is that of rows but for titles, line ends in cells and empty lines."""
        return sum(int(np.count_nonzero(block == _NEWLINE)) for block in line_blocks(Position(self.path)))

    def batches(self, names: Sequence[str], rows: int, text: bool) -> Iterator[pa.RecordBatch]:
        """Yield columns in batches of the rows of a block. Raises WiderType where a value does not fit its column."""
        types, done = dict.fromkeys(names, pa.string()) if text else self._types, 0
        with self._faults(), self._opened(names, types) as reader:
            for batch in reader:
                if self._rows is None and _has_empty_row(batch):
                    self._rows = check_rows(self.path, self._dialect) - (not self._titles)
                n_rows = batch.num_rows if self._rows is None else min(max(self._rows - done, 0), batch.num_rows)
                done += batch.num_rows
                if n_rows:
                    whole = batch.slice(0, n_rows)
                    yield self._with_points(whole) if text and self._dialect.decimal_comma else whole

    def _with_points(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return columns of text with decimal points in those of numbers."""
        for place, name in enumerate(batch.schema.names):
            if is_number(self._types[name]):
                points = pc.replace_substring_regex(batch.column(place), r"^\s*([+-]?\d+),(\d+)\s*$", r"\1.\2")
                batch = batch.set_column(place, name, points)
        return batch

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise WiderType where a value does not fit its column, and DataError for a row that is not whole."""
        try:
            yield
        except pa.ArrowInvalid as error:
            fault = re.match(r"In CSV column #(\d+):.*conversion error to (?!string)", str(error), re.DOTALL)
            name = list(self._types)[int(fault[1])] if fault is not None and self._types else ""
            if self._types.get(name, pa.string()) != pa.string():
                self._types[name] = pa.float64() if pa.types.is_integer(self._types[name]) else pa.string()
                raise WiderType from None
            if "straddles two block boundaries" in str(error) and self._block < LONGEST_LINE:
                self._block = LONGEST_LINE
                raise WiderType from None
            check_rows(self.path, self._dialect)
            raise

    def _options(self, names: Sequence[str], types: Mapping[str, pa.DataType]) -> dict[str, object]:
        read = {"block_size": self._block, "use_threads": False, "column_names": self._titles or None}
        form = {"delimiter": self._dialect.separator, "newlines_in_values": True, "ignore_empty_lines": False}
        convert = {
            "null_values": MISSING, "strings_can_be_null": True, "true_values": ["true"], "false_values": ["false"],
            "decimal_point": "," if self._dialect.decimal_comma else ".",
            "include_columns": list(names), "column_types": {name: types[name] for name in names if name in types},
        }  # fmt: skip
        return {
            "read_options": csv.ReadOptions(**read),
            "parse_options": csv.ParseOptions(**form),
            "convert_options": csv.ConvertOptions(**convert),
        }

    def _opened(self, names: Sequence[str], types: Mapping[str, pa.DataType]) -> csv.CSVStreamingReader:
        return csv.open_csv(_source(self.path, self._dialect), **self._options(names, types))

    def _read(self, names: Sequence[str]) -> pa.Table:
        return csv.read_csv(_source(self.path, self._dialect), **self._options(names, {}))


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a file."""

    def __init__(self, path: Path) -> None:
        self._blocks, self._rest = line_blocks(Position(path)), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override] # Buffer is of later Pythons
        """Copy the next bytes; return their number, 0 at the end."""
        if not self._rest:
            self._rest = memoryview(bytes(next(self._blocks, b"")))
        view = memoryview(into).cast("B")
        count = min(len(view), len(self._rest))
        view[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _source(path: Path, dialect: Dialect) -> object:
    if dialect.is_loose:
        text = io.StringIO()
        python_csv.writer(text, delimiter=dialect.separator).writerows(row for _, row in _rows_of(path, dialect))
        return pa.BufferReader(text.getvalue().encode())
    with open(path, "rb") as file:
        packed = path.suffix in COMPRESSED or file.read(3).startswith(PACKED)
    return pa.PythonFile(_Unpacked(path), mode="r") if packed else str(path)


def _has_empty_row(batch: pa.RecordBatch) -> bool:
    """Return whether no column has a value in some row, which may be an empty line."""
    if not batch.num_columns or not all(column.null_count for column in batch.columns):
        return False
    return bool(np.logical_and.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in batch]).any())


def check_rows(path: Path, dialect: Dialect) -> int:
    """Return the number of rows, titles included, without the empty lines at the end.

    Raises DataError for a row that has another number of cells than the first one, and for an empty line before a row.
    """
    expected, rows, empty = 0, 0, 0
    for line, row in _rows_of(path, dialect):
        if not row:
            empty = empty or line
            continue
        if empty:
            raise DataError(
                f"{path}:{empty}: is empty, and rows follow. Remove the line, or give it a cell for each column."
            )
        rows, expected = rows + 1, expected or len(row)
        if len(row) != expected:
            raise DataError(
                f"{path}:{line}: has {len(row)} cell{'s' * (len(row) != 1)}, and the first line {expected}: every row "
                "needs a cell for each column, if only an empty one. Is the file cut off?"
            )
    return rows


def _rows_of(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line of each row, and its cells."""
    position = Position(path)
    if dialect.is_loose:
        rows = cells_of(list(enumerate(lines_of(position), start=1)), dialect.separator)
        yield from ((line, row) for line, row in rows if len(row) > (dialect.separator != "\t"))
        return
    try:
        for row in python_csv.reader((f"{line}\n" for line in lines_of(position)), delimiter=dialect.separator):
            yield position.lines, row
    except python_csv.Error as error:
        raise DataError(f"{path}:{position.lines}: {error}.") from None


def cells_of(lines: Sequence[tuple[int, str]], sign: str | None) -> Cells:
    """Return the number of the last line of each row, and its cells; quotes that are not those of csv are text."""
    if sign is not None:
        rows = python_csv.reader((f"{line}\n" for _, line in lines), delimiter=sign, strict=True)
        with suppress(python_csv.Error):
            return [(lines[rows.line_num - 1][0], [cell.strip() for cell in row]) for row in rows]
    return [(number, [cell.strip() for cell in line.split(sign)] * bool(line.strip())) for number, line in lines]
