"""What is added to the portfolios of the solvers, `portfolio.json`, which a study tries first.

A study blends its models, so that a configuration is worth what it adds to the blend of all others. Candidates are the
defaults of the solvers with one choice changed. On each task the first configurations of all solvers and the candidates
are fitted, and the blend with a candidate is compared with that of the first configurations alone on test queries. A
solver gets the candidate that adds most on the tasks to learn from, if it also adds on those that confirm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.distributions import CategoricalDistribution

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.laboratory.configurations import Configuration, configurations, name_of
from ranktune.studies.laboratory.rows import METRIC, best_of, task_of
from ranktune.tuner.policy.blends import Blends, scale
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.first import alike, grows
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.splits.plans import query_folds
from ranktune.tuner.study.declaration import Study

LEAST = 0.0005
"""What a candidate must add to the blend, and more than a standard error, on both halves of the tasks. Set by hand."""
LIMIT = 6.0
"""Processor seconds after which a fit ends."""


def changed_choices(solvers: Sequence[str]) -> list[Configuration]:
    """Return the defaults of each solver with each choice changed, but for those that a study tries first anyway."""
    space, first = Study(solvers=list(solvers)).union_space(), configurations(solvers, 0)
    result = []
    for defaults in space.defaults():
        for name in defaults:
            known = space.distributions[name]
            choices = known.choices if isinstance(known, CategoricalDistribution) and name != SOLVER else ()
            each = (space.configuration(str(defaults[SOLVER]), {name.partition(".")[2]: choice}) for choice in choices)
            result += [params for params in each if params and not any(alike(params, other) for other in first)]
    return result


def added_on(split: Split, solvers: Sequence[str]) -> Json:
    """Return what each candidate adds to the blend on the test queries of a task, and the seconds of its fit."""
    vali, test = split.vali, split.test
    assert vali is not None
    assert test is not None
    first, fitted = configurations(solvers, 0), list[tuple[Configuration, Floats, Floats, float]]()
    for params in (*first, *changed_choices(solvers)):
        try:
            points, scores = best_of(task_of(name_of(params)), split.train, vali, test, LIMIT)
        except (RankTuneError, ValueError, ArithmeticError):
            continue
        if (spread := scale(scores[0], vali)) > 0.0:
            fitted.append((params, scores[0] / spread, scores[1] / spread, points[-1].seconds))
    known, scaled, tests, seconds = zip(*fitted, strict=True)
    metric, begun = parse_metric(METRIC), [place for place, params in enumerate(known) if params in first]
    alone = {place: metric.per_query(scaled[place], vali) for place in begun}
    groups = [(str(grows(str(params[SOLVER]))), str(params[SOLVER])) for params in known]
    blends = Blends(np.stack(scaled), groups, vali, metric, query_folds(vali, POLICY.blend.folds, 0), first=alone)

    def reached(models: Sequence[int]) -> float:
        return metric.mean(blends.of(models).shares @ np.stack(tests), test)

    gains = {
        shown(params): (reached([*begun, place]) - reached(begun), seconds[place])
        for place, params in enumerate(known)
        if place not in begun
    }
    return {"task": split.name, "gains": gains}


@dataclass(frozen=True)
class Addition:
    """A candidate: what it adds to the blend, (n_tasks,), on tasks to learn from and that confirm, and its seconds."""

    name: str
    learn: Floats
    confirm: Floats
    seconds: float

    @property
    def helps(self) -> bool:
        """Whether it adds to the blend."""
        return all(gains.mean() > max(LEAST, error_of(gains)) for gains in (self.learn, self.confirm))


def error_of(values: Floats) -> float:
    """Return the standard error of a mean."""
    return float(values.std() / len(values) ** 0.5)


def additions(
    known: Mapping[str, Mapping[str, tuple[float, float]]], learn: Sequence[str], confirm: Sequence[str]
) -> list[Addition]:
    """Return the candidates that were fitted on all tasks, those first that add most on the tasks to learn from.

    known holds the gain and the seconds of each candidate by task.
    """
    names = set.intersection(*map(set, known.values()))
    gains = {name: [np.array([known[task][name] for task in half]).T for half in (learn, confirm)] for name in names}
    every = [Addition(name, own[0], other[0], float(own[1].mean())) for name, (own, other) in gains.items()]
    return sorted(every, key=lambda each: -each.learn.mean())


def taken(ordered: Sequence[Addition]) -> list[Addition]:
    """Return for each solver the candidate that adds most, of those that help."""
    helping = [each for each in ordered if each.helps]
    best = {each.name.split()[0]: each for each in reversed(helping)}
    return [each for each in helping if each in best.values()]


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
