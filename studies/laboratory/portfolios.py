"""Which configurations a study tries first: those that add most to the blend that it delivers, for their time.

Candidates are what a study tries first, the defaults of the solvers with one choice changed, and these with other sizes
of trees. Each is fitted to each task once, and its scores of the validation and the test queries are kept. Those of
boosting are taken whose blend is best, less a price of their seconds. The others are of linear models, which take next
to no time, so that all stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from optuna.distributions import CategoricalDistribution

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.core.files.archives import read_archive
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.laboratory.rows import METRIC, Configuration, best_of, configurations, name_of, task_of
from ranktune.tuner.policy.blends import Blends, scale
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.first import alike, grows
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.splits.plans import query_folds
from ranktune.tuner.study.declaration import Study

PRICE = 0.0006
"""What a trial and a refit of mean length must add to the blend. Set by hand."""
LIMIT = 10.0
"""Processor seconds after which a fit ends."""
FORMS: dict[str, tuple[dict[str, Value], ...]] = {
    "LambdaMART": ({"leaves": 8}, {"leaves": 31}, {"leaves": 64, "min_documents": 100}),
    "GBDTRanker": ({"leaves": 8}, {"leaves": 31}),
    "SymmetricGBDT": ({"depth": 4}, {"depth": 6}, {"depth": 6, "learning_rate": 0.2}, {"depth": 8}),
}
"""The sizes of trees that candidates have."""


def candidates(solvers: Sequence[str]) -> list[Configuration]:
    """Return what a study of these solvers tries first, and the defaults of each with other choices and sizes."""
    space, result = Study(solvers=list(solvers)).union_space(), configurations(solvers, 0)
    for defaults in space.defaults():
        solver = str(defaults[SOLVER])
        choices: list[dict[str, Value]] = [{}]
        for name in defaults:
            domain = space.distributions[name]
            values = domain.choices if isinstance(domain, CategoricalDistribution) and name != SOLVER else ()
            choices += [{name.partition(".")[2]: value} for value in values if value != defaults[name]]
        for choice in choices:
            every = (space.configuration(solver, {**choice, **form}) for form in FORMS.get(solver, ({},)))
            result += [params for params in every if params and not any(alike(params, other) for other in result)]
    return result


@dataclass(frozen=True, eq=False)
class ScoredTask:
    """The configurations that were fitted to a task.

    Attributes
    ----------
    configurations : list of Configuration
    seconds : array of shape (m,)
        What a trial and a refit of each take, relative to the mean of those of boosting.
    vali, test : array of shape (m, n_documents)
        Their scores, divided by the spread within validation queries.
    """

    queries: Queries
    test_queries: Queries
    configurations: Sequence[Configuration]
    seconds: Floats
    vali: Floats
    test: Floats

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each configuration by its name."""
        return {name_of(params): place for place, params in enumerate(self.configurations)}

    def reached(self, names: Sequence[str]) -> float:
        """Return what the blend of these configurations scores on test queries."""
        places, metric = [self.places[name] for name in names if name in self.places], parse_metric(METRIC)
        solvers = [str(self.configurations[place][SOLVER]) for place in places]
        folds = query_folds(self.queries, POLICY.scoring.folds, 0)
        alone = {k: metric.per_query(self.vali[place], self.queries) for k, place in enumerate(places)}
        groups = [(str(grows(solver)), solver) for solver in solvers]
        blends = Blends(self.vali[places], groups, self.queries, metric, folds, first=alone)
        return metric.mean(blends.of(range(len(places))).shares @ self.test[places], self.test_queries)


def scored_on(split: QuerySplit, solvers: Sequence[str], path: Path) -> ScoredTask:
    """Fit the candidates to a task, or read what an earlier run wrote to path, and return their scores."""
    vali, test, every = split.vali, split.test, {name_of(params): params for params in candidates(solvers)}
    assert vali is not None
    assert test is not None
    if not path.exists():
        fitted = []
        for name in every:
            try:
                points, scores = best_of(task_of(name), split.train, vali, test, LIMIT)
            except (RankTuneError, ValueError, ArithmeticError):
                continue
            if (spread := scale(scores[0], vali)) > 0.0:
                best = max(points, key=lambda point: point.vali)
                took = points[-1].seconds + POLICY.time.refit * best.seconds
                fitted.append((name, took, *((array / spread).astype(np.float16) for array in scores)))
        names, seconds, of_vali, of_test = zip(*fitted, strict=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, names=names, took=seconds, vali=of_vali, test=of_test)
    stored = read_archive(path)
    listed = [every[str(name)] for name in stored["names"] if str(name) in every]
    rows = [place for place, name in enumerate(stored["names"]) if str(name) in every]
    usual = np.mean(
        [stored["took"][row] for row, params in zip(rows, listed, strict=True) if grows(str(params[SOLVER]))]
    )
    scores_of = (stored[part][rows].astype(np.float64) for part in ("vali", "test"))
    return ScoredTask(vali, test, listed, stored["took"][rows] / usual, *scores_of)


@dataclass(frozen=True)
class PortfolioMember:
    """A configuration that is taken: what the blend loses by task without it, and the mean of its relative seconds."""

    name: str
    learn: Floats
    confirm: Floats
    seconds: float


def error_of(values: Floats) -> float:
    """Return the standard error of a mean."""
    return float(values.std() / len(values) ** 0.5)


def portfolio_of(learn: Sequence[ScoredTask], confirm: Sequence[ScoredTask]) -> list[PortfolioMember]:
    """Return the configurations of boosting that are worth their time on the tasks to learn from.

    One is added, left out or exchanged for another while the mean of the blends, less the price of the time, rises.
    """
    names = [name for name in learn[0].places if all(name in task.places for task in learn)]
    solver_of = {name: str(learn[0].configurations[learn[0].places[name]][SOLVER]) for name in names}
    others = [name for name in names if not grows(solver_of[name])]
    boosted = [name for name in names if grows(solver_of[name])]
    seconds = {name: float(np.mean([task.seconds[task.places[name]] for task in learn])) for name in boosted}

    @cache
    def reached(parts: frozenset[str]) -> Floats:
        return np.array([task.reached([*others, *sorted(parts)]) for task in learn])

    def worth(parts: frozenset[str]) -> float:
        if max(Counter(solver_of[name] for name in parts).values(), default=0) > POLICY.choice.per_solver:
            return -np.inf
        return float(reached(parts).mean()) - PRICE * sum(seconds[name] for name in parts)

    chosen, best = frozenset[str](), -np.inf
    while True:
        fewer = [chosen, *(chosen - {name} for name in chosen)]
        moves = [*fewer, *(parts | {name} for parts in fewer for name in boosted)]
        move = max((parts for parts in moves if parts), key=worth)
        if worth(move) <= best:
            break
        chosen, best = move, worth(move)
    whole = [reached(chosen), np.array([task.reached([*others, *chosen]) for task in confirm])]
    result = []
    for name in chosen:
        without = [reached(chosen - {name}), np.array([task.reached([*others, *chosen - {name}]) for task in confirm])]
        result.append(PortfolioMember(name, whole[0] - without[0], whole[1] - without[1], seconds[name]))
    return sorted(result, key=lambda member: -member.learn.mean() / member.seconds)


def shown(params: Configuration) -> str:
    """Return a solver, and what a configuration has that is not its default."""
    values = {name: f"{v:.3g}" if isinstance(v, float) else v for name, v in changed(params).items()}
    return " ".join([str(params[SOLVER]), *(f"{name}={value}" for name, value in values.items())])


def changed(params: Configuration) -> dict[str, Value]:
    """Return the parameters of a configuration that are not its solver's defaults, by their names in the solver."""
    solver = str(params[SOLVER])
    (defaults,) = Study(solvers=[solver]).union_space().defaults()
    values = {name: value for name, value in params.items() if defaults.get(name) != value}
    return {name.removeprefix(f"{solver}.").partition("[")[0]: value for name, value in values.items()}
