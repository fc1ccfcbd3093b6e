"""Problems with dependent parameters, with plateaus, with many parameters, and with two objectives.

layers      whole numbers decide how many parameters there are: `for i in range(n)`
stairs      five numbers, of which only the stair counts on which each lies: most neighbours are equal
tree ...    scikit-learn's decision tree on one of its data sets: many configurations give the same tree
levy20      Levy's function of 20 numbers

Problems with two objectives to minimise are measured by the hypervolume of the trials:

zdt1, zdt2, zdt3    Zitzler, Deb & Thiele 2000, six numbers: a convex, a concave and a disconnected front
dtlz2               Deb et al. 2002, six numbers: a quarter of a circle
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.core.arrays import Floats, Ints

DIMENSIONS = 6
POINTS = 10_001
"""Points of a true front by which its hypervolume is computed."""
Objectives: TypeAlias = Callable[[Trial], tuple[float, float]]
ZDT_CORNER = (1.1, 3.0)


def layers(trial: Trial) -> float:
    """Return the loss of a network with some layers, each with a width and a rate; 0 with three of the right ones."""
    n = trial.suggest_int("layers", 1, 5)
    loss = 0.3 * abs(n - 3) + (np.log10(trial.suggest_float("rate", 1e-4, 1e-1, log=True)) + 2.5) ** 2 / 4
    for j in range(n):
        width = np.log2(trial.suggest_int(f"width{j}", 4, 256, log=True))
        drop = trial.suggest_float(f"drop{j}", 0.0, 0.9)
        loss += ((width - (6.0 - j)) / 4) ** 2 / n + (drop - 0.1 * j) ** 2 / n
    return float(loss)


def stairs(trial: Trial) -> float:
    """Return the mean squared height of five stairs, each of six steps; 0 on the lowest step of all."""
    heights = []
    for j, lowest in enumerate((1, 4, 2, 5, 3)):
        step = min(int(6 * trial.suggest_float(f"x{j}", 0.0, 1.0)), 5)
        heights.append(abs(step - lowest) + (step % 2 != lowest % 2))
    return float(np.mean(np.square(heights)))


def levy20(trial: Trial) -> float:
    """Return Levy's function of 20 numbers, divided by 20; 0 at best."""
    x = np.array([trial.suggest_float(f"x{j}", -5.0, 5.0) for j in range(20)])
    w = 1.0 + (x - 1.0) / 4.0
    middle = ((w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w[:-1] + 1.0) ** 2)).sum()
    last = (w[-1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + middle + last) / 20.0


@dataclass(frozen=True)
class Tree:
    """The loss of scikit-learn's decision tree on the even examples of one of its data sets, fitted on the odd ones.

    It is the share of errors, of which there are few different values, or the logarithmic loss.
    """

    data: str
    errors: bool = False

    def __call__(self, trial: Trial) -> float:
        """Return the share of errors, or the mean loss of the probabilities of the right classes, 0.001 at least."""
        from sklearn.tree import DecisionTreeClassifier  # scikit-learn takes a second to import

        X, y = examples(self.data)
        tree = DecisionTreeClassifier(
            criterion=trial.suggest_categorical("criterion", ["gini", "entropy"]),
            max_depth=trial.suggest_int("max_depth", 1, 30),
            min_samples_split=trial.suggest_int("min_samples_split", 2, 60),
            min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 60),
            max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 2, 300, log=True),
            max_features=trial.suggest_float("max_features", 0.05, 1.0),
            ccp_alpha=trial.suggest_float("ccp_alpha", 1e-6, 1e-1, log=True),
            random_state=0,
        ).fit(X[1::2], y[1::2])
        if self.errors:
            return float(np.mean(tree.predict(X[::2]) != y[::2]))
        likely = tree.predict_proba(X[::2])[np.arange(len(y[::2])), y[::2]]
        return float(-np.log(np.maximum(likely, 1e-3)).mean())


@lru_cache
def examples(data: str) -> tuple[Floats, Ints]:
    """Return the features and classes of one of scikit-learn's data sets, in random order."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{data}")()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    return bunch.data[order], bunch.target[order]


def hypervolume(values: Sequence[Sequence[float]], corner: Sequence[float]) -> float:
    """Return the area that pairs of values dominate below a corner."""
    total, height = 0.0, corner[1]
    for first, second in sorted((a, b) for a, b in values if a < corner[0]):
        if second < height:
            total += (corner[0] - first) * (height - second)
            height = second
    return total


def _numbers(trial: Trial) -> list[float]:
    return [trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(DIMENSIONS)]


def _zdt(shape: Callable[[float, float], float]) -> Objectives:
    """Return a problem of ZDT: x0, and g times a function of x0 and g, where g = 1 is best."""

    def values(trial: Trial) -> tuple[float, float]:
        x = _numbers(trial)
        g = 1.0 + 9.0 * float(np.mean(x[1:]))
        return x[0], g * shape(x[0], g)

    return values


def _convex(first: float, g: float) -> float:
    return 1.0 - float(np.sqrt(first / g))


def _concave(first: float, g: float) -> float:
    return 1.0 - (first / g) ** 2


def _disconnected(first: float, g: float) -> float:
    return 1.0 - float(np.sqrt(first / g)) - first / g * float(np.sin(10.0 * np.pi * first))


def dtlz2(trial: Trial) -> tuple[float, float]:
    """Return two objectives whose best values lie on the unit circle."""
    x = _numbers(trial)
    radius = 1.0 + sum((value - 0.5) ** 2 for value in x[1:])
    angle = 0.5 * np.pi * x[0]
    return radius * float(np.cos(angle)), radius * float(np.sin(angle))


def _area(shape: Callable[[float, float], float]) -> float:
    firsts = np.linspace(0.0, 1.0, POINTS).tolist()
    return hypervolume([(first, shape(first, 1.0)) for first in firsts], ZDT_CORNER)


SHAPES = {"zdt1": _convex, "zdt2": _concave, "zdt3": _disconnected}
FRONTS: dict[str, tuple[Objectives, tuple[float, float], float]] = {
    **{name: (_zdt(shape), ZDT_CORNER, _area(shape)) for name, shape in SHAPES.items()},
    "dtlz2": (dtlz2, (2.0, 2.0), 4.0 - np.pi / 4.0),
}
"""The objectives of each problem, the corner below which areas count, and the area of the true front."""
