"""Solvers and metrics as users write them: what tests register, and modules that other processes import."""

import json
import time
from pathlib import Path
from typing import Any, Self

import numpy as np

from ranktune.solvers import Float, Int
from ranktune.solvers.core.arrays import Floats


class PowerRidge:
    """Least squares on powers of the features, with a penalty."""

    space = (Float("alpha", 1e-3, 1e3, log=True), Int("power", 1, 3))

    def __init__(self, alpha: float = 1.0, power: int = 1) -> None:
        self.alpha, self.power = alpha, power

    def _powers(self, X: Any) -> Floats:
        X = np.asarray(X, dtype=np.float64)
        powers: Floats = np.sign(X) * np.abs(X) ** self.power
        return powers

    def fit(self, X: Any, y: Floats) -> Self:
        Z = self._powers(X)
        self.weights = np.linalg.solve(Z.T @ Z + self.alpha * np.eye(Z.shape[1]), Z.T @ y)
        return self

    def predict(self, X: Any) -> Floats:
        scores: Floats = self._powers(X) @ self.weights
        return scores

    def save(self, path: Path) -> None:
        Path(path).write_text(json.dumps([self.alpha, self.power, self.weights.tolist()]))

    @classmethod
    def load(cls, path: Path) -> Self:
        alpha, power, weights = json.loads(Path(path).read_text())
        result = cls(alpha, power)
        result.weights = np.array(weights)
        return result


class MeanOfQuery(PowerRidge):
    """The same on features less their mean in the query, so that predict needs to know the queries."""

    def fit(self, X: Any, y: Floats, qid: Any = None) -> Self:
        return super().fit(_centred(X, qid), y)

    def predict(self, X: Any, qid: Any = None) -> Floats:
        return super().predict(_centred(X, qid))


def _centred(X: Any, qid: Any) -> Floats:
    X = np.asarray(X, dtype=np.float64)
    _, query = np.unique(qid, return_inverse=True)
    sums = np.zeros((query.max() + 1, X.shape[1]))
    np.add.at(sums, query, X)
    centred: Floats = X - (sums / np.bincount(query)[:, None])[query]
    return centred


def success(grades: Floats) -> float:
    """Whether the first document is relevant."""
    return float(grades[0] > 0)


def precision(grades: Floats, k: int | None) -> float:
    """The relevant share of the first k documents."""
    return float((grades[:k] > 0).sum() / (k or len(grades)))


class ByFirst(PowerRidge):
    """Ranks by one feature, and learns nothing."""

    column = 0

    def fit(self, X: Any, y: Floats) -> Self:
        self.weights = np.eye(np.shape(X)[1])[self.column]
        return self


class BySecond(ByFirst):
    """The same by the second feature."""

    column = 1


class Slow(PowerRidge):
    """The same, and a fit takes a tenth of a second."""

    def fit(self, X: Any, y: Floats) -> Self:
        time.sleep(0.1)
        return super().fit(X, y)
