"""Runs of samplers, and the table of their regret with tests.

A run's regret after k trials is the loss of its pick without noise, less the problem's minimum; where that is unknown,
less the lowest loss of any pick of any run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.search.problems import TestProblem
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.papers.tuner_runs import SIGNIFICANT, mann_whitney

MARKS = (5, 10, 20, 30, 60, 100)
"""Numbers of trials after which regrets are compared."""
Key: TypeAlias = tuple[str, str, int, int, int]


@dataclass(frozen=True)
class ProblemSetting:
    """How a problem is run: how many trials, and how many of them at the same time."""

    trials: int
    workers: int

    @property
    def marks(self) -> list[int]:
        """The numbers of trials to compare at."""
        return [mark for mark in MARKS if mark <= self.trials] or [self.trials]


@dataclass(frozen=True)
class SearchRun:
    """One run; picks are the losses, without noise, of the best observed value after each trial."""

    problem: str
    sampler: str
    seed: int
    workers: int
    picks: list[float]

    @property
    def key(self) -> Key:
        """What was run: problem, sampler, seed, workers and trials."""
        return self.problem, self.sampler, self.seed, self.workers, len(self.picks)


@dataclass(frozen=True)
class Selection:
    """The runs to show: of some problems, samplers, seeds and a setting."""

    runs: Mapping[Key, SearchRun]
    known: Mapping[str, TestProblem]
    titles: Sequence[str]
    names: Sequence[str]
    seeds: Sequence[int]
    setting: ProblemSetting

    @property
    def about(self) -> str:
        """The setting in words."""
        return f"{self.setting.workers} at a time, {len(self.seeds)} seeds"

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], list[SearchRun]]:
        """The selected runs by problem and sampler."""
        cells: dict[tuple[str, str], list[SearchRun]] = {}
        for (title, name, seed, *setting), run in self.runs.items():
            same = setting == [self.setting.workers, self.setting.trials]
            if same and title in self.titles and name in self.names and seed in self.seeds:
                cells.setdefault((title, name), []).append(run)
        return cells

    @cached_property
    def lowest(self) -> Mapping[str, float]:
        """The minimum of each problem, or the lowest loss of all runs."""
        return {title: self._lowest(title) for title in self.titles}

    def _lowest(self, title: str) -> float:
        minimum = self.known[title].minimum
        if minimum is not None:
            return minimum
        return min((min(run.picks) for run in self.runs.values() if run.problem == title), default=0.0)

    def regrets(self, title: str, name: str, mark: int) -> Floats:
        """Return the regrets after mark trials, (n_runs,)."""
        losses = [run.picks[mark - 1] for run in self.cells.get((title, name), [])]
        return np.array(losses, dtype=np.float64) - self.lowest[title]


def table(chosen: Selection) -> BenchmarkTable:
    """Return the regrets, medians with quartiles and tests of the first sampler against the others."""
    first, *_ = chosen.names
    rows: list[Row] = [
        {"problem": title, "trials": mark, "sampler": name, "regret": _quartiles(regrets),
         "against": "" if name == first else _verdict(chosen.regrets(title, first, mark), regrets)}
        for title in chosen.titles for mark in chosen.setting.marks for name in chosen.names
        if len(regrets := chosen.regrets(title, name, mark))
    ]  # fmt: skip
    note = f"against: whether {first} is better or worse than this sampler, Mann-Whitney, two-sided."
    return BenchmarkTable(f"Regret, median [quartiles]: {chosen.about}", rows, note if rows else "no runs")


def _quartiles(values: Floats) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.3g} [{low:.2g}, {high:.2g}]"


def _verdict(regrets: Floats, others: Floats) -> str:
    """Return whether regrets are significantly less than others, with the p-value; nothing where there are none."""
    if not len(regrets):
        return ""
    p = mann_whitney(regrets, others)
    sign = "better, " if np.median(regrets) < np.median(others) else "worse, "
    return f"{sign if p < SIGNIFICANT else ''}p={p:.2g}"
