"""Files of a log as frames of the columns of use, one after another: csv, tsv, Parquet and jsonl, packed too."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars

from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.clicks.reading.json_lines import BLOCK, JsonLines
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.formats import READERS, ending, first_line
from ranktune.solvers.data.readers.tables.delimited import dialect_of

ROWS = 1 << 16
"""Rows of a Parquet file that are read at a time."""


class Every(frozenset[str]):
    """All names of columns. It holds those that lead to fields of structures."""

    def __contains__(self, name: object) -> bool:
        """Return True."""
        return True


def frames(path: Path, wanted: Collection[str], account: Account) -> Iterator[polars.DataFrame]:
    """Yield the columns of a file whose names, in small letters, are wanted. The lines are counted in account.

    Raises DataError where the file cannot be read, is damaged, or is of another format.
    """
    read = {"csv": _csv, "parquet": _parquet, "json": _json}
    suffix = ending(path).lower()
    kind = next((kind for kind in read if suffix in READERS.imported(kind).endings), None)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file. Give files of a click log: csv, Parquet or jsonl.")
    kind = kind or ("json" if first_line(path).startswith("{") else None)
    if kind is None:
        raise DataError(f"{path}: its name does not tell what it is. Give a .csv, .tsv, .parquet or .jsonl file.")
    with _reading(path):
        yield from read[kind](path, wanted, account)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise DataError for what a library raises in the block."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, polars.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Is it damaged, cut off, or not UTF-8?") from error


def _csv(path: Path, wanted: Collection[str], account: Account) -> Iterator[polars.DataFrame]:
    import pyarrow
    from pyarrow import csv

    def skipped(row: csv.InvalidRow) -> str:
        account.lines += 1
        account.left_out["a row of another number of cells"] += 1
        return "skip"

    separator = dialect_of(path).separator
    form = csv.ParseOptions(delimiter=separator, newlines_in_values=True, ignore_empty_lines=False)
    block = csv.ReadOptions(use_threads=False, block_size=BLOCK)
    form.invalid_row_handler = lambda _: "skip"
    with csv.open_csv(path, block, form, csv.ConvertOptions()) as reader:
        titles = reader.schema.names
    chosen = [title for title in titles if title.lower() in wanted]
    twice = next((title for title in chosen if titles.count(title) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: has several columns called {twice!r}. Rename or remove one of them.")
    account.lines += 1
    account.other["titles"] += 1
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(chosen, pyarrow.string()),
        include_columns=chosen,
        strings_can_be_null=True,
        null_values=["", "NULL", "null", "NA", "NaN", "nan", "None"],
    )
    form.invalid_row_handler = skipped
    with csv.open_csv(path, block, form, convert) as reader:
        for batch in reader:
            yield _frame(batch, account)


def _parquet(path: Path, wanted: Collection[str], account: Account) -> Iterator[polars.DataFrame]:
    from pyarrow import parquet

    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        leaves = [file.schema.column(number).path for number in range(len(file.schema.names))]
        names = {leaf.removesuffix(".list.element"): leaf for leaf in leaves}
        chosen = [name for name in names if name.lower() in wanted]
        for batch in file.iter_batches(ROWS, columns=[names[name] for name in chosen]):
            frame = _frame(batch, account)
            yield frame.select(_field(frame, name).alias(name) for name in chosen)


def _frame(batch: object, account: Account) -> polars.DataFrame:
    frame = polars.from_arrow(batch)
    assert isinstance(frame, polars.DataFrame)
    account.lines += frame.height
    if not frame.width:
        return frame
    empty = frame.select(polars.all_horizontal(polars.all().is_null())).to_series()
    if empty.any():
        account.other["empty lines"] += int(empty.sum())
        frame = frame.filter(~empty)
    return frame


def _field(frame: polars.DataFrame, name: str) -> polars.Expr:
    """Return the column of a name, where dots lead to fields of structures."""
    if name in frame.columns:
        return polars.col(name)
    first, *inner = name.split(".")
    column = polars.col(first)
    for part in inner:
        column = column.struct.field(part)
    return column


def _json(path: Path, wanted: Collection[str], account: Account) -> Iterator[polars.DataFrame]:
    return JsonLines(wanted, account).frames(path)
