"""Small papers: a few systems on a few random queries."""

from typing import Any

import numpy as np

from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.papers.published import Paper, PublishedMeasure, PublishedSystem, PublishedTable

NDCG = PublishedMeasure("ndcg@3", parse_metric("ndcg@3:letor,short=pad"))
MAP = PublishedMeasure("map", parse_metric("map:letor"))
LATTICE = {"loss": ("hinge", "logistic"), "l1": tuple(10.0**k for k in range(-4, 1)), "fixed": (3,)}
GRID = {"C": (1e-4, 1e-2, 1.0, 100.0)}


def some_queries(count: int, seed: int, noise: float = 0.5, *, length: int = 8, features: int = 5) -> Queries:
    generator = np.random.default_rng(seed)
    qid = np.repeat(np.arange(count), length)
    X = generator.normal(size=(len(qid), features))
    y = np.digitize(X[:, 0] - X[:, 1] + noise * generator.normal(size=len(qid)), [0.0, 1.0])
    return Queries.from_arrays(X, y, qid=qid)


def split(seed: int) -> QuerySplit:
    return QuerySplit(
        f"Fold{seed}", some_queries(20, 10 * seed), some_queries(9, 10 * seed + 1), some_queries(9, 10 * seed + 2)
    )


def height(point: Any) -> float:
    """The value of a point of LATTICE."""
    return float(point["loss"] == "logistic") - abs(float(np.log10(point["l1"])) + 1.0)


def paper(*entries: PublishedSystem, protocol: str = "folds", **options: Any) -> Paper:
    return Paper("tiny", "A tiny paper", (PublishedTable("Table 1", protocol, entries, **options),))


def svm(**options: Any) -> PublishedSystem:
    return PublishedSystem("RankSVM", "RankSVM", (NDCG, MAP), grid=GRID, **options)
