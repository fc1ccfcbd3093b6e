"""The portfolios of the solvers, as the file that a study reads: what other work has shown, and what the table adds.

A solver gets one more configuration, that which raises its best by validation most, on test queries of the tasks to
learn from. It is added where this also helps on tasks whose form of true scores was left out. The gains are largest for
the seconds that they take in linear models, so that additions are taken by their gain a second, until the portfolios
take `LONGER` of their time more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.boosting.lightgbm.ranker import STOCK
from ranktune.solvers.boosting.objectives import SMOOTHED
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import Value
from ranktune.studies.benchmarks.tasks import TRUTHS
from ranktune.studies.laboratory.analysis import ByTask, means, picked
from ranktune.studies.laboratory.configurations import Configuration, name_of
from ranktune.tuner.samplers.first import alike
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.study.declaration import Study

BEGIN: Mapping[str, Sequence[Mapping[str, Value]]] = {
    "GBDTRanker": ({}, {"start": "linear"}, STOCK),
    "LambdaMART": ({"loss": SMOOTHED, "leaves": 8}, {}),
}
"""The portfolios before the table; of other solvers the defaults. They are explained on the page on boosting."""
LONGER = 0.2
"""Share of the time of the portfolios before the table that additions may take. Set by hand."""


@dataclass(frozen=True)
class Addition:
    """A configuration that may be added to the portfolio of its solver.

    params           the configuration
    learn, left_out, confirm  what the best by validation then gains on test queries, (n_tasks,): of the tasks to learn
                     from, of the same where the tasks of their form were left out, and of those that confirm
    seconds, before  of a fit, and of those of the portfolio before, means over the tasks
    """

    params: Configuration
    learn: Floats
    left_out: Floats
    confirm: Floats
    seconds: float
    before: float

    @property
    def helps(self) -> bool:
        """Whether the mean gain on forms that were left out is larger than its standard error."""
        return bool(self.left_out.mean() > error_of(self.left_out))


def error_of(values: Floats) -> float:
    """Return the standard error of a mean."""
    return float(values.std() / len(values) ** 0.5)


def portfolio_before(solver: str) -> list[Configuration]:
    """Return the portfolio of a solver before the table."""
    space = Study(solvers=[solver]).union_space()
    known = (space.configuration(solver, values) for values in BEGIN.get(solver, ({},)))
    return [params for params in known if params is not None]


def addition(
    table: ByTask, solver: str, every: Sequence[Configuration], learn: Sequence[str], confirm: Sequence[str]
) -> Addition | None:
    """Return what would be added to the portfolio of a solver, None where fewer than two forms have all of its rows."""
    known = portfolio_before(solver)
    before = [name_of(params) for params in known]
    others = [each for each in every if each[SOLVER] == solver and not any(alike(each, own) for own in known)]
    params = {name_of(each): each for each in others}
    names = [*before, *params]
    learn, confirm = ([task for task in tasks if all(n in table[task] for n in names)] for tasks in (learn, confirm))
    forms = np.array([int(task.partition("-")[2]) % len(TRUTHS) for task in learn])
    if len(set(forms)) < 2 or not confirm or not params:
        return None
    own, confirming, places = means(table, learn, names), means(table, confirm, names), list(range(len(before)))
    best = _next(*own, places)
    seconds = np.mean([[table[task][n].checkpoints[-1].seconds for n in names] for task in learn], axis=0)
    return Addition(
        params[names[best]],
        _gain(*own, places, best),
        _left_out(*own, places, forms),
        _gain(*confirming, places, best),
        float(seconds[best]),
        float(seconds[places].sum()),
    )


def taken(additions: Iterable[Addition]) -> list[Addition]:
    """Return the additions that help, the highest gain a second first, which take at most `LONGER` of all seconds."""
    every = list(additions)
    left = LONGER * sum(each.before for each in every)
    result = []
    for each in sorted(filter(lambda each: each.helps, every), key=lambda each: -each.left_out.mean() / each.seconds):
        left -= each.seconds
        if left < 0.0:
            break
        result.append(each)
    return result


def written(additions: Iterable[Addition], command: str) -> str:
    """Return the text of the file of portfolios: of each solver the parameters that are not its defaults."""
    portfolios = {solver: list(map(dict, known)) for solver, known in BEGIN.items()}
    for each in additions:
        solver = str(each.params[SOLVER])
        portfolios.setdefault(solver, [{}]).append(changed(each.params))
    return json.dumps({"made by": command, "portfolios": portfolios}, indent=1) + "\n"


def changed(params: Configuration) -> dict[str, Value]:
    """Return the parameters of a configuration that are not its solver's defaults, by their names in the solver."""
    solver = str(params[SOLVER])
    (defaults,) = Study(solvers=[solver]).union_space().defaults()
    values = {name: value for name, value in params.items() if defaults.get(name) != value}
    return {name.removeprefix(f"{solver}.").partition("[")[0]: value for name, value in values.items()}


def shown(params: Configuration) -> str:
    """Return a solver, and what a configuration has that is not its default."""
    values = {name: f"{v:.3g}" if isinstance(v, float) else v for name, v in changed(params).items()}
    return " ".join([str(params[SOLVER]), *(f"{name}={value}" for name, value in values.items())])


def _gain(vali: Floats, test: Floats, places: Sequence[int], added: int) -> Floats:
    return picked(vali, test, [*places, added]) - picked(vali, test, places)


def _next(vali: Floats, test: Floats, places: Sequence[int]) -> int:
    others = [place for place in range(test.shape[1]) if place not in places]
    return max(others, key=lambda place: float(picked(vali, test, [*places, place]).mean()))


def _left_out(vali: Floats, test: Floats, places: Sequence[int], forms: Ints) -> Floats:
    """Return the gains on the tasks of each form, (n_tasks,), of what is chosen on those of all others."""
    result = np.zeros(len(forms))
    for form in np.unique(forms):
        own, others = forms == form, forms != form
        result[own] = _gain(vali[own], test[own], places, _next(vali[others], test[others], places))
    return result
