"""Problems for comparing samplers: losses to minimise, synthetic ones and real rankers, with their noise.

A problem's loss is a deterministic function of a trial; noise is the standard deviation that its noisy variant adds.
Those of TUNING were used to choose the constants of our sampler, those of PROBLEMS were not. A problem's kind is its
class; ranktune.studies.benchmarks.search.suite has more of each class, for comparisons of many samplers.

An evaluation may have a cost in seconds: a synthetic function of the parameters, or the time of fit and predict.

func3c      Func-3C of CoCaBO (Ru et al. 2020): two real numbers, categories of 3, 5 and 4; minimum -0.7221
hart6m      Hartmann-6 with four real numbers, one on a log scale, and two categories of 5 shuffled levels; -3.0391
layers ...  functions with conditions, plateaus or many parameters: ranktune.studies.benchmarks.search.programs
zdt1 ...    two objectives: ranktune.studies.benchmarks.search.fronts. A run's loss is the area that its front lacks
mq2008 ...  1 - NDCG@10 of a ranker fitted on a fold's training queries, on its other queries; the solver is one of the
            parameters, the others depend on it. The minimum is unknown: the best of all runs replaces it
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.data.sources.catalogue import load
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import SOLVERS, make
from ranktune.studies.benchmarks.search.fronts import FRONTS
from ranktune.studies.benchmarks.search.programs import Tree, layers, levy20, stairs, switches, valley10, waves8
from ranktune.tuner.samplers.history import SECONDS
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
class Problem:
    """A loss, its minimum (None where unknown), the noise of its noisy variant, its space where declared.

    cost: parameters -> seconds of an evaluation; without it, the loss may set the user attribute "seconds" itself.
    corner: with it the loss is a pair of objectives, and minimum the negative area below the corner of the true front.
    kind: its class, one of KINDS. is_noisy: values always have the noise, and no sampler knows how large it is.
    limits: parameters -> numbers of which none may exceed 0; worst: the loss of a run without a feasible trial.
    library: a module that the loss imports and that need not be installed; file: one that it reads, not in the wheel.
    """

    loss: Callable[[Trial], Any]
    minimum: float | None
    noise: float
    space: UnionSpace | None = None
    cost: Callable[[Params], float] | None = None
    corner: tuple[float, float] | None = None
    kind: str = MIXED
    is_noisy: bool = False
    limits: Callable[[Params], Sequence[float]] | None = None
    worst: float = 0.0
    library: str = ""
    file: Path | None = None

    def evaluate(self, trial: Trial) -> tuple[Any, float | None]:
        """Return the loss of a trial and its seconds (None where it has no cost), which become a user attribute."""
        loss = self.loss(trial)
        if self.cost is not None:
            trial.set_user_attr(SECONDS, self.cost(trial.params))
        seconds: float | None = trial.user_attrs.get(SECONDS)
        return loss, seconds


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


def branin3c(trial: Trial) -> float:
    """Return Branin's function, shifted and tilted by two categories; its minimum is 0.3979."""
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    shift = {"a": 0.0, "b": 2.5, "c": -2.0}[str(trial.suggest_categorical("shift", "abc"))]
    tilt = {"a": 3.0, "b": 0.0, "c": 1.0, "d": 6.0}[str(trial.suggest_categorical("tilt", "abcd"))]
    x = x + shift
    bowl = (y - 5.1 / (4 * np.pi**2) * x * x + 5 / np.pi * x - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 + tilt * (1 + (y / 15)) + 2 * abs(shift))


def ackley5m(trial: Trial) -> float:
    """Return Ackley's function of three real numbers, one a log scale, a whole number and a category; 0 at best."""
    x = [trial.suggest_float("x0", -2, 3), np.log10(trial.suggest_float("x1", 1e-3, 1e2, log=True)) + 0.3]
    x += [trial.suggest_float("x2", -3, 2) - 0.4, (trial.suggest_int("k", 0, 30) - 19) / 8]
    x.append({"p": -1.0, "q": 0.8, "r": 2.0, "s": 0.0, "t": 1.4}[str(trial.suggest_categorical("c", "pqrst"))])
    values = np.array(x)
    near = -20 * np.exp(-0.2 * np.sqrt(np.mean(values**2)))
    return float(near - np.exp(np.mean(np.cos(2 * np.pi * values))) + 20 + np.e)


def branches(trial: Trial) -> float:
    """Return one of three functions of parameters that the others do not have; 0 at best."""
    kind = trial.suggest_categorical("kind", ["sphere", "valley", "waves"])
    if kind == "sphere":
        return 0.15 + sum((trial.suggest_float(f"s{j}", -1, 1) - 0.2 * j) ** 2 for j in range(3))
    if kind == "valley":
        x, y = trial.suggest_float("v0", -2, 2), trial.suggest_float("v1", -1, 3)
        bonus = {"low": 0.0, "middle": 0.4, "high": 1.0}[
            str(trial.suggest_categorical("v2", ["low", "middle", "high"]))
        ]
        return _rosenbrock(x, y) + bonus
    z = np.array([trial.suggest_float(f"w{j}", 0, 1) for j in range(2)])
    return float(0.3 + ((z - 0.7) ** 2).sum() + 0.1 * np.sin(12 * z).sum())


def _branin_seconds(params: Params) -> float:
    return float(np.exp(0.1 * params["x"])) * {"a": 0.5, "b": 2.0, "c": 1.0, "d": 0.3}[params["tilt"]]


def _ackley_seconds(params: Params) -> float:
    return float(0.2 * (1 + int(params["k"])) / (1.0 + np.log10(params["x1"] / 1e-3)))


def _branch_seconds(params: Params) -> float:
    level = {"low": 2.0, "middle": 1.0, "high": 0.5}
    return {"sphere": 1.0, "valley": 4.0, "waves": 0.3}[params["kind"]] * level[params.get("v2", "middle")]


@dataclass(frozen=True)
class _Ranking:
    """A space of rankers, the queries on which they are fitted, and those on which they are scored."""

    source: str
    fold: int
    solvers: tuple[str, ...]
    queries: int = 10_000  # at most, for fitting
    test: str | None = None  # a separate file

    @property
    def space(self) -> UnionSpace:
        return UnionSpace({name: SOLVERS[name].space for name in self.solvers})

    def __call__(self, trial: Trial) -> float:
        solver, parameters = self.space.split(self.space.suggest(trial))
        train, rest = _queries(self.source, self.fold, self.queries, self.test)
        _compile(self.source, self.fold, self.queries, self.test, solver)
        begun = time.process_time()
        scores = make(solver, parameters, seed=0).fit(train).predict(rest)
        trial.set_user_attr(SECONDS, time.process_time() - begun)
        return 1.0 - float(np.nanmean(METRIC.per_query(scores, rest)))


@lru_cache(maxsize=1)
def _queries(source: str, fold: int, at_most: int, test: str | None) -> tuple[Queries, Queries]:
    """Return training queries, and those of the validation and test parts together."""
    split = load(source, test=test)[fold]
    rest = [part for part in (split.vali, split.test) if part is not None]
    if not rest:
        raise ParameterError(f"{source} has no validation or test queries to compare samplers on.")
    return split.train.select(np.arange(min(at_most, split.train.n_queries))), concatenate(rest)


@lru_cache
def _compile(source: str, fold: int, at_most: int, test: str | None, solver: str) -> None:
    """Fit once, so that no trial's seconds include compilation."""
    train, _ = _queries(source, fold, at_most, test)
    make(solver, {}, seed=0).fit(train.select(np.arange(10)))


def _rankings(folder: Path | None) -> dict[str, tuple[bool, _Ranking]]:
    rankings = {"api-search": (False, _Ranking("api-search", 0, ("ElasticRank", "DominationRank", "RidgeRanker"), 150))}
    for name, solvers in (
        ("MQ2008", ("ElasticRank", "DominationRank", "PairwisePegasos")),
        ("OHSUMED", ("ElasticRank", "PAMIR", "RidgeRanker")),
    ):
        if folder is not None and (folder / name).is_dir():
            rankings[name.lower()] = (False, _Ranking(str(folder / name), 0, solvers))
            others = ("LogisticRanker", "ElasticRank", "RidgeRanker")
            rankings[f"{name.lower()}-5"] = (True, _Ranking(str(folder / name), 4, others))
    example = None if folder is None else folder / "lightgbm_example"
    if example is not None and example.is_dir():  # the example of LightGBM, with group sizes in files beside the rows
        train, test = (str(example / f"rank.{part}.gz") for part in ("train", "test"))
        rankings["lightgbm"] = (False, _Ranking(train, 0, ("ElasticRank", "PAMIR", "RidgeRanker"), test=test))
    return rankings | {f"{k}-composition": (t, replace(r, solvers=("Ranker",))) for k, (t, r) in rankings.items()}


RANKING_NOISE = 0.006
"""Noise of the mean NDCG@10 in noisy variants: the standard error of a difference of two models on 150 queries."""

PROBLEMS = {
    "func3c": Problem(func3c, -0.7221, 0.1),
    "hart6m": Problem(hart6m, -3.0391, 0.15),
    "layers": Problem(layers, 0.0, 0.1, kind=CONDITIONAL),
    "stairs": Problem(stairs, 0.0, 0.5, kind=PLATEAUS),
    "levy20": Problem(levy20, 0.0, 0.2, kind=MANY_NUMBERS),
    "tree": Problem(Tree("breast_cancer"), None, 0.02, kind=LEARNERS),
    "tree-errors": Problem(Tree("digits", errors=True), None, 0.01, kind=PLATEAUS),
    **{name: Problem(values, -area(), 0.0, corner=corner, kind=TWO) for name, (values, corner, area) in FRONTS.items()},
}
TUNING = {
    "branin3c": Problem(branin3c, 0.3979, 4.0, cost=_branin_seconds),
    "ackley5m": Problem(ackley5m, 0.0, 0.3, cost=_ackley_seconds),
    "branches": Problem(branches, 0.0, 0.1, cost=_branch_seconds),
    "switches": Problem(switches, 0.0, 0.05),
    "valley10": Problem(valley10, 0.0, 10.0),
    "waves8": Problem(waves8, 0.0, 2.0),
    "tree-digits": Problem(Tree("digits"), None, 0.02),
    "tree-wine": Problem(Tree("wine", errors=True), None, 0.02),
}


def problems(folder: Path | None = None) -> tuple[dict[str, Problem], dict[str, Problem]]:
    """Return the problems to report on, and those for tuning, by name; with those of the data sets in folder."""
    reported, tuning = dict(PROBLEMS), dict(TUNING)
    for name, (tunes, ranking) in _rankings(folder).items():
        (tuning if tunes else reported)[name] = Problem(ranking, None, RANKING_NOISE, ranking.space, kind=RANKINGS)
    return reported, tuning
