"""Columns of documents, or of documents for queries, from a table beside a click log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars

from ranktune.solvers.clicks.counts import Counts, places
from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.clicks.reading.events import codes, number_or_nan, numbers_and_texts
from ranktune.solvers.clicks.reading.roles import NAMES
from ranktune.solvers.clicks.reading.sources import Every, frames
from ranktune.solvers.clicks.reading.store import Names
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats
from ranktune.solvers.core.errors import DataError


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
    frame: polars.DataFrame
    document: str
    query: str | None

    @classmethod
    def read(cls, path: str | Path, known: Mapping[str, Sequence[str]] | None = None) -> Self:
        """Return the table of a csv, Parquet or jsonl file.

        The column of document ids, and that of queries if there is one, have the names of the log, which known has by
        role, or are recognised as in a log. Raises DataError where the file cannot be read or names no documents.
        """
        parts = list(frames(Path(path), Every(), Account()))
        frame = polars.concat(parts, how="diagonal_relaxed") if parts else polars.DataFrame()
        by_name = {name.lower(): name for name in reversed(frame.columns)}
        document, query = (
            next(
                (by_name[n.lower()] for n in (*(known or {}).get(role, ()), *NAMES[role]) if n.lower() in by_name), None
            )
            for role in ("document", "query")
        )
        if document is None:
            raise DataError(
                f"{path}: has no column of documents. Name it as in the log, or as one of "
                f"{', '.join(NAMES['document'])}; its columns: {', '.join(frame.columns[:30])}."
            )
        return cls(path, frame, document, query)

    def of(self, counts: Counts) -> DocumentColumns:
        """Return the columns of numbers and of text. Raises DataError where a document is there twice."""
        path, frame, document, query = self.path, self.frame, self.document, self.query
        keys = [document] if query is None else [query, document]
        twice = frame.filter(frame.select(polars.struct(keys).is_duplicated()).to_series())
        if twice.height:
            raise DataError(f"{path}: has {twice.row(0, named=True)[document]!r} twice. Give one row a document.")
        rest = frame.drop(keys)
        numbers, others = numbers_and_texts(rest)
        texts = {name: Names() for name in others}
        written = rest.select(polars.col(name).cast(polars.String).replace("", None) for name in texts)
        names = [*numbers, *texts]
        values = rest.select(
            *(number_or_nan(rest, name).alias(name) for name in numbers),
            *(codes(written[name], of_column).alias(name) for name, of_column in texts.items()),
        ).to_numpy()
        place = places(counts.documents, frame[document].cast(polars.String).to_list())
        n = len(counts.documents)
        if query is not None:
            place = counts.pairs_at(places(counts.queries, frame[query].cast(polars.String).to_list()), place)
            n = len(counts.firsts)
        row = np.full(n, frame.height)
        row[place[place >= 0]] = np.flatnonzero(place >= 0)
        missing = np.full((1, len(names)), np.nan)
        others = [name for name in rest.columns if name not in names]
        known = {name: of_column.names for name, of_column in texts.items()}
        values = np.concatenate([values.reshape(frame.height, len(names)), missing])
        return DocumentColumns(names, "document" if query is None else "pair", row, as_floats(values), known, others)
