"""Columns of documents, or of documents for queries, from a table beside a click log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from ranktune.solvers.clicks.counts import ClickCounts, places
from ranktune.solvers.clicks.reading.cells import codes, numbers_and_texts, numbers_of, text_of
from ranktune.solvers.clicks.reading.roles import NAMES
from ranktune.solvers.clicks.reading.store import Names, first_of
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.tables.opening import open_table


@dataclass(frozen=True, eq=False)
class DocumentColumns:
    """Columns of numbers and of text by document, or by pair of query and document.

    names    of the columns
    key      "document" or "pair": what row counts
    row      (n_documents,) or (n_pairs,) of the log: the row of values, the last one for what the table lacks
    values   (n_rows + 1, n_names)
    texts    name -> the texts of a column whose values are places in them
    others   columns that hold neither numbers nor text
    """

    names: Sequence[str]
    key: str
    row: Ints
    values: Floats
    texts: Mapping[str, Sequence[str]]
    others: Sequence[str]

    def at(self, rows: Array) -> Floats:
        """Return the values of impressions, (n, n_names), NaN where the table has none."""
        return as_floats(self.values[self.row[rows[self.key]]])


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """A table of documents, or of documents for queries: a row each, with the names of its columns of ids."""

    path: str | Path
    table: pa.Table
    document: str
    query: str | None

    @classmethod
    def read(cls, path: str | Path, known: Mapping[str, Sequence[str]] | None = None) -> Self:
        """Return the table of a csv, Parquet or jsonl file.

        The column of document ids, and that of queries if there is one, have the names of the log, which known has by
        role, or are recognised as in a log. Raises DataError where the file cannot be read or names no documents.
        """
        names = {role: (*(known or {}).get(role, ()), *NAMES[role]) for role in ("document", "query")}
        table = open_table(Path(path), names, needed=["document"])
        query = table.roles.get("query", [None])[0]
        return cls(path, table.read(text=True), table.roles["document"][0], query)

    def of(self, counts: ClickCounts) -> DocumentColumns:
        """Return the columns of numbers and of text. Raises DataError where a document is there twice."""
        keys = [self.document] if self.query is None else [self.query, self.document]
        ids = {name: text_of(self.table, [name]) for name in keys}
        twice = np.flatnonzero(~first_of(*(Names().numbered(each) for each in ids.values())))
        if len(twice):
            document = ids[self.document][int(twice[0])].as_py()
            raise DataError(f"{self.path}: has {document!r} twice. Give one row a document.")
        rest = self.table.drop_columns(keys)
        numbers, others = numbers_and_texts(rest)
        texts = {name: Names() for name in others}
        names = [*numbers, *texts]
        values = np.full((rest.num_rows + 1, len(names)), np.nan)
        for number, name in enumerate(names):
            column = text_of(rest, [name])
            values[:-1, number] = codes(column, texts[name]) if name in texts else numbers_of(column)
        place, n = places(counts.documents, ids[self.document].to_pylist()), len(counts.documents)
        if self.query is not None:
            place = counts.pairs_at(places(counts.queries, ids[self.query].to_pylist()), place)
            n = len(counts.firsts)
        row = np.full(n, rest.num_rows)
        row[place[place >= 0]] = np.flatnonzero(place >= 0)
        left = [name for name in rest.column_names if name not in names]
        known = {name: of_column.names for name, of_column in texts.items()}
        return DocumentColumns(names, "document" if self.query is None else "pair", row, as_floats(values), known, left)
