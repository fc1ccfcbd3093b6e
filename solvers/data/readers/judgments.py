"""Relevance judgments in a separate file: the grades of pairs of query and document, of people or from clicks.

`tables.judgment_files` has the forms of files. Those of clicks have weights, which are those of the documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ids, JsonView, Mask
from ranktune.solvers.core.errors import DataError, warn
from ranktune.solvers.core.table import named
from ranktune.solvers.data.columns.grammar import ids_of


class JudgedRows(NamedTuple):
    """The grades of the rows of a table, (n_used,), their weights, and which rows are used, None for all."""

    grades: Floats
    weights: Floats | None = None
    used: Mask | None = None


@dataclass(frozen=True)
class GradeTable:
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

    def of(self, query_ids: Ids | None, document_ids: Array | None) -> JudgedRows:
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
        pairs = list(zip(ids_of(query_ids), ids_of(document_ids), strict=True))
        grades = np.array([self.grade(*pair) for pair in pairs])
        is_judged = ~np.isnan(grades)
        if not is_judged.any():
            (query, document), other = pairs[0], next(iter(self.by_query))
            raise DataError(
                f"{self.path} judges none of the documents: it has document {next(iter(self.by_query[other]))!r} of "
                f"query {other!r} first, and the data document {document!r} of query {query!r}. Query and document ids "
                "must be the same text in both."
            )
        if not is_judged.all():
            without = len({query for query, _ in pairs} - self.by_query.keys() - self.words.keys())
            others = f", and no document of {without} queries" if without else ""
            besides = sum(map(len, self.by_query.values())) - len(set(compress(pairs, is_judged)))
            absent = f" {besides} of its judgments are of documents that the data do not hold." if besides else ""
            are = (
                "are not judged and have grade 0" if self.weights is None else "are left out: nothing is known of them"
            )
            warn(f"{self.path} judges {is_judged.sum()} of {len(grades)} documents{others}: the others {are}.{absent}")
        if self.weights is None:
            return JudgedRows(np.where(is_judged, grades, 0.0))
        weights = [
            self.weights[query][document] for (query, document), judged in zip(pairs, is_judged, strict=True) if judged
        ]
        return JudgedRows(grades[is_judged], np.array(weights), is_judged)


def read_judgments(path: str | Path, options: JsonView = MappingProxyType({})) -> GradeTable:
    """Return the judgments in a file, plain or compressed, whose form `judgment_files` finds.

    given are options of reading, such as qid="keyword", which hold where a column of the file has that title. Raises
    DataError for a document with several grades.
    """
    rows, words = named("ranktune.solvers.data.readers.tables.judgment_files:judgments_in")(Path(path), options)
    by_query: dict[str, dict[str, float]] = {}
    weights: dict[str, dict[str, float]] = {}
    for query, document, grade, weight in rows:
        earlier = by_query.setdefault(query, {}).setdefault(document, grade)
        if earlier != grade:
            raise DataError(
                f"{path}: document {document} of query {query} has the grades {earlier:g} and {grade:g}. Keep one of "
                "them."
            )
        if weight is not None:
            weights.setdefault(query, {})[document] = weight
    words = {text: query for text, query in words.items() if text not in by_query}
    return GradeTable(Path(path), by_query, weights or None, words)
