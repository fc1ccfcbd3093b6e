"""Runs of samplers, and their tables of regret with tests, and figure.

A run's regret after k trials is the noise-free loss of its pick, less the problem's minimum; where that is unknown,
less the lowest loss of any pick of any run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.studies.benchmarks.search.problems import Problem
from ranktune.studies.benchmarks.tables import Row, Table

MARKS = (5, 10, 20, 30, 60, 100)
"""Numbers of trials after which regrets are compared."""
SHARES = (0.25, 0.5, 1.0)
"""Shares of the seconds of the fastest sampler at which regrets are compared at equal seconds."""
SIGNIFICANT = 0.05
PANELS = 4
"""Panels of the figure in a row."""
Key: TypeAlias = tuple[str, str, int, bool, int, int]


@dataclass(frozen=True)
class Setting:
    """How a problem is run: with its noise or without, how many trials, and how many of them at the same time."""

    noisy: bool
    trials: int
    workers: int

    @property
    def marks(self) -> list[int]:
        """The numbers of trials to compare at."""
        return [mark for mark in MARKS if mark <= self.trials] or [self.trials]


@dataclass(frozen=True)
class Run:
    """One run: noise-free losses of its picks.

    picks      of the best observed value after each trial
    believed   of the highest posterior mean, by number of trials, where the sampler has a model
    duplicates configurations that came before; seconds: of the processor, for each trial with its loss
    spent      seconds of all evaluations up to each trial; empty where they have no cost
    """

    problem: str
    sampler: str
    seed: int
    noisy: bool
    workers: int
    picks: list[float]
    believed: dict[int, float]
    duplicates: int
    seconds: float
    spent: list[float] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """What was run: problem, sampler, seed, noisy, workers and trials."""
        return self.problem, self.sampler, self.seed, self.noisy, self.workers, len(self.picks)

    @classmethod
    def from_json(cls, values: Json) -> Self:
        """Return the run of these fields; the keys of objects in JSON are text."""
        return cls(**values | {"believed": {int(mark): loss for mark, loss in values["believed"].items()}})


def mann_whitney(a: Floats, b: Floats) -> float:
    """Return the two-sided p-value of the Mann-Whitney test; 1 where there are no values, or all are equal."""
    from scipy.stats import mannwhitneyu  # takes a third of a second to import

    if not len(a) or not len(b) or np.ptp(np.concatenate([a, b])) == 0:
        return 1.0
    return float(mannwhitneyu(a, b, alternative="two-sided").pvalue)


BELIEVED = " (believed)"


@dataclass(frozen=True)
class Selection:
    """The runs to show: of some problems, samplers, seeds and a setting; the last of equal ones."""

    runs: Sequence[Run]
    known: Mapping[str, Problem]
    titles: Sequence[str]
    names: Sequence[str]
    seeds: Sequence[int]
    setting: Setting

    @property
    def about(self) -> str:
        """The setting in words."""
        return (
            f"{'noisy' if self.setting.noisy else 'plain'}, {self.setting.workers} at a time, {len(self.seeds)} seeds"
        )

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], list[Run]]:
        """The selected runs by problem and sampler."""
        cells: dict[tuple[str, str], list[Run]] = {}
        wanted = (self.setting.noisy, self.setting.workers, self.setting.trials)
        for run in {run.key: run for run in self.runs}.values():
            same = (run.noisy, run.workers, len(run.picks)) == wanted
            if same and run.problem in self.titles and run.sampler in self.names and run.seed in self.seeds:
                cells.setdefault((run.problem, run.sampler), []).append(run)
        return cells

    @cached_property
    def lowest(self) -> Mapping[str, float]:
        """The minimum of each problem, or the lowest loss of all runs."""
        return {title: self._lowest(title) for title in self.titles}

    def _lowest(self, title: str) -> float:
        minimum = self.known[title].minimum
        if minimum is not None:
            return minimum
        runs = [run for run in self.runs if run.problem == title]
        return min((min([*run.picks, *run.believed.values()]) for run in runs), default=0.0)

    def regrets(self, title: str, name: str, mark: int) -> Floats:
        """Return the regrets after mark trials; a name that ends with " (believed)" selects picks by posterior mean."""
        base = name.removesuffix(BELIEVED)
        runs = [run for run in self.cells.get((title, base), []) if name == base or mark in run.believed]
        losses = [run.believed[mark] if name != base else run.picks[mark - 1] for run in runs]
        return np.array(losses, dtype=np.float64) - self.lowest[title]

    def pick(self, run: Run, seconds: float) -> float:
        """Return the regret of a run's pick after so many seconds of evaluations, at least one."""
        done = int(np.searchsorted(run.spent, seconds * (1 + 1e-9), side="right"))
        return run.picks[max(done, 1) - 1] - self.lowest[run.problem]

    def seconds_to(self, title: str, name: str, regret: float) -> Floats:
        """Return the seconds after which each run has a pick of at most so much regret; infinite where none is."""
        taken = []
        for run in self.cells.get((title, name), []):
            reached = np.flatnonzero(np.array(run.picks) - self.lowest[title] <= regret)
            taken.append(run.spent[reached[0]] if len(reached) else np.inf)
        return np.array(taken)


def tables(chosen: Selection) -> list[Table]:
    """Return the regrets, medians with quartiles and tests of the first sampler against the others; and their cost."""
    titles, setting = chosen.titles, chosen.setting
    shown = [
        name
        for sampler in chosen.names
        for name in (sampler, sampler + BELIEVED)
        if any(run.believed or name == sampler for title in titles for run in chosen.cells.get((title, sampler), []))
    ]
    rows = [
        _row({"problem": title, "trials": mark}, name, chosen.regrets(title, name, mark),
             None if name == shown[0] else chosen.regrets(title, shown[0], mark))
        for title in titles for mark in setting.marks for name in shown if len(chosen.regrets(title, name, mark))
    ]  # fmt: skip
    if not rows:
        return [Table(f"Regret: {chosen.about}", [], "no runs")]
    note = f"against: whether {shown[0]} is better or worse than this sampler, Mann-Whitney, two-sided."
    return [
        Table(f"Regret, median [quartiles]: {chosen.about}", rows, note),
        Table("Costs of samplers", _costs(chosen)),
    ]


def _row(where: Row, name: str, regrets: Floats, first: Floats | None) -> Row:
    """Return the row of a sampler; first has the regrets of the sampler that it is compared with, if any."""
    against = "" if first is None else _verdict(first, regrets)
    return {**where, "sampler": name, "regret": quartiles(regrets), "against": against}


def _costs(chosen: Selection) -> list[Row]:
    rows: list[Row] = []
    for name in chosen.names:
        runs = [run for title in chosen.titles for run in chosen.cells.get((title, name), [])]
        if runs:
            duplicates, seconds = (
                float(np.mean(values)) for values in zip(*((run.duplicates, run.seconds) for run in runs), strict=True)
            )
            rows.append({"sampler": name, "duplicates a run": duplicates, "s a trial": seconds})
    return rows


def seconds_tables(chosen: Selection) -> list[Table]:
    """Return regrets at equal seconds, and the seconds in which the first sampler reaches the others' ends.

    Covers problems all of whose runs have seconds; empty where there are none.
    """
    chosen = replace(chosen, runs=[run for run in chosen.runs if run.spent])
    runs = chosen.cells
    shown = [name for name in chosen.names if any((title, name) in runs for title in chosen.titles)]
    titles = [title for title in chosen.titles if all((title, name) in runs for name in shown)]
    if not shown or not titles:
        return []
    first = shown[0]
    ends = {(t, n): float(np.median([run.spent[-1] for run in runs[t, n]])) for t in titles for n in shown}
    equal: list[Row] = []
    for title in titles:
        for share in SHARES:
            seconds = share * min(ends[title, name] for name in shown)
            regrets = {name: np.array([chosen.pick(run, seconds) for run in runs[title, name]]) for name in shown}
            where: Row = {"problem": title, "seconds": seconds}
            for name, losses in regrets.items():
                equal.append(_row(where, name, losses, None if name == first else regrets[first]))
    shares: list[Row] = []
    for name in shown:
        reached = [chosen.seconds_to(t, first, _median(chosen.regrets(t, name, chosen.setting.trials))) for t in titles]
        ratios = {t: _median(seconds) / ends[t, name] for seconds, t in zip(reached, titles, strict=True)}
        shares.append({"sampler": name, **{t: v if np.isfinite(v) else "not reached" for t, v in ratios.items()}})
    about = f"Median seconds until {first} has the final regret of another's median run, as a share of its seconds"
    return [Table("Regret at equal seconds of evaluations, median [quartiles]", equal), Table(about, shares)]


def _median(values: Floats) -> float:
    return float(np.median(values))


def quartiles(values: Floats) -> str:
    """Return the median with quartiles; none of them is interpolated where a value is infinite."""
    method: Literal["linear", "lower"] = "linear" if np.isfinite(values).all() else "lower"
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), method=method)
    return f"{middle:.3g} [{low:.2g}, {high:.2g}]"


def _verdict(regrets: Floats, others: Floats) -> str:
    if not len(regrets) or not len(others):
        return ""
    p = mann_whitney(regrets, others)
    sign = "better, " if np.median(regrets) < np.median(others) else "worse, "
    return f"{sign if p < SIGNIFICANT else ''}p={p:.2g}"


def figure(chosen: Selection) -> str:
    """Return a page of HTML with median regrets and bands of quartiles, one panel a problem; it needs plotly."""
    from plotly.subplots import make_subplots

    titles, setting = chosen.titles, chosen.setting
    rows = -(-len(titles) // PANELS)
    drawn = make_subplots(rows=rows, cols=min(len(titles), PANELS), subplot_titles=list(titles))
    colours = ("#1b6ca8", "#d1495b", "#6c757d", "#2e933c", "#8f5db7", "#c98b0b", "#0f8b8d")
    steps = np.arange(1, setting.trials + 1)
    shown: set[str] = set()
    for place, title in enumerate(titles):
        where = {"row": 1 + place // PANELS, "col": 1 + place % PANELS}
        for name, colour in zip(chosen.names, cycle(colours)):
            some = chosen.cells.get((title, name))
            if not some:
                continue
            regrets = np.array([run.picks for run in some]) - chosen.lowest[title]
            low, middle, high = np.quantile(np.maximum(regrets, 1e-6), (0.25, 0.5, 0.75), axis=0)
            style: dict[str, Any] = {"legendgroup": name, "mode": "lines", **where}
            drawn.add_scatter(x=steps, y=low, line={"width": 0}, showlegend=False, **style)
            drawn.add_scatter(
                x=steps, y=high, line={"width": 0}, fill="tonexty", fillcolor=colour, opacity=0.15, showlegend=False,
                **style,
            )  # fmt: skip
            drawn.add_scatter(
                x=steps, y=middle, line={"color": colour}, name=name, showlegend=name not in shown, **style
            )
            shown.add(name)
        drawn.update_yaxes(type="log", **where)
        drawn.update_xaxes(title_text="trials", **where)
    drawn.update_layout(template="plotly_white", height=max(450, 300 * rows), title="Regret: medians and quartiles")
    page: str = drawn.to_html(include_plotlyjs=True)
    return page
