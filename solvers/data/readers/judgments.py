"""Relevance judgments in a separate file: the grades of pairs of query and document, of people or from clicks.

As TREC gives them, a line is QUERY ITERATION DOCUMENT GRADE or, as BEIR has it, QUERY DOCUMENT GRADE below a line of
titles. A csv or Parquet table, as `ranktune clicks` writes it, has the columns query, document, relevance, which is the
grade, and weight, which is that of the document.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ids, Mask
from ranktune.solvers.core.errors import DataError, RankTuneWarning, unguarded
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.readers.formats import first_line
from ranktune.solvers.data.readers.parsing.streams import Position, words_of

_FORM = "A line is QUERY 0 DOCUMENT GRADE."
_COLUMNS = ("query", "document", "relevance", "weight")


class Judged(NamedTuple):
    """The grades of the rows of a table, (n_kept,), their weights, and which rows are kept, None for all."""

    grades: Floats
    weights: Floats | None = None
    kept: Mask | None = None


@dataclass(frozen=True)
class Judgments:
    """The grades of documents by query id and document id, both as text; weights are those of judgments from clicks.

    Where there are weights, a document without a judgment is unknown; else it is not relevant, as TREC has it.
    """

    path: Path
    by_query: Mapping[str, Mapping[str, float]]
    weights: Mapping[str, Mapping[str, float]] | None = None

    def grade(self, query: str, document: str) -> float:
        """Return the grade of a document, NaN where it is not judged."""
        return self.by_query.get(query, {}).get(document, math.nan)

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
            without = len({query for query, _ in pairs} - self.by_query.keys())
            others = f", and no document of {without} queries" if without else ""
            are = "have grade 0" if self.weights is None else "are left out: nothing is known of them"
            warnings.warn(
                f"{self.path} judges {known.sum()} of {len(grades)} documents{others}: the others {are}.",
                RankTuneWarning,
                stacklevel=5,
            )
        if self.weights is None:
            return Judged(np.where(known, grades, 0.0))
        weights = [
            self.weights[query][document] for (query, document), judged in zip(pairs, known, strict=True) if judged
        ]
        return Judged(grades[known], np.array(weights), known)


def read_judgments(path: str | Path) -> Judgments:
    """Return the judgments in a file, plain or compressed. Negative grades, which TREC gives to spam, become 0."""
    if Path(path).suffix == ".parquet" or {"relevance", "weight"} <= set(first_line(Path(path)).split(",")):
        return _of_clicks(Path(path))
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


def _of_clicks(path: Path) -> Judgments:
    """Return the judgments in a table, without those that are unknown or have no weight."""
    import polars  # not every study reads a table

    kinds = dict(zip(_COLUMNS, (polars.String, polars.String, polars.Float64, polars.Float64), strict=True))
    try:
        if path.suffix == ".parquet":
            frame = polars.read_parquet(path)
        else:
            frame = polars.read_csv(path, schema_overrides=kinds)
        frame = frame.select(polars.col(name).cast(kind) for name, kind in kinds.items())
        frame = frame.with_columns(polars.col(polars.String).fill_null(""))  # as the query of a log without queries
    except (polars.exceptions.PolarsError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise DataError(
            f"{path}: is no table of judgments ({first}). Its columns are {', '.join(_COLUMNS)}, as `ranktune clicks` "
            "writes them."
        ) from None
    known = frame.filter(polars.col("relevance").is_finite() & (polars.col("weight") > 0.0))
    if not known.height:
        raise DataError(f"{path}: none of its {frame.height} judgments is known. Give more of the click log.")
    by_query: dict[str, dict[str, float]] = {}
    weights: dict[str, dict[str, float]] = {}
    for query, document, relevance, weight in known.iter_rows():
        if path.suffix != ".parquet":
            query, document = unguarded(query), unguarded(document)
        by_query.setdefault(query, {})[document] = relevance
        weights.setdefault(query, {})[document] = weight
    return Judgments(path, by_query, weights)
