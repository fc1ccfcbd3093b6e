"""Samplers on many problems: mean ranks by class of problems, and two samplers run by run.

On each problem the samplers are ranked by their median regret, the lowest as 1. Mean ranks of all problems are tested
as those of tools on data sets are: by Friedman's test, and by the critical difference of Nemenyi's. Two samplers are
compared over problems and seeds by Wilcoxon's test of the differences of their regrets, each divided by their sum, so
that problems with large values count no more than others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.search.problems import KINDS
from ranktune.studies.benchmarks.search.regret import Selection
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.benchmarks.turnkey.overall import critical_difference, friedman
from ranktune.tuner.statistics.comparisons import ALPHA, signed_rank

ALL = "all"


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
        titles = [title for title in chosen.titles if chosen.known[title].kind == kind]
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
