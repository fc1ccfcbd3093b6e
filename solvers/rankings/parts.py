"""The scores of a ranking on data, on one source or on the parts of a study's data, and its metrics by query.

Metrics by trec_eval's names are over the pool of a ranking, all that is retrieved or judged. A TREC run retrieves the
documents that it ranks, any other ranking those of the data. A query of which nothing is judged, or nothing retrieved,
is left out; trec_eval's -c, complete here, counts judged queries without results as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.grammar import repeated
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.columns import TEXT_RULES
from ranktune.solvers.rankings.base import Ranking
from ranktune.solvers.rankings.scores import ByDocument, IdScores, RowScores


@dataclass(frozen=True)
class QuerySource:
    """Queries, what they were read from, and by which options; source is None where they cannot be read again.

    graded says whether their grades matter.
    """

    queries: Queries
    source: object = None
    options: ReadOptions = field(default_factory=lambda: ReadOptions())
    graded: bool = True


def read_for(ranking: Ranking, source: object, options: ReadOptions, *, graded: bool = True) -> Queries:
    """Return the queries of a source with the features that a ranking needs, and grades if these matter."""
    wanted = ranking.wanted
    read = partial(catalogue.read, solver=wanted.solver)
    if wanted.names is not None and (catalogue.is_table(source) or not wanted.is_numbered):
        return read(source, feature_names=wanted.names, encoding=wanted.encoding, graded=graded, **options)
    count = wanted.count if wanted.names is None else len(wanted.names)
    exactly = count if wanted.names is None and not wanted.more else None
    queries = read(source, n_features=exactly, graded=graded, **options)
    if count is not None:
        catalogue.warn_of_other_features(queries, source, count)
    return queries


def scores_on(ranking: Ranking, part: QuerySource) -> Floats:
    """Return the score of each document of a part, (n_documents,), in the order of its queries.

    Where the queries lack columns of the table that they were read from, such as a column that is no feature, or the
    ranking takes the text that they were read from in another way, it is read again. Raises DataError where the ranking
    cannot score them.
    """
    wanted, queries = ranking.wanted, part.queries
    if catalogue.is_table(part.source):
        if wanted.names is None or wanted.is_in(queries):
            return ranking.scores(queries)
        options = {name: value for name, value in part.options.items() if name not in ("features", "drop")}
        encoding = wanted.encoding or queries.encoding  # of which at least the columns of ids and grades are known
        more: ReadOptions = cast(ReadOptions, options)
        reread = catalogue.read(part.source, feature_names=wanted.names, encoding=encoding, graded=part.graded, **more)
    elif wanted.solver in TEXT_RULES and catalogue.is_text(part.source):
        reread = read_for(ranking, part.source, part.options, graded=part.graded)
    else:
        return ranking.scores(queries)
    if reread.query_ids.tolist() != queries.query_ids.tolist() or reread.n_documents != queries.n_documents:
        raise DataError(f"{ranking.name}: the data have other rows when they are read again. Do not change them.")
    return ranking.scores(reread)


def scores_of_parts(ranking: Ranking, parts: Sequence[QuerySource | None]) -> list[Floats | None]:
    """Return the scores on the parts train, vali and test of a split, None for a part without scores.

    Models and columns score every part. Scores by row must be as many as the rows of test (of train, without test), or
    as those of all parts, in the order train, vali, test. Scores by id must hold all of the part that is compared,
    test or else train, if they hold any query of it; they cover another part if they hold all of it. Raises DataError
    where no part is covered.
    """
    if isinstance(ranking, RowScores):
        return _by_row(ranking, parts)
    if not isinstance(ranking, IdScores):
        return [None if part is None else scores_on(ranking, part) for part in parts]
    covered = [part is not None and ranking.covers(part.queries) for part in parts]
    present = [part.queries for part in parts if part is not None]
    if not any(covered):
        first = next(iter(ranking.by_query))
        raise DataError(
            f"{ranking.name} has scores of query {first} and others, and of none of the {present[0].n_queries} queries "
            f"of the data, such as {present[0].query_ids[0]}. Query ids must be the same text in both."
        )
    ranking.warn_of_unknown(present)
    compared = _compared(parts)
    scores: list[Floats | None] = []
    for number, (part, is_in) in enumerate(zip(parts, covered, strict=True)):
        scores.append(None if part is None or not is_in else _by_id(ranking, part.queries, strict=number == compared))
    return scores


def _compared(parts: Sequence[QuerySource | None]) -> int:
    """Return the number of the part on which models are compared: test, or train, of which test is set aside."""
    return 0 if parts[-1] is None else len(parts) - 1


def _by_id(ranking: IdScores, queries: Queries, *, strict: bool) -> Floats | None:
    try:
        return ranking.scores(queries)
    except DataError:  # files may count their queries alike, so that scores of test seem to hold some of train
        if strict:
            raise
        return None


def _by_row(ranking: RowScores, parts: Sequence[QuerySource | None]) -> list[Floats | None]:
    sizes = [0 if part is None else part.queries.n_documents for part in parts]
    n = len(ranking.values)
    compared = _compared(parts)
    if n == sizes[compared]:
        part = parts[compared]
        scores = None if part is None else ranking.scores(part.queries)
        return [scores if number == compared else None for number in range(len(parts))]
    if n != sum(sizes):
        rows = f"the {'test data have' if compared else 'data have'} {sizes[compared]} rows"
        every = "" if sum(sizes) == sizes[compared] else f", and all data together {sum(sizes)} (train, vali, test)"
        raise DataError(
            f"{ranking.name} holds {n} scores: {rows}{every}. Give one a row, in the order of the rows, or scores with "
            "query and document ids."
        )
    ends = [sum(sizes[: number + 1]) for number in range(len(parts))]
    return [
        None if part is None else ranking.part(end - size, end).scores(part.queries)
        for part, end, size in zip(parts, ends, sizes, strict=True)
    ]


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
        judgments = read_judgments(qrels, options)
        judged, words = judgments.by_query, judgments.words
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
