"""Relevance judgments in a separate file, as TREC gives them: the grades of pairs of query and document.

A line is QUERY ITERATION DOCUMENT GRADE or, as BEIR has it, QUERY DOCUMENT GRADE below a line of titles.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ids
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.readers.parsing.streams import Position, words_of

_FORM = "A line is QUERY 0 DOCUMENT GRADE."


@dataclass(frozen=True)
class Judgments:
    """The grades of documents by query id and document id, both as text."""

    path: Path
    by_query: Mapping[str, Mapping[str, float]]

    def grades(self, query_ids: Ids | None, document_ids: Array | None) -> Floats:
        """Return the grade of each row, (n_documents,): 0 where the document is not judged, with a RankTuneWarning.

        Raises DataError if rows have no query or document id, or if no pair of them is judged.
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
        grades = [self.by_query.get(query, {}).get(document) for query, document in pairs]
        n_judged = sum(grade is not None for grade in grades)
        if not n_judged:
            query, document = pairs[0]
            raise DataError(
                f"{self.path} judges none of the documents: the data have document {document} of query {query} first. "
                "Query and document ids must be the same text in both."
            )
        if n_judged < len(grades):
            without = len({query for query, _ in pairs} - self.by_query.keys())
            others = f", and no document of {without} queries" if without else ""
            warnings.warn(
                f"{self.path} judges {n_judged} of {len(grades)} documents{others}: the others have grade 0.",
                RankTuneWarning,
                stacklevel=5,
            )
        return np.array([0.0 if grade is None else grade for grade in grades])


def read_judgments(path: str | Path) -> Judgments:
    """Return the judgments in a file, plain or compressed. Negative grades, which TREC gives to spam, become 0."""
    by_query: dict[str, dict[str, float]] = {}
    position = Position(Path(path))
    for words in words_of(position):
        if len(words) not in (3, 4):
            raise DataError(f"{path}:{position.lines}: has {len(words)} words: it is no judgment. {_FORM}")
        grade = number_of(words[-1])
        if position.lines == 1 and all(number_of(word) is None for word in words) and words[-1].isidentifier():
            continue  # titles
        if grade is None or not math.isfinite(grade):
            raise DataError(f"{path}:{position.lines}: {words[-1][:40]!r} is no grade. {_FORM}")
        grade = max(grade, 0.0)
        known = by_query.setdefault(words[0], {}).setdefault(words[-2], grade)
        if known != grade:
            raise DataError(
                f"{path}:{position.lines}: document {words[-2]} of query {words[0]} has grade {grade:g}, and a line "
                f"before gives it {known:g}. Keep one of them."
            )
    if not by_query:
        raise DataError(f"{path}: holds no judgments. {_FORM}")
    return Judgments(Path(path), by_query)
