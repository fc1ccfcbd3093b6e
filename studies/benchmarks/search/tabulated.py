"""Boosted rankers whose values are in the table of tasks, so that an evaluation takes no fit.

lambdamart-S, gbdtranker-S    the drawn task S (ranktune.studies.benchmarks.tasks) with a solver. The tasks are those
                              that confirm and of which the table has 30 configurations of each of both solvers or
                              more: one of each form of true scores. They have the solvers in turn

The loss is what the NDCG@10 on validation queries lacks to the highest of the table; 0 at best. Between configurations
of the table it is that of a surrogate, as is usual for tables of random configurations (Eggensperger et al. 2015):
extremely randomised trees, which have the values of the table at its configurations. Validation queries found the
rounds of boosting, which are no parameter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.registry import solver_class
from ranktune.studies.benchmarks.search.problems import TABLES, SearchProblem
from ranktune.studies.benchmarks.task_table import mean_value, unpack
from ranktune.studies.benchmarks.tasks import DRAWN
from ranktune.tuner.gp.encoding import SpaceEncoding
from ranktune.tuner.samplers.history import arranged
from ranktune.tuner.samplers.space import SOLVER, UnionSpace

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor

FILE = Path(str(files("ranktune.docs"))) / "benchmarks" / "results" / "tasks.npz"
"""The table. Only the repository has it."""
SEEDS, BOOSTED = range(36, 48), ("LambdaMART", "GBDTRanker")
TREES = 100
"""Trees of a surrogate."""

_rows = lru_cache(maxsize=1)(unpack)


@dataclass(frozen=True)
class Tabulated:
    """A solver on a task of the table."""

    task: str
    solver: str

    @cached_property
    def space(self) -> UnionSpace:
        """The parameters of the solver, without its rounds."""
        made = solver_class(self.solver)
        return UnionSpace({self.solver: [each for each in made.space if each.name != made.path_parameter]})

    @cached_property
    def _surrogate(self) -> tuple[SpaceEncoding, ExtraTreesRegressor]:
        """The encoding, and trees of what the configurations of the table lack."""
        from sklearn.ensemble import ExtraTreesRegressor  # takes a second to import

        rows = [row for row in _rows(FILE) if row.task == self.task and row.share == 1.0]
        measured = [(json.loads(row.configuration), mean_value(row.vali)) for row in rows]
        params, values = zip(*((each, value) for each, value in measured if each[SOLVER] == self.solver), strict=True)
        encoding, places = arranged(self.space, params)
        trees = ExtraTreesRegressor(n_estimators=TREES, random_state=0)
        return encoding, trees.fit(encoding.embed(places), max(values) - np.array(values))

    def __call__(self, trial: Trial) -> float:
        """Return what the suggested configuration lacks."""
        encoding, trees = self._surrogate
        return float(trees.predict(encoding.embed(arranged(self.space, [self.space.suggest(trial)])[1]))[0])


def tabulated() -> dict[str, SearchProblem]:
    """Return the problems by name. Their file is read at the first evaluation."""
    result = {}
    for seed in SEEDS:
        loss = Tabulated(f"{DRAWN}-{seed}", BOOSTED[seed % len(BOOSTED)])
        result[f"{loss.solver.lower()}-{seed}"] = SearchProblem(loss, 0.0, loss.space, kind=TABLES, file=FILE)
    return result
