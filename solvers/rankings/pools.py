"""Metrics of rankings by query; those by trec_eval's names are over their pool, all that is retrieved or judged.

A TREC run retrieves the documents that it ranks, any other ranking those of the data. A query of which nothing is
judged, or nothing retrieved, is left out; trec_eval's -c, complete here, counts judged queries without results as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.grammar import repeated
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.rankings.base import Ranking
from ranktune.solvers.rankings.scores import ByDocument, IdScores

Side = tuple[Ranking, Callable[[], Floats]]
"""A ranking, and what computes its scores of the documents of the data, not called where they do not matter."""


def measured(
    sides: Sequence[Side], queries: Queries, metrics: Sequence[Metric], options: ReadOptions, *, complete: bool = False
) -> tuple[list[dict[str, Floats]], Floats | None, Json]:
    """Return, for each side, metric -> its value by query, NaN for none; the weights of the queries; facts of the pool.

    The queries are those of the data, then others that qrels judge. The facts are of the first side, empty without
    qrels and TREC runs. Raises ParameterError for complete without both, and DataError where qrels judge data that have
    a document twice in a query.
    """
    names, runs = list(map(str, queries.query_ids.tolist())), [_run_of(ranking) for ranking, _ in sides]
    judged: Mapping[str, ByDocument] = {}
    words: Mapping[str, str] = {}
    if qrels := options.get("qrels"):
        known = read_judgments(qrels, options)
        judged, words = known.by_query, known.words
    elif any(runs):
        judged = _by_query(queries, names, np.maximum(queries.grades, 0.0))
    elif complete:
        raise ParameterError("complete counts judged queries without results as 0. Give the judgments: qrels=FILE.")
    names = [words.get(name, name) for name in names]
    known_names = set(names)
    names += [name for name in judged if name not in known_names]
    others, missed = np.ones(len(names) - queries.n_queries), 0.0 if complete else np.nan
    facts: list[Json] = []
    by_side: list[dict[str, Floats]] = []
    for run, (_, scores) in zip(runs, sides, strict=True):
        found = {words.get(name, name): documents for name, documents in run.items()}
        if judged and not run:
            found = _by_query(queries, names, scores())
        found = {name: found[name] for name in judged if name in found}
        values: dict[str, Floats] = {}
        for metric in metrics:
            if judged and metric.preset == "trec_eval":
                by_name = dict.fromkeys(judged, missed) | _over_pool(metric, found, judged)
                values[str(metric)] = np.array([by_name.get(name, np.nan) for name in names])
            else:
                values[str(metric)] = np.append(metric.per_query(scores(), queries), missed * others)
        by_side.append(values)
        ranked = sum(len(judged[name].keys() & documents.keys()) for name, documents in found.items())
        total, n = sum(map(len, judged.values())), len(judged)
        facts.append({"documents": total, "outside": total - ranked, "queries": n, "queries_outside": n - len(found)})
    weights = queries.query_weights
    weights = None if weights is None else np.append(weights, weights.mean() * others)
    return by_side, weights, facts[0] if judged else {}


def _run_of(ranking: Ranking) -> Mapping[str, ByDocument]:
    return ranking.by_query if isinstance(ranking, IdScores) and ranking.is_run else {}


def _over_pool(metric: Metric, found: Mapping[str, ByDocument], judged: Mapping[str, ByDocument]) -> dict[str, float]:
    """Return the metric of each query of found, whose best order and relevant documents are of all that is judged."""
    if not found:
        return {}
    pool = _judgements({name: judged[name] for name in found}, judged)
    scores = np.array([score for documents in found.values() for score in documents.values()])
    return dict(zip(found, metric.per_query(scores, _judgements(found, judged, pool)).tolist(), strict=True))


def _judgements(
    found: Mapping[str, ByDocument], judged: Mapping[str, ByDocument], pool: Judgements | None = None
) -> Judgements:
    pairs = [(each, judged[name].get(each, 0.0)) for name, documents in found.items() for each in documents]
    ids, grades = zip(*pairs, strict=True)
    return Judgements(np.array(grades), np.cumsum([0, *map(len, found.values())]), np.array(ids), pool=pool)


def _by_query(queries: Queries, names: Sequence[str], values: Floats) -> dict[str, ByDocument]:
    """Return the value of each document by query id and document id."""
    if queries.document_ids is None:
        return {}
    ids, ends = list(map(str, queries.document_ids.tolist())), queries.starts.tolist()
    found: dict[str, ByDocument] = {}
    for name, first, last in zip(names, ends, ends[1:], strict=False):
        found[name] = dict(zip(ids[first:last], values[first:last].tolist(), strict=True))
        if len(found[name]) < last - first:
            raise DataError(f"query {name} has the document {repeated(ids[first:last])} twice. Keep one.")
    return found
