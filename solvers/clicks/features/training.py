"""A table to learn rankings from: the impressions of a click log, with what was known before each search.

Columns of documents, or of documents for queries, may come from a table beside the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa

from ranktune.solvers.clicks.counts import ClickCounts, Impressions, places
from ranktune.solvers.clicks.examination import CLIP, Examination
from ranktune.solvers.clicks.features.history import FEATURES, ClickHistory, SearchEvents
from ranktune.solvers.clicks.features.leaks import leaks, texts_of
from ranktune.solvers.clicks.judgments import check_ending, write_csv
from ranktune.solvers.clicks.reading.events import codes, numbers_and_texts, numbers_of, text_of
from ranktune.solvers.clicks.reading.roles import NAMES
from ranktune.solvers.clicks.reading.store import Names, first_of
from ranktune.solvers.core.arrays import Array, Floats, Ints, Mask, as_floats
from ranktune.solvers.core.errors import DataError, listed
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.columns.roles import DOCUMENT_WEIGHT, POSITION
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
    def read(cls, path: str | Path, columns: Mapping[str, Sequence[str]] | None = None) -> Self:
        """Return the table of a csv, Parquet or jsonl file.

        The column of document ids, and that of queries if there is one, have the names of the log, which columns has by
        role, or are recognised as in a log. Raises DataError where the file cannot be read or names no documents.
        """
        names = {role: (*(columns or {}).get(role, ()), *NAMES[role]) for role in ("document", "query")}
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
        words = {name: of_column.names for name, of_column in texts.items()}
        return DocumentColumns(names, "document" if self.query is None else "pair", row, as_floats(values), words, left)


KEYS = ("qid", "document", "grade", DOCUMENT_WEIGHT, POSITION)


class Training:
    """Searches as queries: documents with grades by clicks, weights by inverse propensity, and features.

    A click weighs 1 / the examination of its position, relative to the first one, and at most clip; what was not
    clicked weighs 1. So clicks count as often as they would at the first position. Impressions at positions whose
    examination is not known are left out. Positions are no features, and neither is a further column that is a leak.
    They are a column for solvers that correct for them in place of weights.

    Parameters
    ----------
    log : iterable of Impressions
        Such as a ClickLog with further=True, whose further columns become features.
    examination : Examination
        That of a fitted model of clicks.
    gap : str or float, default="1h"
        See History.
    documents : DocumentTable, optional
        A table of documents, or of documents for queries, whose columns become features too.

    Attributes
    ----------
    leaks : list of Leak
        The further columns that a ranker may not learn from.
    feature_names : list of str
        `FEATURES`, and the further columns that are left; those of text are written as text, of which tune makes
        categories.
    clipped : float
        Share of the weight of clicks, before it, at positions whose weight was clipped.
    left_out : int
        Impressions at positions whose examination is not known.

    Raises
    ------
    DataError
        The log has no times or no impressions, a document is in the table twice, or two columns have one name.
    ParameterError
        gap is no length of time.

    References
    ----------
    Joachims, Swaminathan & Schnabel 2017, "Unbiased Learning-to-Rank with Biased Feedback".

    Examples
    --------
    >>> log = ClickLog.open("log.csv", further=True)  # doctest: +SKIP
    >>> fitted = PositionBased().fit(ClickCounts.of(log))  # doctest: +SKIP
    >>> training = Training(log, fitted.examination, documents=DocumentTable.read("products.csv"))  # doctest: +SKIP
    >>> training.write("training.parquet")  # tune with document_weight="document_weight"  # doctest: +SKIP
    """

    def __init__(
        self,
        log: Iterable[Impressions],
        examination: Examination,
        *,
        gap: str | float = "1h",
        documents: DocumentTable | None = None,
    ) -> None:
        self.history, self.examination = ClickHistory(log, gap=gap), examination
        counts = self.history.counts
        self._documents: DocumentColumns | None = None if documents is None else documents.of(counts)
        runs, table = self.history.runs, self._documents
        names = [*runs.further_names, *(table.names if table else ())]
        self._texts = {
            name: np.array([*texts, None], dtype=object)
            for name, texts in {**runs.further_texts, **(table.texts if table else {})}.items()
        }
        twice = next((name for name in names if [*KEYS, *FEATURES, *names].count(name) > 1), None)
        if twice is not None:
            raise DataError(f"two columns of the training table would be called {twice!r}. Rename one of them.")
        self.leaks = leaks(self.history, names, self._further, float(counts.shown.sum()), self._texts)
        suspect = [leak.name for leak in self.leaks]
        self._kept = [number for number, name in enumerate(names) if name not in suspect]
        self.feature_names = [*FEATURES, *(names[number] for number in self._kept)]
        weighted = self._is_known(counts.position)
        clicks = np.where(weighted, counts.clicks, 0.0)
        self.clipped = float(clicks[self._weight(counts.position) > CLIP].sum() / max(clicks.sum(), 1e-300))
        self.left_out = int(counts.shown[~weighted].sum())

    def _is_known(self, position: Ints) -> Mask:
        return np.isin(position, self.examination.position[self.examination.known])

    def _weight(self, position: Ints) -> Floats:
        return 1.0 / np.maximum(self.examination.at(position), 1e-300)

    def _further(self, window: SearchEvents) -> Floats:
        parts = [window.rows["further"]]
        if self._documents is not None:
            parts.append(self._documents.at(window.rows))
        return np.concatenate(parts, axis=1)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the table in parts: qid, document, grade, document_weight, position and features, by time."""
        names = np.array(self.history.counts.documents, dtype=object)
        for window in self.history:
            weighted = self._is_known(window.rows["position"])
            rows, click = window.rows[weighted], window.rows["click"][weighted]
            weight = np.where(click > 0.0, np.minimum(self._weight(rows["position"]), CLIP), 1.0)
            documents = names[rows["document"]].tolist()
            keys = dict(zip(KEYS, (rows["search"], documents, click, weight, rows["position"]), strict=True))
            features = np.concatenate([window.features, self._further(window)[:, self._kept]], axis=1)[weighted]
            columns = dict(zip(self.feature_names, features.T, strict=True))
            texts = {
                name: pa.array(texts_of(columns[name], self._texts[name]), pa.string())
                for name in self._texts.keys() & columns.keys()
            }
            yield pa.table(
                {name: pa.array(column, from_pandas=True) for name, column in (keys | columns | texts).items()}
            )

    def write(self, path: str | Path) -> None:
        """Write the table as Parquet or csv, by the ending of path, part by part.

        Raises ParameterError on another ending, OSError where the file cannot be written.
        """
        path = Path(path)
        check_ending(path, "the table is")
        atomic_write(path, self._write_parquet if path.suffix == ".parquet" else self._write_csv)

    def _write_parquet(self, file: BinaryIO) -> None:
        from pyarrow import parquet

        parts = self.tables()
        first = next(parts)
        with parquet.ParquetWriter(file, first.schema) as writer:
            for part in chain([first], parts):
                writer.write_table(part)

    def _write_csv(self, file: BinaryIO) -> None:
        for number, table in enumerate(self.tables()):
            write_csv(table, file, titles=not number)

    @property
    def remarks(self) -> Sequence[str]:
        """What was left out and why, and the share of clicks whose weight was clipped."""
        found = [f"Left out: {leak}" for leak in self.leaks]
        if self._documents is not None and self._documents.others:
            found.append(
                f"Columns of documents without numbers or text are left out: {listed(self._documents.others)}."
            )
        if self.left_out:
            found.append(f"{self.left_out:,} impressions are at positions of unknown examination, and are left out.")
        found.append(f"{self.clipped:.1%} of the clicks are at positions where their weight is clipped to {CLIP:g}.")
        return found
