"""Many simulated studies: which of them, by which rules, what each delivers, and the tables of that.

What a study delivers is chosen by its rules, and judged by what the table knows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, nearest
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.benchmarks.tasks import DRAWN, confirms
from ranktune.studies.laboratory.known import HARM, KnownTask, by_task, known_task
from ranktune.studies.laboratory.rows import METRIC, first_with_rows, name_of, read_rows
from ranktune.studies.laboratory.simulation import Simulated, Simulation, Suggestions
from ranktune.studies.laboratory.suggestions import DecisionRules
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import alike, first_configurations
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.selection.estimate import estimate, for_few_queries
from ranktune.tuner.selection.finals import best_by_solver
from ranktune.tuner.selection.finished_trials import best_candidates, best_default
from ranktune.tuner.statistics.comparisons import signed_rank
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.storage.record import number_of
from ranktune.tuner.study.declaration import Study

LEARN, CONFIRM = "learn", "confirm"
"""The halves of the tasks."""
EVERY = 20
"""Studies between two lines of progress."""


@dataclass(frozen=True)
class Delivered:
    """What a simulated study delivers.

    Attributes
    ----------
    task, budget, seed
        The study.
    solver, test : str, float
        The chosen configuration: its solver, and its mean on test queries.
    regret : float
        By how much the best row of the table tests better; 0 for a cut trial that tests better than all rows.
    default : float
        What the best by validation of the first configurations has on test queries.
    is_first : bool
        Whether the choice is a first configuration.
    trials, used, exhausted
        See `ranktune.studies.laboratory.simulation.Simulated`.
    estimate : Interval
        The estimate, with limits for the mean over so many test queries.
    """

    task: str
    budget: float
    seed: int
    solver: str
    test: float
    regret: float
    default: float
    is_first: bool
    trials: int
    used: float
    exhausted: bool
    estimate: Interval

    @property
    def gain(self) -> float:
        """What it tests better than the default."""
        return self.test - self.default

    @property
    def error(self) -> float:
        """By how much the estimate is too high."""
        return self.estimate.mean - self.test

    @property
    def is_harmed(self) -> bool:
        """Whether it tests worse than the default by more than HARM."""
        return self.gain < -HARM

    @property
    def is_inside(self) -> bool:
        """Whether the limits of the estimate cover the mean on test queries."""
        return self.estimate.low <= self.test <= self.estimate.high


def delivered(result: Simulated, policy: Policy = POLICY) -> Delivered:
    """Return what a simulated study delivers by a policy."""
    space, study, trials = result.task.space, result.study, {number_of(trial): trial for trial in result.trials()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)  # where all trials score the same, any is chosen
        candidates = best_candidates(result, space, policy=policy)
    chosen, default = best_by_solver(candidates)[0], best_default(result, space, study.limits)
    solvers = {number: str(trial.params[SOLVER]) for number, trial in trials.items()}
    generator = np.random.default_rng([study.seed, 6])
    promised = estimate(chosen, candidates, result.values, solvers, generator)
    test = result.tests[chosen.number]
    assert study.timeout is not None
    return Delivered(
        task=result.task.name,
        budget=study.timeout,
        seed=study.seed,
        solver=chosen.solver,
        test=test,
        regret=max(float(result.task.tests.max()) - test, 0.0),
        default=test if default is None else result.tests[default.number],
        is_first=any(alike(first, trials[chosen.number].params) for first in first_configurations(space)),
        trials=len(trials),
        used=result.used,
        exhausted=result.exhausted,
        estimate=for_few_queries(promised, chosen.values, result.task.test_queries),
    )


def task_means(studies: Sequence[Delivered], name: str) -> Mapping[str, float]:
    """Return the mean of an attribute over the studies of each task."""
    values: dict[str, list[float]] = {}
    for study in studies:
        values.setdefault(study.task, []).append(float(getattr(study, name)))
    return {task: float(np.mean(each)) for task, each in values.items()}


def changes(before: Sequence[Delivered], after: Sequence[Delivered]) -> Floats:
    """Return what each task tests better after a change of the rules; the studies are in the same order."""
    values = task_means(before, "test")
    return np.array([value - values[task] for task, value in task_means(after, "test").items()])


def worst_decile(regret: Floats) -> float:
    """Return the mean of the tenth of the values, one at least, that is highest."""
    return float(np.sort(regret)[-max(round(len(regret) / 10), 1) :].mean())


@dataclass(frozen=True)
class SimulationPlan:
    """Which studies are simulated: of every task for all seconds and seeds, a task after the other for each seed."""

    seconds: Sequence[float]
    seeds: Sequence[int]

    def of(self, tasks: Sequence[KnownTask]) -> list[tuple[float, int, KnownTask]]:
        """Return the studies of these tasks."""
        return [(seconds, seed, task) for seconds in self.seconds for seed in self.seeds for task in tasks]


def known_tasks(path: Path, half: str, solvers: Sequence[str]) -> list[KnownTask]:
    """Return the tasks of a half that have a row of each first configuration of the solvers.

    Drawn tasks are in the order of their seeds; the others, which confirm, come after them.

    Raises ParameterError where there is none.
    """
    if half not in (LEARN, CONFIRM):
        raise ParameterError(f"there is no half '{half}'. {nearest(half, (LEARN, CONFIRM))}")
    table = {
        task: {name: row for name, row in rows.items() if row.vali is not None and np.isfinite(row.vali).any()}
        for task, rows in by_task(read_rows(path)).items()
    }
    split, begun = Study(solvers=list(solvers)).union_space().split, first_with_rows(solvers, table)
    first = {solver: [params for name, params in map(split, begun) if name == solver] for solver in solvers}
    space = Study(solvers=list(solvers), first=first, after="the table").union_space()
    names = [
        name
        for name, rows in table.items()
        if is_confirming(name) == (half == CONFIRM) and all(name_of(each) in rows for each in begun)
    ]
    if not names:
        raise ParameterError(f"{path} has no task of the half '{half}' with all first configurations.")
    names.sort(key=lambda name: (_seed(name) is None, _seed(name) or 0, name))
    return [known_task(table, name, space) for name in names]


def _seed(task: str) -> int | None:
    """Return the seed of a drawn task, None of another."""
    kind, _, seed = task.partition("-")
    return int(seed) if kind == DRAWN else None


def is_confirming(task: str) -> bool:
    """Return whether a task is of the half that confirms."""
    seed = _seed(task)
    return seed is None or confirms(seed)


def simulated(
    tasks: Sequence[KnownTask],
    plan: SimulationPlan,
    rules: Sequence[DecisionRules],
    on_line: Callable[[str], None] = lambda line: None,
) -> list[list[Delivered]]:
    """Return what the studies of a plan deliver by each of some rules, in the same order.

    Rules with the same trials (`DecisionRules.of_trials`) share them.
    """
    studies = plan.of(tasks)
    results: list[list[Delivered]] = [[] for _ in rules]
    suggestions: dict[int, Suggestions] = {}
    for number, (seconds, seed, task) in enumerate(studies):
        solvers = list(dict.fromkeys(task.solvers))
        runs: dict[DecisionRules, Simulated] = {}
        for place, each in enumerate(rules):
            of_trials = each.of_trials
            if of_trials not in runs:
                declared = Study(solvers=solvers, metric=METRIC, seed=seed, timeout=seconds, sampler=each.sampler)
                answers = suggestions.setdefault(seed, {})
                runs[of_trials] = Simulation(task, declared, answers, of_trials.policy).run()
            results[place].append(delivered(runs[of_trials], each.policy))
        if number % EVERY == 0:
            on_line(f"{number} of {len(studies)} studies")
    return results


def figures(studies: Mapping[tuple[str, float], Sequence[Delivered]], half: str) -> list[BenchmarkTable]:
    """Return the tables of what studies deliver, by their solvers and their seconds, on a half of the tasks."""
    gains: list[Row] = []
    times: list[Row] = []
    for (solvers, seconds), each in studies.items():
        kind = {"solvers": solvers, "s": f"{seconds:g}"}
        names = "regret", "gain", "is_harmed", "is_first", "trials", "used", "exhausted", "error", "is_inside"
        by_task_of = {name: np.array(list(task_means(each, name).values())) for name in names}
        mean = {name: float(values.mean()) for name, values in by_task_of.items()}
        gains.append(
            kind
            | {
                "regret": f"{mean['regret']:.4f}",
                "worst tenth": f"{worst_decile(by_task_of['regret']):.4f}",
                "gain": f"{mean['gain']:+.4f}",
                "p": f"{signed_rank(by_task_of['gain']):.3f}",
                "harmed": f"{mean['is_harmed']:.1%}",
                "changed": f"{1.0 - mean['is_first']:.0%}",
            }
        )
        times.append(
            kind
            | {
                "studies": len(each),
                "tasks": len(by_task_of["regret"]),
                "trials": f"{mean['trials']:.1f}",
                "used": f"{mean['used']:.1f}",
                "all rows": f"{mean['exhausted']:.0%}",
                "estimate": f"{mean['error']:+.4f}",
                "inside": f"{mean['is_inside']:.0%}",
            }
        )
    delivered_note = (
        f"Means over tasks. Gain: over the best by validation of the first configurations; harmed: by {HARM:g}. "
        "Changed: the choice is no first configuration."
    )
    time_note = (
        "Used: seconds, with those for the end. All rows: the table had no more. Estimate: less the mean on test "
        "queries; inside: its limits cover that."
    )
    return [
        BenchmarkTable(f"what simulated studies deliver, half '{half}'", gains, delivered_note),
        BenchmarkTable("their time and their estimates", times, time_note),
    ]


def of_tasks(studies: Sequence[Delivered]) -> BenchmarkTable:
    """Return the table of regret and harm by task, with which later studies are compared."""
    regret, harmed = task_means(studies, "regret"), task_means(studies, "is_harmed")
    rows: list[Row] = [
        {"task": task, "regret": round(regret[task], 6), "harmed": round(harmed[task], 6)} for task in regret
    ]
    return BenchmarkTable("regret and harm by task", rows)


def compared(names: Sequence[str], studies: Sequence[Sequence[Delivered]], half: str) -> BenchmarkTable:
    """Return the table of paired differences on test queries from the first of several rules, by their seconds."""
    rows: list[Row] = []
    for seconds in dict.fromkeys(each.budget for each in studies[0]):
        reference = [each for each in studies[0] if each.budget == seconds]
        for name, others in zip(names, studies, strict=True):
            paired = [each for each in others if each.budget == seconds]
            change = np.array([each.test - other.test for each, other in zip(paired, reference, strict=True)])
            differences = changes(reference, paired)
            rows.append(
                {
                    "rules": name,
                    "s": f"{seconds:g}",
                    "regret": f"{np.mean(list(task_means(paired, 'regret').values())):.4f}",
                    "difference": f"{differences.mean():+.5f}",
                    "p": f"{signed_rank(differences):.3f}",
                    "better": f"{np.mean(change > HARM):.1%}",
                    "worse": f"{np.mean(change < -HARM):.1%}",
                    "other": f"{np.mean(change != 0.0):.1%}",
                }
            )
    note = f"Difference of the mean on test queries, p over tasks; better, worse: by {HARM:g}; other: another choice."
    return BenchmarkTable(f"rules compared with {names[0]}, half '{half}'", rows, note)
