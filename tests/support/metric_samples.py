"""Queries with scores, and their values under a metric, for tests of metrics."""

from itertools import pairwise, permutations
from typing import Any

import numpy as np

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import parse_metric


def one_query(grades: Any) -> Judgements:
    grades = np.asarray(grades, dtype=float)
    return Judgements(grades, np.array([0, len(grades)]))


def value(spelling: str, scores: Any, grades: Any) -> float:
    return float(parse_metric(spelling).per_query(np.asarray(scores, dtype=float), one_query(grades))[0])


def orders(scores: list[float]) -> list[tuple[int, ...]]:
    """Every order of the documents that the scores allow, each as likely as the others."""
    return [
        order for order in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]


def trec_format(scores: np.ndarray, queries: Queries) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return grades and scores by query and document id, as trec_eval's relatives take them."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    assert queries.document_ids is not None
    for query, name, grade, score in zip(
        queries.query_of_document, queries.document_ids, queries.grades, scores, strict=True
    ):
        qrels.setdefault(str(query), {})[str(name)] = int(grade)
        run.setdefault(str(query), {})[str(name)] = float(score)
    return qrels, run
