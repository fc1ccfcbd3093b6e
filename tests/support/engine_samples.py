"""Small data whose answer is known, and what tests of whole studies ask of models and rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.selection.rows import LeaderboardRow

SOLVERS = ("RankSVM", "RidgeRanker", "BestFeature")


def graded(count: int, seed: int, noise: float = 0.3, weights: Sequence[float] = (1.0, -0.7, 0.5, 0.0, 0.0)) -> Queries:
    """Queries whose grades come from a weighted sum of three of five features."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count * 12, 5))
    utility = X @ weights + noise * generator.normal(size=len(X))
    y = np.searchsorted(np.quantile(utility, [0.6, 0.85]), utility)
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(count), 12))


def weights(model: Model) -> Floats:
    assert isinstance(model, LinearModel)
    return model.weights


def on_test(row: LeaderboardRow) -> float:
    assert row.test is not None
    return row.test.mean


def tuned(home: Path, data: object = None, **more: Any) -> StudyResult:
    """Run a small study "s", of known data by default, in this process."""
    given: dict[str, Any] = {"solvers": SOLVERS, "trials": 3, "sampler": "random", "jobs": 1, "name": "s"}
    return ranktune.tune(graded(40, 0) if data is None else data, home=home, **given | more)
