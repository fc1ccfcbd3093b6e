"""Data and parameters that the tests of DominationRank share."""

from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.domination import DominationRank
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet, Penalty

PENALTIES: list[dict[str, Any]] = [
    {"penalty": "l1", "l1": 3.0},
    {"penalty": "l2", "l2": 1.0},
    {"penalty": "elastic_net", "l1": 2.0, "l2": 0.5},
]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"grades": "two", "relevant_from": 2},
    {"margin": "grade", "margin_scale": 0.5},
    {"margin": (0.0, 0.1, 1.0, 1.5), "average": "none"},
]


def noisy(seed: int = 0, n_queries: int = 25, length: int = 16, n_features: int = 8, n_grades: int = 4) -> Queries:
    """Grades that follow a linear score of three features, and noise."""
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(n_queries * length, n_features)), 2)
    X[np.abs(X) < 0.5] = 0.0
    score = X[:, :3] @ [2.0, -1.0, 0.5] + generator.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, np.arange(1, n_grades) / n_grades)).astype(float)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(n_queries), length))


def as_csr(queries: Queries) -> Queries:
    return queries.with_features(sparse.csr_array(queries.features))


def loss_of(ranker: DominationRank) -> DominationLoss:
    return DominationLoss(ranker.grades, ranker.margin, ranker.margin_scale, ranker.relevant_from, ranker.average)


def penalty_of(ranker: DominationRank) -> Penalty:
    if ranker.penalty == "elastic_net":
        return ElasticNet(ranker.l1, ranker.l2)
    return L1(ranker.l1) if ranker.penalty == "l1" else L2(ranker.l2)
