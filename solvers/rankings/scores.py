"""Scores in files and tables: one a line in the order of the rows, by query and document id, or as a TREC run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats
from ranktune.solvers.core.errors import DataError, listed, warn
from ranktune.solvers.data.columns.arrow import is_number
from ranktune.solvers.data.columns.grammar import ids_of, number_of
from ranktune.solvers.data.columns.roles import DOCUMENTS
from ranktune.solvers.data.columns.usual import USUAL, no_column, plain, usual
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.streams import Position, lines_of, words_of
from ranktune.solvers.data.readers.tables.opening import open_table, read_roles
from ranktune.solvers.data.readers.tables.runs import read_run
from ranktune.solvers.rankings.base import WantedFeatures, checked_scores

ROLES = {"qid": usual("qid", "group", "query"), "document": DOCUMENTS, "score": usual("score")}
ByDocument = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores in the order of the rows of the data; query_ids, where they are given, must be those of the rows."""

    name: str
    values: Floats
    query_ids: Sequence[str] | None = None
    wanted: WantedFeatures = field(default=WantedFeatures())

    def scores(self, queries: Queries) -> Floats:
        """Return the score of each document. Raises DataError where there is not one a row, or a query id differs."""
        if len(self.values) != queries.n_documents:
            raise DataError(
                f"{self.name} holds {len(self.values)} scores, and the data have {queries.n_documents} rows. Give one "
                "a row, in the order of the rows, or scores with query and document ids."
            )
        if self.query_ids is not None:
            self._check_ids(queries)
        return checked_scores(self.values if queries.rows is None else self.values[queries.rows], queries, self.name)

    def part(self, first: int, last: int) -> RowScores:
        """Return the scores of the rows from number first up to but without last."""
        ids = None if self.query_ids is None else self.query_ids[first:last]
        return RowScores(self.name, self.values[first:last], ids)

    def _check_ids(self, queries: Queries) -> None:
        expected = queries.in_caller_order(queries.query_ids[queries.query_of_document])
        for row, (here, there) in enumerate(zip(self.query_ids or (), ids_of(expected), strict=True)):
            if here != there:
                raise DataError(
                    f"{self.name}: row {row} has a score of query {here}, and the data have query {there} there. Give "
                    "scores in the order of the rows of the data, or add a column of document ids."
                )


@dataclass(frozen=True, eq=False)
class IdScores:
    """Scores by query id and document id, both as text.

    A document that a TREC run does not rank comes below all that it ranks in its query. Scores of other kinds must
    hold every document.
    """

    name: str
    by_query: Mapping[str, ByDocument]
    is_run: bool
    wanted: WantedFeatures = field(default=WantedFeatures())

    def covers(self, queries: Queries) -> bool:
        """Return whether it ranks any of the queries."""
        return not self.by_query.keys().isdisjoint(ids_of(queries.query_ids))

    def scores(self, queries: Queries) -> Floats:
        """Return the score of each document.

        Raises DataError for data without document ids, and for a query or, but for a run, a document without a score.
        """
        if queries.document_ids is None:
            raise DataError(
                f"{self.name} names documents, and the data have no document ids. Name their column "
                '(document="COLUMN"), or give one score per row.'
            )
        names = ids_of(queries.query_ids)
        absent = [name for name in names if name not in self.by_query]
        if absent:
            raise DataError(
                f"{self.name} has no scores of {len(absent)} of {len(names)} queries: {listed(absent, 5)}. Query ids "
                "must be the same text in both. Add scores for them, or leave these queries out of the data."
            )
        values = np.empty(queries.n_documents)
        documents = ids_of(queries.document_ids)
        for number, name in enumerate(names):
            first, last = int(queries.starts[number]), int(queries.starts[number + 1])
            values[first:last] = self._of_query(name, documents[first:last])
        return checked_scores(values, queries, self.name)

    def _of_query(self, query: str, documents: Sequence[str]) -> Floats:
        score_of = self.by_query[query]
        scores = np.array([score_of.get(document, math.nan) for document in documents])
        absent = np.isnan(scores)
        if not absent.any():
            return scores
        if self.is_run and absent.all():
            raise DataError(
                f"{self.name} ranks none of the documents of query {query}, such as {documents[0]}. Document ids must "
                "be the same text in both. Add documents of that query, or leave it out of the data."
            )
        if self.is_run:
            lowest = min(score_of.values())
            return np.where(absent, lowest - max(1.0, abs(lowest)), scores)
        raise DataError(
            f"{self.name} has no score of document {documents[int(np.argmax(absent))]} of query {query} "
            f"({np.count_nonzero(absent)} documents of that query). Every document needs one; document ids must be the "
            "same text in both."
        )

    def warn_of_unknown(self, parts: Iterable[Queries]) -> None:
        """Warn (RankTuneWarning) of documents, in queries of the parts, that none of the parts holds."""
        present: dict[str, set[str]] = {}
        for queries in parts:
            if queries.document_ids is not None:
                ids = ids_of(queries.document_ids)
                for number, query in enumerate(ids_of(queries.query_ids)):
                    present.setdefault(query, set()).update(ids[queries.starts[number] : queries.starts[number + 1]])
        unknown = sum(
            len(self.by_query[query].keys() - ids) for query, ids in present.items() if query in self.by_query
        )
        if unknown:
            warn(f"{self.name} ranks {unknown} documents that the data do not hold: they are left out.")


def scores_by_line(path: Path) -> RowScores:
    """Return the scores of a file with one number per line. Raises DataError for a line that is something else."""
    position, values = Position(path), []
    for line in lines_of(position):
        if text := line.strip():
            score = number_of(text)
            if score is None:
                raise DataError(
                    f"{path}:{position.lines}: {text[:60]!r} is not a score. Give one number per line, a csv file with "
                    "titles (qid, docid, score), a TREC run, or a model file."
                )
            values.append(score)
    if not values:
        raise DataError(f"{path}: holds no scores. Give one number per line.")
    return RowScores(str(path), np.array(values))


def scores_of_run(path: Path) -> IdScores:
    """Return the scores of a TREC run."""
    scores, _ = read_run(path)
    lines = [(words[0], float(words[3]), float(words[4])) for words in words_of(Position(path))]
    pairs = [(b[1] - a[1]) * (b[2] - a[2]) for a, b in pairwise(lines) if a[0] == b[0]]
    if sum(map(np.sign, pairs)) > 0.0:
        warn(
            f"the scores of {path} rise with its ranks, and a run ranks the highest score first: it may be upside "
            "down. Write the negative ranks as scores."
        )
    queries, documents = zip(*scores, strict=True)
    return _by_ids(str(path), queries, documents, list(scores.values()), is_run=True)


def scores_of_table(source: object, name: str) -> RowScores | IdScores:
    """Return the scores of a table: by the ids of queries and documents if it has both, else in the order of rows.

    Without a column that is called so, the scores are the only other column of numbers.
    """
    table = open_table(source, ROLES)
    ids = [column for role in ("qid", "document") for column in table.roles.get(role, ())[:1]]
    others = [field.name for field in table.schema if is_number(field.type) and field.name not in ids]
    score = table.roles.get("score", others if len(others) == 1 else [""])[0]
    if not score:
        raise DataError(f"{name}: {no_column('score', 'Call it score', ROLES['score'], table.names)}")
    columns = read_roles(replace(table, name=name, roles={**table.roles, "score": [score]}))
    values = np.array(columns["score"])
    if absent := np.isnan(values).sum():
        raise DataError(f"{name}: {absent} scores are missing. Every row needs one.")
    if plain(score) in USUAL["position"].names:
        warn(
            f"{name} ranks the lowest first, since {score!r} is called as a position is. If the highest are the best, "
            "call the column score."
        )
        values = -values
    if "document" not in columns:
        return RowScores(name, values, columns.get("qid"))
    if "qid" not in columns:
        raise DataError(
            f"{name}: {no_column('query id', 'Call it qid', ROLES['qid'], table.names)} It names documents."
        )
    return _by_ids(name, columns["qid"], columns["document"], values.tolist(), is_run=False)


def scores_of_array(values: Array | Sequence[float], name: str) -> RowScores:
    """Return the scores of an array (n_documents,), in the order of the rows."""
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} are not numbers. Give one number per document.") from None
    if scores.ndim != 1:
        raise DataError(f"{name} have shape {scores.shape}: give one number per document, (n_documents,).")
    return RowScores(name, scores)


def _by_ids(
    name: str, queries: Sequence[str], documents: Sequence[str], values: Sequence[float], *, is_run: bool
) -> IdScores:
    by_query: dict[str, dict[str, float]] = {}
    for query, document, value in zip(queries, documents, values, strict=True):
        scores = by_query.setdefault(query, {})
        if document in scores:
            raise DataError(f"{name} has two scores of document {document} of query {query}. Keep one.")
        scores[document] = value
    return IdScores(name, by_query, is_run)
