"""Relevance judgments in a separate file: the grades of pairs of query and document, of people or from clicks.

`judgment_files` has the forms of files. A csv or Parquet table, as `ranktune clicks` writes it, has the columns query,
document, relevance, which is the grade, and weight, which is that of the document.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ids, JsonView, Mask
from ranktune.solvers.core.errors import DataError, RankTuneWarning, listed, unguarded
from ranktune.solvers.core.table import named
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.readers.formats import first_line
from ranktune.solvers.data.readers.judgment_files import FORMS, judgment_lines


class Judged(NamedTuple):
    """The grades of the rows of a table, (n_kept,), their weights, and which rows are kept, None for all."""

    grades: Floats
    weights: Floats | None = None
    kept: Mask | None = None


@dataclass(frozen=True)
class Judgments:
    """The grades of documents by query id and document id, both as text; weights are those of judgments from clicks.

    words are those of queries that the file gives beside their ids: the data may have either as ids. Where there are
    weights, a document without a judgment is unknown; else it is not relevant, as TREC has it.
    """

    path: Path
    by_query: Mapping[str, Mapping[str, float]]
    weights: Mapping[str, Mapping[str, float]] | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    def grade(self, query: str, document: str) -> float:
        """Return the grade of a document, NaN where it is not judged."""
        return self.by_query.get(self.words.get(query, query), {}).get(document, math.nan)

    def of(self, query_ids: Ids | None, document_ids: Array | None) -> Judged:
        """Return the grades of rows, with a RankTuneWarning about those that are not judged.

        They have grade 0; judgments from clicks leave them out. Raises DataError if rows have no query or document id,
        or if no pair of them is judged.
        """
        if query_ids is None or document_ids is None:
            lacks = "query" if query_ids is None else "document"
            option = "qid" if query_ids is None else "document"
            raise DataError(
                f"{self.path} judges pairs of query and document, and the data have no column of {lacks} ids. Name "
                f'it: {option}="COLUMN".'
            )
        queries = query_ids.tolist() if isinstance(query_ids, np.ndarray) else query_ids
        pairs = list(zip(map(str, queries), map(str, document_ids.tolist()), strict=True))
        grades = np.array([self.grade(*pair) for pair in pairs])
        known = ~np.isnan(grades)
        if not known.any():
            (query, document), other = pairs[0], next(iter(self.by_query))
            raise DataError(
                f"{self.path} judges none of the documents: it has document {next(iter(self.by_query[other]))!r} of "
                f"query {other!r} first, and the data document {document!r} of query {query!r}. Query and document ids "
                "must be the same text in both."
            )
        if not known.all():
            without = len({query for query, _ in pairs} - self.by_query.keys() - self.words.keys())
            others = f", and no document of {without} queries" if without else ""
            besides = sum(map(len, self.by_query.values())) - len(set(compress(pairs, known)))
            absent = f" {besides} of its judgments are of documents that the data do not hold." if besides else ""
            are = (
                "are not judged and have grade 0" if self.weights is None else "are left out: nothing is known of them"
            )
            warnings.warn(
                f"{self.path} judges {known.sum()} of {len(grades)} documents{others}: the others {are}.{absent}",
                RankTuneWarning,
                stacklevel=5,
            )
        if self.weights is None:
            return Judged(np.where(known, grades, 0.0))
        weights = [
            self.weights[query][document] for (query, document), judged in zip(pairs, known, strict=True) if judged
        ]
        return Judged(grades[known], np.array(weights), known)


def read_judgments(path: str | Path, named: JsonView = MappingProxyType({})) -> Judgments:
    """Return the judgments in a file, plain or compressed, whose form `judgment_files` finds.

    named are options of reading, such as qid="keyword", which hold where a column of the file has that title. Raises
    DataError for a document with several grades.
    """
    path = Path(path)
    if path.suffix == ".parquet" or {"relevance", "weight"} <= set(first_line(path).split(",")):
        return _of_clicks(path)
    by_query: dict[str, dict[str, float]] = {}
    lines, words = judgment_lines(path, named)
    for place, query, document, grade in lines:
        known = by_query.setdefault(query, {}).setdefault(document, grade)
        if known != grade:
            raise DataError(
                f"{place}: document {document} of query {query} has grade {grade:g}, and a line before gives it "
                f"{known:g}. Keep one of them."
            )
    if not by_query:
        raise DataError(f"{path}: holds no judgments. {FORMS}")
    return Judgments(path, by_query, words={text: query for text, query in words.items() if text not in by_query})


def _of_clicks(path: Path) -> Judgments:
    """Return the judgments in a table, without those that are unknown or have no weight."""
    what = (
        "is no table of judgments ({}). They are query, document, relevance, weight, as `ranktune clicks` writes them"
    )
    columns = small_table(path, {"query": str, "document": str, "relevance": float, "weight": float}, what)
    rows = list(zip(*columns, strict=True))
    known = [row for row in rows if row[2] is not None and math.isfinite(row[2]) and (row[3] or 0.0) > 0.0]
    if not known:
        raise DataError(f"{path}: none of its {len(rows)} judgments is known. Give more of the click log.")
    by_query: dict[str, dict[str, float]] = {}
    weights: dict[str, dict[str, float]] = {}
    for query, document, relevance, weight in known:
        query, document = query or "", document or ""  # as the query of a log without queries
        if path.suffix != ".parquet":
            query, document = unguarded(query), unguarded(document)
        if by_query.setdefault(query, {}).setdefault(document, relevance) != relevance:
            raise DataError(f"{path}: document {document} of query {query} has several grades. Keep one of them.")
        weights.setdefault(query, {})[document] = weight
    return Judgments(path, by_query, weights)


def small_table(path: Path, columns: Mapping[str, type], otherwise: str) -> list[list[Any]]:
    """Return columns of a table file as text or numbers. Raises DataError, as otherwise says, for others."""
    table = named("ranktune.solvers.data.readers.tables.opening:open_table")(path)  # loads Arrow, which few files need
    absent = [name for name in columns if name not in table.names]
    if absent:
        raise DataError(f"{path}: {otherwise.format(f'its columns are {listed(table.names)}')}.")
    texts = dict(zip(columns, (column.to_pylist() for column in table.read(list(columns), text=True)), strict=True))
    wrong = [
        (name, text)
        for name in texts
        if columns[name] is float
        for text in texts[name]
        if text and number_of(text) is None
    ]
    if wrong:
        name, text = wrong[0]
        raise DataError(f"{path}: {otherwise.format(f'{text[:40]!r} of {name} is no number')}.")
    return [
        [number_of(text) if text else None for text in texts[name]] if kind is float else texts[name]
        for name, kind in columns.items()
    ]
