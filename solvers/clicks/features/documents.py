"""Numbers of documents, or of documents for queries, from a table beside a click log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars

from ranktune.solvers.clicks.counts import Counts, places
from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.clicks.reading.events import number_or_nan, numbers_in
from ranktune.solvers.clicks.reading.roles import NAMES
from ranktune.solvers.clicks.reading.sources import Every, frames
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats
from ranktune.solvers.core.errors import DataError


@dataclass(frozen=True, eq=False)
class DocumentColumns:
    """Columns of numbers by document, or by pair of query and document.

    names    of the columns
    key      "document" or "pair": what row counts
    row      (n_documents,) or (n_pairs,) of the log: the row of values, the last one for what the table lacks
    values   (n_rows + 1, n_names)
    others   columns that hold something else than numbers
    """

    names: Sequence[str]
    key: str
    row: Ints
    values: Floats
    others: Sequence[str]

    def at(self, rows: Array) -> Floats:
        """Return the values of impressions, (n, n_names), NaN where the table has none."""
        return as_floats(self.values[self.row[rows[self.key]]])


def read_documents(path: str | Path, counts: Counts) -> DocumentColumns:
    """Return the columns of numbers in a csv, Parquet or jsonl table of documents.

    The column of document ids, and that of queries if there is one, are recognised as in a log. Raises DataError where
    the file cannot be read, names no documents, or has a document twice.
    """
    parts = list(frames(Path(path), Every(), Account()))
    frame = polars.concat(parts, how="diagonal_relaxed") if parts else polars.DataFrame()
    by_name = {name.lower(): name for name in reversed(frame.columns)}
    document, query = (next((by_name[n] for n in NAMES[r] if n in by_name), None) for r in ("document", "query"))
    if document is None:
        raise DataError(
            f"{path}: has no column of documents. Name it as one of {', '.join(NAMES['document'])}; its columns: "
            f"{', '.join(frame.columns[:30])}."
        )
    keys = [document] if query is None else [query, document]
    twice = frame.filter(frame.select(polars.struct(keys).is_duplicated()).to_series())
    if twice.height:
        raise DataError(f"{path}: has {twice.row(0, named=True)[document]!r} twice. Give one row a document.")
    names = [name for name in numbers_in(frame) if name not in keys]
    values = as_floats(frame.select(number_or_nan(frame, name).alias(name) for name in names).to_numpy())
    place = places(counts.documents, frame[document].cast(polars.String).to_list())
    n = len(counts.documents)
    if query is not None:
        place = counts.pairs_at(places(counts.queries, frame[query].cast(polars.String).to_list()), place)
        n = len(counts.firsts)
    row = np.full(n, frame.height)
    row[place[place >= 0]] = np.flatnonzero(place >= 0)
    missing = np.full((1, len(names)), np.nan)
    others = [name for name in frame.columns if name not in (*names, *keys)]
    values = np.concatenate([values.reshape(frame.height, len(names)), missing])
    return DocumentColumns(names, "document" if query is None else "pair", row, values, others)
