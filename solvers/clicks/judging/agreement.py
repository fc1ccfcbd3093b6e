"""How well the judgments of click models agree with those of people, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.clicks.counterfactual import ClickEstimate, ratio
from ranktune.solvers.clicks.judgments import Judgments
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.judgments import GradeTable as Given
from ranktune.solvers.metrics.metrics import chosen_metric

METRIC = "ndcg@10"


def mean_of(values: Floats) -> ClickEstimate:
    """Return the mean of the values of queries that are known, (n_queries,), with its 95 % interval."""
    known = values[~np.isnan(values)]
    if not len(known):
        return ClickEstimate(np.nan, np.nan, np.nan)
    return ratio(known, np.ones(len(known)), np.arange(len(known)))


@dataclass(frozen=True)
class ClickAgreement:
    """How judgments of models order what people judged; the same pairs for all models.

    Attributes
    ----------
    ndcg, kendall : dict of str to Estimate
        Model -> NDCG@10 of its order by the grades of people, and Kendall's tau-b of the two.
    pairs, queries : int
        Pairs of query and document that all models and people judge, and their queries with different grades.
    """

    ndcg: Mapping[str, ClickEstimate]
    kendall: Mapping[str, ClickEstimate]
    pairs: int
    queries: int


def agreement(models: Mapping[str, Judgments], given: Given) -> ClickAgreement:
    """Return the agreement of judgments of the same log. Raises DataError where no query has two different grades."""
    from scipy.stats import kendalltau

    first = next(iter(models.values()))
    relevance = np.array([each.relevance for each in models.values()])  # (n_models, n_pairs)
    grades = np.array([given.grade(*pair) for pair in zip(first.query, first.document, strict=True)])
    both = np.flatnonzero(~np.isnan(grades) & ~np.isnan(relevance).any(axis=0))
    ids = np.array(first.query, dtype=object)[both]
    different = _different(ids.tolist(), grades[both])
    if not different:
        raise DataError(
            f"{given.path} and the log share {len(both)} pairs of a query and a document with a known judgment, and no "
            "query has two different grades among them. Query and document ids must be the same text in both."
        )
    kept = np.isin(ids, list(different))
    both, ids = both[kept], ids[kept]
    queries = Queries.from_arrays(np.zeros((len(both), 1)), grades[both], qid=ids)
    order = np.arange(len(both)) if queries.rows is None else queries.rows
    metric, ends = chosen_metric(METRIC, queries), queries.starts
    ndcg, kendall = {}, {}
    for name, values in zip(models, relevance[:, both[order]], strict=True):
        ndcg[name] = mean_of(metric.per_query(values, queries))
        parts = zip(np.split(values, ends[1:-1]), np.split(queries.grades, ends[1:-1]), strict=True)
        kendall[name] = mean_of(np.array([kendalltau(own, theirs).statistic for own, theirs in parts]))
    return ClickAgreement(ndcg, kendall, len(both), queries.n_queries)


def _different(queries: Sequence[str], grades: Floats) -> set[str]:
    """Return the queries with two different grades."""
    lowest: dict[str, float] = {}
    return {query for query, grade in zip(queries, grades, strict=True) if lowest.setdefault(query, grade) != grade}
