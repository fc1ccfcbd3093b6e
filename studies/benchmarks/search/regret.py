"""Runs of samplers, and their regret: by problem, as mean ranks by class of problems, and of two samplers run by run.

A run's regret after k trials is the loss of its pick without noise, less the problem's minimum; where that is unknown,
less the lowest loss of any pick of any run.

On each problem the samplers are ranked by their median regret, the lowest as 1. Mean ranks over problems are tested by
Friedman's test, and by the critical difference of Nemenyi's. Two samplers are compared over problems and seeds by
Wilcoxon's test of the differences of their regrets, each divided by their sum, so that problems with large values count
no more than others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.search.problems import KINDS, SearchProblem
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.benchmarks.turnkey.results import critical_difference, friedman
from ranktune.studies.papers.claims import SIGNIFICANT
from ranktune.studies.papers.tuner_runs import mann_whitney
from ranktune.tuner.statistics.comparisons import signed_rank
from ranktune.tuner.statistics.measured import ALPHA

MARKS = (5, 10, 20, 30, 60, 100)
"""Numbers of trials after which regrets are compared."""
Key: TypeAlias = tuple[str, str, int, int, int]
ALL = "all"


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
    problems: Mapping[str, SearchProblem]
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
        minimum = self.problems[title].minimum
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


def ranks(chosen: Selection, titles: Sequence[str], mark: int) -> tuple[list[str], list[str], Floats]:
    """Return the samplers that have runs, the problems of which all have some, and ranks, (problems, samplers)."""
    names = [name for name in chosen.names if any((title, name) in chosen.cells for title in titles)]
    titles = [title for title in titles if all((title, name) in chosen.cells for name in names)]
    medians = [[float(np.median(chosen.regrets(title, name, mark))) for name in names] for title in titles]
    values = np.array(medians).reshape(len(titles), len(names))
    return names, titles, scipy.stats.rankdata(np.round(values, 12), axis=1)


def rank_tables(chosen: Selection) -> Iterator[BenchmarkTable]:
    """Yield the mean ranks of each class, and of all problems, after each number of trials."""
    for kind, titles in _classes(chosen):
        every = {mark: ranks(chosen, titles, mark) for mark in chosen.setting.marks}
        names, problems, last = every[chosen.setting.marks[-1]]
        if not problems or len(names) < 2:
            continue
        by_mark = {mark: places for mark, (_, _, places) in every.items()}
        rows: list[Row] = [
            {"sampler": names[k], **{str(mark): f"{places[:, k].mean():.2f}" for mark, places in by_mark.items()}}
            for k in np.argsort(last.mean(axis=0), kind="stable").tolist()
        ]
        note = " ".join(_tests(by_mark, set(titles) - set(problems)))
        yield BenchmarkTable(f"Mean ranks, {kind}, {len(problems)} problems: {chosen.about}", rows, note)


def _tests(places: Mapping[int, Floats], rest: Collection[str]) -> Iterator[str]:
    """Yield Friedman's p, Nemenyi's critical difference, and the problems of which a sampler has no runs."""
    n_problems, n_names = next(iter(places.values())).shape
    if n_problems > 1:
        if n_names > 2:
            yield f"Friedman's p: {', '.join(f'{friedman(ranks):.2g} ({mark})' for mark, ranks in places.items())}."
        yield f"Critical difference (Nemenyi, {ALPHA:.0%}): {critical_difference(n_problems, n_names):.2f}."
    if rest:
        yield f"Left out: {', '.join(sorted(rest))}."


def duel(chosen: Selection, first: str, second: str) -> BenchmarkTable:
    """Return how often the first of two samplers has less regret than the second late in a run, with Wilcoxon's p."""
    rows: list[Row] = []
    for mark in chosen.setting.marks[-3:]:
        for kind, titles in _classes(chosen):
            pairs = [pair for title in titles for pair in _pairs(chosen, title, first, second, mark)]
            if pairs:
                a, b = np.maximum(np.array(pairs).T, 0.0)
                gaps = np.divide(a - b, a + b, out=np.zeros_like(a), where=a + b > 0)
                rows.append({
                    "trials": mark, "class": kind, "pairs": len(pairs), "less": int((gaps < 0).sum()),
                    "more": int((gaps > 0).sum()), "mean gap": f"{gaps.mean():+.3f}", "p": f"{signed_rank(gaps):.2g}",
                })  # fmt: skip
    note = "gap: the difference of two regrets divided by their sum; p: Wilcoxon's signed ranks, two-sided."
    return BenchmarkTable(f"Regret of {first} beside {second}, by problem and seed: {chosen.about}", rows, note)


def _classes(chosen: Selection) -> Iterator[tuple[str, list[str]]]:
    """Yield the classes of the chosen problems, each with its problems, and all of them."""
    for kind in KINDS:
        titles = [title for title in chosen.titles if chosen.problems[title].kind == kind]
        if titles:
            yield kind, titles
    yield ALL, list(chosen.titles)


def _pairs(chosen: Selection, title: str, first: str, second: str, mark: int) -> list[tuple[float, float]]:
    """Return the regrets of two samplers on a problem, by seed."""
    a, b = (
        {run.seed: run.picks[mark - 1] - chosen.lowest[title] for run in chosen.cells.get((title, name), [])}
        for name in (first, second)
    )
    return [(a[seed], b[seed]) for seed in a if seed in b]
