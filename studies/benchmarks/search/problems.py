"""Problems for comparing samplers: losses to minimise, synthetic ones and real rankers.

A problem's loss is a deterministic function of a trial. On none of them was a constant of our sampler chosen. A
problem's kind is its class; ranktune.studies.benchmarks.search.suite has more of each class.

func3c      Func-3C of CoCaBO (Ru et al. 2020): two real numbers, categories of 3, 5 and 4; minimum -0.7221
hart6m      Hartmann-6 with four real numbers, one on a log scale, and two categories of 5 shuffled levels; -3.0391
layers ...  functions with conditions, plateaus or many parameters: ranktune.studies.benchmarks.search.programs
zdt1 ...    two objectives: ranktune.studies.benchmarks.search.programs. A run's loss is the area that its front lacks
...-composition  1 - NDCG@10 of Ranker fitted on a fold's training queries, on its other queries. The minimum is
            unknown: the best of all runs replaces it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.data.sources.catalogue import load
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.names import COMPOSED
from ranktune.solvers.registry import SOLVERS, make
from ranktune.studies.benchmarks.search.programs import FRONTS, Tree, layers, levy20, stairs
from ranktune.tuner.samplers.space import UnionSpace

METRIC = parse_metric("ndcg@10")

Params: TypeAlias = Mapping[str, Any]
"""The parameters of a trial by name, of whatever type Optuna suggested."""

KINDS = (
    "numbers", "many-numbers", "integers", "mixed", "categories", "conditional", "plateaus", "constrained", "fronts",
    "noisy", "learners", "rankings", "tables",
)  # fmt: skip
"""Classes of problems. Numbers are few up to five; learners are models of scikit-learn, rankings those of RankTune, and
tables hold the values of boosted rankers."""
NUMBERS, MANY_NUMBERS, INTEGERS, MIXED, CATEGORIES, CONDITIONAL = KINDS[:6]
PLATEAUS, CONSTRAINED, TWO, NOISY, LEARNERS, RANKINGS, TABLES = KINDS[6:]


@dataclass(frozen=True)
class SearchProblem:
    """A loss, its minimum (None where unknown), its space where declared.

    kind: its class, one of KINDS. noise: the standard deviation of what observed values have beside the loss.
    corner: with it the loss is a pair of objectives, and minimum the negative area below the corner of the true front.
    limits: parameters -> numbers of which none may exceed 0; worst: the loss of a run without a feasible trial.
    library: a module that the loss imports and that need not be installed; file: one that it reads, not in the wheel.
    """

    loss: Callable[[Trial], Any]
    minimum: float | None
    space: UnionSpace | None = None
    kind: str = MIXED
    noise: float = 0.0
    corner: tuple[float, float] | None = None
    limits: Callable[[Params], Sequence[float]] | None = None
    worst: float = 0.0
    library: str = ""
    file: Path | None = None


def _rosenbrock(x: float, y: float) -> float:
    return (100 * (y - x * x) ** 2 + (x - 1) ** 2) / 300


def _camel(x: float, y: float) -> float:
    return ((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2) / 10


def _beale(x: float, y: float) -> float:
    return ((1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2) / 50


def func3c(trial: Trial) -> float:
    """Return the sum of three functions, each chosen by a category."""
    x, y = trial.suggest_float("x1", -2, 2), trial.suggest_float("x2", -2, 2)
    rosenbrock, camel, beale = _rosenbrock(x, y), _camel(x, y), _beale(x, y)
    first = {"a": rosenbrock, "b": camel, "c": beale}
    second = first | {"d": beale, "e": (camel + beale) / 2}
    third = {"a": 5 * camel, "b": 2 * rosenbrock, "c": 3 * beale, "d": 2 * beale}
    chosen = [str(trial.suggest_categorical(f"h{k}", "abcde"[:n])) for k, n in ((1, 3), (2, 5), (3, 4))]
    return first[chosen[0]] + second[chosen[1]] + third[chosen[2]]


_HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN_C = np.array([1, 1.2, 3, 3.2])
_HARTMANN_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def hartmann6(x: Floats) -> float:
    """Return the Hartmann-6 function of x, (6,) in [0, 1]."""
    return -float(_HARTMANN_C @ np.exp(-(_HARTMANN_A * (x - _HARTMANN_P) ** 2).sum(axis=1)))


def hart6m(trial: Trial) -> float:
    """Return Hartmann-6 with its second coordinate on a log scale and its last two as categories."""
    x = [trial.suggest_float("x0", 0, 1), 1 + np.log10(trial.suggest_float("x1", 1e-4, 1, log=True)) / 4]
    x += [trial.suggest_float("x2", 0, 1), trial.suggest_float("x3", 0, 1)]
    x.append({"p": 0.15, "q": 0.9, "r": 0.4, "s": 0.65, "t": 0.0}[str(trial.suggest_categorical("c1", "pqrst"))])
    x.append({"p": 0.66, "q": 0.1, "r": 0.35, "s": 1.0, "t": 0.8}[str(trial.suggest_categorical("c2", "pqrst"))])
    return hartmann6(np.array(x))


@dataclass(frozen=True)
class _Ranking:
    """Rankers of one solver, fitted to at most so many training queries of the first fold and scored on the others."""

    source: str
    queries: int = 10_000

    @property
    def space(self) -> UnionSpace:
        return UnionSpace({COMPOSED: SOLVERS[COMPOSED].space})

    def __call__(self, trial: Trial) -> float:
        solver, parameters = self.space.split(self.space.suggest(trial))
        train, rest = _queries(self.source, self.queries)
        scores = make(solver, parameters, seed=0).fit(train).predict(rest)
        return 1.0 - float(np.nanmean(METRIC.per_query(scores, rest)))


@lru_cache(maxsize=1)
def _queries(source: str, at_most: int) -> tuple[Queries, Queries]:
    """Return training queries, and those of the validation and test parts together."""
    split = load(source)[0]
    rest = concatenate([part for part in (split.vali, split.test) if part is not None])
    return split.train.select(np.arange(min(at_most, split.train.n_queries))), rest


PROBLEMS = {
    "func3c": SearchProblem(func3c, -0.7221),
    "hart6m": SearchProblem(hart6m, -3.0391),
    "layers": SearchProblem(layers, 0.0, kind=CONDITIONAL),
    "stairs": SearchProblem(stairs, 0.0, kind=PLATEAUS),
    "levy20": SearchProblem(levy20, 0.0, kind=MANY_NUMBERS),
    "tree": SearchProblem(Tree("breast_cancer"), None, kind=LEARNERS),
    "tree-errors": SearchProblem(Tree("digits", errors=True), None, kind=PLATEAUS),
    **{name: SearchProblem(values, -area, corner=corner, kind=TWO) for name, (values, corner, area) in FRONTS.items()},
}


def known_problems(folder: Path | None = None) -> dict[str, SearchProblem]:
    """Return the problems by name, with those of the data sets in folder."""
    losses = {"api-search-composition": _Ranking("api-search", 150)}
    for name in ("MQ2008", "OHSUMED"):
        if folder is not None and (folder / name).is_dir():
            losses[f"{name.lower()}-composition"] = _Ranking(str(folder / name))
    return PROBLEMS | {name: SearchProblem(loss, None, loss.space, kind=RANKINGS) for name, loss in losses.items()}
