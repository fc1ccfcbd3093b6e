"""Judgments: what clicks say of the relevance of documents for queries, with intervals and how much is behind it."""

from __future__ import annotations

import csv as python_csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, guarded
from ranktune.solvers.core.files.atomic import atomic_write

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN, ONE_POSITION, UNKNOWN = "known", "one position", "unknown"


@dataclass(frozen=True, eq=False)
class Judgments:
    """Relevance by query and document, (n,) each.

    query, document  names
    relevance        the probability of a click at the first position; of clicks over expected clicks, their ratio;
                     NaN where it is unknown
    low, high        its 95 % interval
    impressions      how often the document was shown for the query
    effective        impressions at the first position that would tell as much
    weight           for learning, from 0 to 1: the share of what is known that comes from the pair's own impressions;
                     the rest is the prior's
    status           "known"; "one position": the pair was seen at one position only, so that its relevance rests on
                     what other pairs tell of that position, and nothing of its own can contradict it; "unknown": it
                     was seen only at positions whose examination the log does not tell, so that there is no grade
    """

    query: Sequence[str]
    document: Sequence[str]
    relevance: Floats
    low: Floats
    high: Floats
    impressions: Floats
    effective: Floats
    weight: Floats
    status: Sequence[str]

    def save(self, path: Path | str) -> None:
        """Write the judgments as a table, csv or Parquet by the ending of path, with a column for each field.

        In csv, a query or a document that begins like a formula of a spreadsheet begins with an apostrophe, which is
        taken off where judgments are read. Raises ParameterError on another ending, OSError where the file cannot be
        written.
        """
        import pyarrow as pa  # takes a moment, which fits do not need
        from pyarrow import parquet

        path = Path(path)
        check_ending(path)
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        if path.suffix == ".csv":
            columns |= {name: [*map(guarded, columns[name])] for name in ("query", "document")}
        table = pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})
        write = write_csv if path.suffix == ".csv" else parquet.write_table
        atomic_write(path, partial(write, table))


def write_csv(table: pa.Table, file: BinaryIO, *, titles: bool = True) -> None:
    """Write a table as csv, numbers with decimals: readers tell by the first rows what a column is."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    columns = [
        pc.replace_substring_regex(column.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
        if pa.types.is_floating(column.type)
        else column
        for column in table.columns
    ]
    if titles:
        python_csv.writer(line := StringIO(), lineterminator="\n").writerow(table.column_names)
        file.write(line.getvalue().encode())
    csv.write_csv(pa.table(columns, table.column_names), file, csv.WriteOptions(include_header=False))


def check_ending(path: Path, what: str = "judgments are", endings: Sequence[str] = (".csv", ".parquet")) -> None:
    """Raise ParameterError for a file whose ending does not tell how it is written."""
    if path.suffix not in endings:
        raise ParameterError(f"{path}: {what} written as {' or '.join(endings)}, by the ending of the name.")
