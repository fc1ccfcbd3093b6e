"""The task that a worker evaluates, its outcome, and until then how far its fit is, for whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.feature_costs import FeatureBudget
from ranktune.tuner.policy.policy import POLICY, Race
from ranktune.tuner.splits.plans import PLAN

EVERY = 8.0
"""Seconds between two reports of a fit, and before the first."""


@dataclass(frozen=True)
class Task:
    """One configuration to evaluate. It is small, because the data are in the folder.

    Attributes
    ----------
    folder : str
        Folder of the development queries and their plans.
    metrics : tuple of str
        Names of the metrics, the one to maximise first.
    solver, parameters, seed
        The ranker to fit.
    plan : str
        Name of the stored plan to score by.
    keep_scores : bool
        Whether to return the scores of the validation documents too. Blends are made of them.
    keep : bool
        Whether to store the scores, and on a given split the model, for the end of the study
        (`ranktune.tuner.evaluation.models`), and to continue the stored model of these parameters if it is unfinished.
    limit : float
        Seconds that the evaluation may take. The fit ends between two steps once they are over; boosting on a given
        split then counts with the rounds that it has, and can be continued.
    bound, least : int
        The most rounds of boosting on a given split, where validation queries stop it, and the fewest that the search
        space has; bound 0 where the solver does not boost. The path parameter is the number of rounds.
    threads : int
        Threads of the fit, where the solver can use several.
    path_parameter, path : str, tuple of float
        Values of a parameter of which one fit gives a model each (`BaseRanker.fit_path`), in that order. The outcome
        is that of the best.
    incumbent : array of shape (n_queries,) or (n_orders,), or None
        The scores of the configuration to beat, by validation query, or by order of a progressive plan. The evaluation
        stops once it is significantly worse (`ranktune.tuner.policy.racing`).
    budget : FeatureBudget or None
        The costs of features, where costs are given, and the limits within which features are chosen.
    race : Race
        When the evaluation is stopped.
    after : str
        File of a model from which each fit goes on, "" for fits from zero.
    """

    folder: str
    metrics: tuple[str, ...]
    solver: str
    parameters: Mapping[str, Value]
    seed: int
    plan: str = PLAN
    keep_scores: bool = False
    keep: bool = False
    limit: float = float("inf")
    bound: int = 0
    least: int = 1
    threads: int = 1
    path_parameter: str = ""
    path: tuple[float, ...] = ()
    incumbent: Floats | None = None
    budget: FeatureBudget | None = None
    race: Race = POLICY.race
    after: str = ""


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of a task.

    Attributes
    ----------
    per_query : mapping of str to array of shape (n_queries,)
        The value of each metric by validation query, in the order of the development queries. NaN where the metric
        skips a query, and where the evaluation was stopped before it.
    nonzeros, bytes, cost : float
        Features that the models use, the size of their numbers, and what their features cost, NaN without costs: means
        over the folds.
    seconds, microseconds : float
        Processor time to fit, all folds together, and to score one document.
    error : str or None
        Why the evaluation failed.
    begun, ended : float
        Seconds since 1970. The time to compile kernels is not part of it.
    worker : str
        The process that evaluated the task.
    given_up : bool
        Whether it took longer than its limit. `error` then says so.
    stopped : str
        The part of the plan after which it was significantly worse than the incumbent, "fold 2 of 5". Empty where it
        was evaluated in full.
    path_parameter, chosen, path : str, float or None, tuple of (float, float)
        The parameter whose values were tried by one fit, the value that scored best, and each value with the mean of
        the metric, the most expensive last.
    bulk : float
        Bytes of the models of the most expensive value of the path.
    scores : float32 array of shape (n_documents,) or None
        Scores of the development documents, 0 where the plan scores none.
    steps : tuple of (float, str, float)
        When a part of the plan ended, which one, and what it scored.
    learning_curve : tuple of (float, float)
        Of a progressive plan: how many queries had been learned from, and what the next ones scored, means over the
        orders.
    restarts : int
        How often the trial was restarted because its worker was lost.
    unfinished : bool
        Whether the limit ended boosting. Another trial with the parameters chosen continues the stored model.
    """

    per_query: Mapping[str, Floats] = field(default_factory=dict)
    nonzeros: float = float("nan")
    seconds: float = 0.0
    error: str | None = None
    warnings: tuple[str, ...] = ()
    bytes: float = float("nan")
    microseconds: float = float("nan")
    cost: float = float("nan")
    begun: float = 0.0
    ended: float = 0.0
    worker: str = ""
    given_up: bool = False
    scores: NDArray[np.float32] | None = None
    steps: tuple[tuple[float, str, float], ...] = ()
    stopped: str = ""
    path_parameter: str = ""
    chosen: float | None = None
    path: tuple[tuple[float, float], ...] = ()
    bulk: float = 0.0
    learning_curve: tuple[tuple[float, float], ...] = ()
    restarts: int = 0
    unfinished: bool = False


def chosen_parameters(task: Task, outcome: TaskOutcome) -> dict[str, Value]:
    """Return the parameters of a task with the best value of its path."""
    name, params = outcome.path_parameter, dict(task.parameters)
    if outcome.chosen is None or name not in params:
        return params
    return {**params, name: int(outcome.chosen) if isinstance(params[name], int) else outcome.chosen}


@dataclass(frozen=True)
class Rounds:
    """How far a fit is: the part of the plan that is fitted, the iterations done, and the seconds since the plan began.

    Of boosting they are rounds, with the most that there may be, else 0, and value is the metric on validation queries,
    else NaN.
    """

    part: str
    done: int
    most: int
    value: float
    seconds: float

    def __str__(self) -> str:
        """Return the rounds, the value and the seconds, in words."""
        value = f", {self.value:.4f}" if self.value == self.value else ""
        return f"{self.part}: {self.done} {'rounds' if self.most else 'iterations'}{value}, {self.seconds:.0f} s"


_listeners: list[Callable[[Rounds], None]] = []


@contextmanager
def listening(listener: Callable[[Rounds], None]) -> Iterator[None]:
    """Call listener with the reports of the fits in the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.pop()


def report(rounds: Rounds) -> None:
    """Let the innermost listener know, if there is one."""
    if _listeners:
        _listeners[-1](rounds)
