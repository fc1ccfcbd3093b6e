"""Many simulated studies: which of them, by which rules, and the tables of what they deliver."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.benchmarks.tasks import DRAWN, confirms
from ranktune.studies.laboratory.configurations import first_with_rows, name_of
from ranktune.studies.laboratory.deliveries import Delivered, delivered, task_means, worst_decile
from ranktune.studies.laboratory.known import HARM, KnownTask, by_task, known_task
from ranktune.studies.laboratory.making import read_rows
from ranktune.studies.laboratory.rows import METRIC
from ranktune.studies.laboratory.rules import DecisionRules
from ranktune.studies.laboratory.simulation import Known, Simulated, Simulation
from ranktune.tuner.statistics.comparisons import signed_rank
from ranktune.tuner.study.declaration import Study

LEARN, CONFIRM = "learn", "confirm"
"""The halves of the tasks."""
EVERY = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class SimulationPlan:
    """Which studies are simulated: of every task for all seconds and seeds, a task after the other for each seed.

    Attributes
    ----------
    most : int or None
        The largest number of studies of each number of seconds.
    """

    seconds: Sequence[float]
    seeds: Sequence[int]
    most: int | None = None

    def of(self, tasks: Sequence[KnownTask]) -> list[tuple[float, int, KnownTask]]:
        """Return the studies of these tasks."""
        every = [(seed, task) for seed in self.seeds for task in tasks][: self.most]
        return [(seconds, *each) for seconds in self.seconds for each in every]


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
    first = {solver: [own for name, own in map(split, begun) if name == solver] for solver in solvers}
    space = Study(solvers=list(solvers), first=first, after="the table").union_space()
    names = [
        name
        for name, rows in table.items()
        if _confirms(name) == (half == CONFIRM) and all(name_of(each) in rows for each in begun)
    ]
    if not names:
        raise ParameterError(f"{path} has no task of the half '{half}' with all first configurations.")
    names.sort(key=lambda name: (_seed(name) is None, _seed(name) or 0, name))
    return [known_task(table, name, space) for name in names]


def _seed(task: str) -> int | None:
    """Return the seed of a drawn task, None of another."""
    kind, _, seed = task.partition("-")
    return int(seed) if kind == DRAWN else None


def _confirms(task: str) -> bool:
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
    known: dict[int, Known] = {}
    said = time.monotonic()
    for number, (seconds, seed, task) in enumerate(studies):
        solvers = list(dict.fromkeys(task.solvers))
        runs: dict[DecisionRules, Simulated] = {}
        for place, each in enumerate(rules):
            of_trials = each.of_trials
            if of_trials not in runs:
                declared = Study(solvers=solvers, metric=METRIC, seed=seed, timeout=seconds, sampler=each.sampler)
                answers = known.setdefault(seed, {})
                runs[of_trials] = Simulation(task, declared, answers, of_trials.policy).run()
            results[place].append(delivered(runs[of_trials], each.policy))
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            on_line(f"{number + 1} of {len(studies)} studies")
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
            own = [each for each in others if each.budget == seconds]
            change = np.array([each.test - other.test for each, other in zip(own, reference, strict=True)])
            ours, theirs = task_means(own, "test"), task_means(reference, "test")
            differences = np.array([ours[task] - theirs[task] for task in ours])
            rows.append(
                {
                    "rules": name,
                    "s": f"{seconds:g}",
                    "regret": f"{np.mean(list(task_means(own, 'regret').values())):.4f}",
                    "difference": f"{differences.mean():+.5f}",
                    "p": f"{signed_rank(differences):.3f}",
                    "better": f"{np.mean(change > HARM):.1%}",
                    "worse": f"{np.mean(change < -HARM):.1%}",
                    "other": f"{np.mean(change != 0.0):.1%}",
                }
            )
    note = f"Difference of the mean on test queries, p over tasks; better, worse: by {HARM:g}; other: another choice."
    return BenchmarkTable(f"rules compared with {names[0]}, half '{half}'", rows, note)
