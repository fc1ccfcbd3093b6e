"""Lists with the hard cases in them, and parameters of ElasticRank by which all that it composes is reached."""

from typing import Any

import numpy as np

CONFIGURATIONS: list[dict[str, Any]] = [
    {"optimizer": "fobos", "l1": 1e-3, "l2": 1e-2},
    {"optimizer": "fobos", "schedule": "sqrt", "eta0": 1.0, "l1": 1e-3},
    {"optimizer": "rda", "pair_weight": "ndcg", "l1": 1e-3, "l2": 1e-2, "scaling": "list"},
    {"optimizer": "psgd", "loss": "pairwise_logistic", "l2": 1e-2, "threshold": 0.05, "schedule": "constant"},
    {
        "optimizer": "tgd",
        "loss": "pairwise_squared_hinge",
        "pair_weight": "recall",
        "at": 3,
        "l1": 1e-2,
        "threshold": 0.5,
    },
]


def lists(seed: int = 0, n_lists: int = 90, length: int = 15, noise: float = 0.3) -> Any:
    """X with zeros in it, y in 0..3, qid; lists of one document and of one grade among them."""
    generator = np.random.default_rng(seed)
    X = generator.random((n_lists * length, 8)) * (generator.random((n_lists * length, 8)) < 0.7)
    score = X @ np.linspace(-2, 2, 8) + noise * generator.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(float)
    qid = np.repeat(np.arange(n_lists), length)
    qid[0], y[qid == 5] = -1, 2.0
    return X, y, qid
