"""Boosted rankers whose values are in the table of tasks, so that an evaluation takes no fit.

lambdamart-S, gbdtranker-S    the drawn task S (ranktune.studies.benchmarks.tasks) with a solver. The tasks are those
                              that confirm and of which the table has 30 configurations of each of both solvers or
                              more: one of each form of true scores. They have the solvers in turn

The loss is what the NDCG@10 on validation queries of the nearest configuration of the table lacks to the highest of the
table; 0 at best. Distances are those of RankTune's Gaussian process: numbers are compared on their scale, from 0 to 1,
an inactive one is 0.5, and two categories are as far apart as the ends of a range. A table of random configurations
makes plateaus in this way, and they are so wide that neighbours say little of each other: a search succeeds here by
visiting many. Validation queries found the rounds of boosting, which are no parameter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.registry import solver_class
from ranktune.studies.benchmarks.search.problems import RANKING_NOISE, TABLES, Problem
from ranktune.studies.benchmarks.task_table.packing import unpack
from ranktune.studies.benchmarks.task_table.rows import mean_value
from ranktune.studies.benchmarks.tasks import DRAWN
from ranktune.tuner.gp.encoding import Encoding
from ranktune.tuner.samplers.history import arranged
from ranktune.tuner.samplers.space import SOLVER, UnionSpace

FILE = Path(str(files("ranktune.docs"))) / "benchmarks" / "results" / "tasks.npz"
"""The table. Only the repository has it."""
SEEDS, BOOSTED = range(36, 48), ("LambdaMART", "GBDTRanker")

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
    def _known(self) -> tuple[Encoding, Floats, Floats]:
        """The encoding, and the configurations of the table, (n, D), with what they lack, (n,)."""
        rows = [row for row in _rows(FILE) if row.task == self.task and row.share == 1.0]
        known = [(json.loads(row.configuration), mean_value(row.vali)) for row in rows]
        params, values = zip(*((each, value) for each, value in known if each[SOLVER] == self.solver), strict=True)
        encoding, places = arranged(self.space, params)
        return encoding, encoding.embed(places), max(values) - np.array(values)

    def __call__(self, trial: Trial) -> float:
        """Return what the nearest configuration lacks."""
        encoding, known, lacks = self._known
        at = encoding.embed(arranged(self.space, [self.space.suggest(trial)])[1])
        return float(lacks[np.argmin(((known - at) ** 2).sum(axis=1))])


def tabulated() -> dict[str, Problem]:
    """Return the problems by name. Their file is read at the first evaluation."""
    result = {}
    for seed in SEEDS:
        loss = Tabulated(f"{DRAWN}-{seed}", BOOSTED[seed % len(BOOSTED)])
        result[f"{loss.solver.lower()}-{seed}"] = Problem(loss, 0.0, RANKING_NOISE, loss.space, kind=TABLES, file=FILE)
    return result
