"""The value of tuning: the best so far, against the solvers' defaults and against random search.

b    trials of the budget        c    random configurations        f    functions drawn from the surrogate
r    simulated runs of random search

Random search is known up to the last trial that was drawn at random. Beyond, it is simulated with the surrogate of all
trials. A simulated run begins as the study did, with the defaults and the random trials, and continues with random
configurations: the value of each is that of one function drawn from the surrogate, plus the noise of a trial. Noise
raises the best of such values as it raises the best so far of the study, so that the two compare. In simulated studies
the mean is somewhat above what random search reaches, because the surrogate is uncertain where nothing was tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from ranktune.dashboards.analysis.beliefs import observations
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Figure, Panel, Table, Trace
from ranktune.dashboards.records.choice import tuning_gained
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial, best_so_far
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.policy.policy import POLICY

if TYPE_CHECKING:
    from ranktune.tuner.samplers.belief import Belief

MAX_POINTS = 500
"""Points of the simulated curve in the figure."""
RANDOM_COLOUR = figures.ACCENT
MIN_TRIALS = 10
"""Trials with a value below which nothing is simulated: it would show the prior."""
MAX_OBSERVATIONS = 100
"""Observations that the surrogate is fitted to; half of them where there are several splits."""
MIN_RANDOM_TRIALS = 5
"""Trials drawn at random, of each split, below which nothing is said about random search."""
CONFIGURATIONS, FUNCTIONS, ORDERS = 1024, 128, 8
MAX_TRIALS_AHEAD = 2000
"""Simulated trials beyond the known ones."""
PATH_STEPS = 8
"""Values on the path of a simulated fit, from the cheap end to the requested value."""


@dataclass(frozen=True, eq=False)
class Expected:
    """The best of random search after k trials, k = 1, 2, ...: mean and ends of a 90 % interval, (b,) each.

    NaN before the last trial at which random search is known; at that trial all three are equal.
    """

    mean: Floats
    low: Floats
    high: Floats


def panel(data: StudyData) -> Panel:
    """Return the best so far, with the best default and random search."""
    title = f"Value of tuning: best validation {data.metric} by number of trials"
    curve = mean_of_splits([best_by_number(split) for split in data.splits])
    if not np.isfinite(curve).any():
        return Panel("worth", title, Table(("trials", "best so far"), []), None, "No trial has succeeded yet.")
    floors = [_best_default(split, len(data.solvers)) for split in data.splits]
    known_floors = [floor for floor in floors if floor is not None]
    default = float(np.mean(known_floors)) if len(known_floors) == len(floors) else None
    known = [random_search(split, len(data.solvers), data.study.sampler) for split in data.splits]
    if min(len(_known(best)) - 1 for best in known) < MIN_RANDOM_TRIALS:
        known = [np.full(0, np.nan) for _ in known]
    random = mean_of_splits(known)
    budget = max(data.study.n_trials if data.ends_by_count else 0, len(curve))
    beyond = None if data.brief else expected_random_search(data, known, budget)
    figure = best_so_far_figure(data, {"best so far": curve}, default, random, beyond)
    note = _note(data, curve, default, random, beyond)
    return Panel("worth", title, _table(curve, default, random, beyond), figure, note)


def _table(curve: Floats, default: float | None, random: Floats, beyond: Expected | None) -> Table:
    """Return the curves at the trials where the best so far changes, where random search is known, and at the end."""
    steps = {k for k in range(len(curve)) if k == len(curve) - 1 or k == 0 or curve[k] != curve[k - 1]}
    places = sorted(steps | set(_known(random)))
    columns = ["trials", "best so far", "best default", "random search"]
    if beyond is not None:
        places = sorted({*places, len(beyond.mean) - 1})
        columns += ["random search, expected", "expected low", "expected high"]
    expected = () if beyond is None else (beyond.mean, beyond.low, beyond.high)
    rows: list[list[Cell]] = [
        [k + 1, _at(curve, k), default, _at(random, k), *(_at(side, k) for side in expected)] for k in places
    ]
    return Table(tuple(columns), rows)


def best_by_number(split: SplitData) -> Floats:
    """Return the best value among the first k trials, for k = 1, 2, ... up to the first that is missing."""
    missing = next((k for k, trial in enumerate(split.trials) if trial.number != k), len(split.trials))
    return best_so_far(split.trials[:missing])


def _best_default(split: SplitData, solvers: int) -> float | None:
    """Return the best value of the solvers' defaults, which are the parameters requested of the first trials."""
    values = (trial.requested_value for trial in split.trials if trial.number < solvers)
    return max((value for value in values if value is not None), default=None)


def random_search(split: SplitData, solvers: int, sampler: str) -> Floats:
    """Return the mean of the best after k trials: the defaults, then k - solvers of the random trials, (k,).

    The random trials are those that the sampler drew without a model. The expected best of m of them, drawn without
    replacement, is exact; beyond them it is NaN. The estimate of a trial that was stopped early stands for its
    value. NaN up to the last default.
    """
    last = float("inf") if sampler == "random" else POLICY.search.startup
    drawn = np.array([t.value for t in split.trials if solvers <= t.number < last and t.value is not None])
    floor = _best_default(split, solvers)
    lifted = np.sort(drawn if floor is None else np.maximum(drawn, floor))
    expected = np.full(solvers + len(lifted), np.nan)
    if floor is not None and solvers:
        expected[solvers - 1] = floor
    for m in range(1, len(lifted) + 1):
        expected[solvers + m - 1] = expected_best(lifted, m)
    return expected


def expected_best(ascending: Floats, count: int) -> float:
    """Return the mean of the highest of count values drawn without replacement from ascending ones, count <= n."""
    n = len(ascending)
    total = comb(n, count)
    weights = [comb(i, count - 1) / total for i in range(count - 1, n)]
    return float(np.dot(weights, ascending[count - 1 :]))


def mean_of_splits(curves: Sequence[Floats]) -> Floats:
    """Return the mean over the splits up to the end of the shortest curve, (k,); empty where one is empty."""
    length = min((len(curve) for curve in curves), default=0)
    if length == 0:
        return np.full(0, np.nan)
    return np.asarray(np.mean([curve[:length] for curve in curves], axis=0), dtype=np.float64)


def _known(curve: Floats) -> list[int]:
    return [int(k) for k in np.flatnonzero(np.isfinite(curve))]


def _at(curve: Floats, k: int) -> float | None:
    return float(curve[k]) if k < len(curve) and np.isfinite(curve[k]) else None


def best_so_far_figure(
    data: StudyData,
    curves: Mapping[str, Floats],
    default: float | None,
    random: Floats,
    beyond: Expected | None = None,
) -> Figure:
    """Return best-so-far curves as steps, with the best default and random search, known and simulated."""
    styles = zip(figures.COLOURS, ("solid", "dash", "dot"), strict=False)
    traces = [_step_trace(curve, name, *style) for (name, curve), style in zip(curves.items(), styles, strict=False)]
    longest = max(*(len(curve) for curve in curves.values()), 0 if beyond is None else len(beyond.mean))
    if default is not None:
        line = {"color": figures.GREY, "dash": "dot", "width": 1.5}
        traces.append(
            figures.scatter("best default", [1, max(longest, 2)], [default, default], mode="lines", line=line)
        )
    known = _known(random)
    if len(known) > 1:
        line = {"color": RANDOM_COLOUR, "dash": "dash", "width": 1.5}
        x, marker = [k + 1 for k in known], {"symbol": "x", "size": 6}
        trace = figures.scatter("random search", x, random[known], mode="lines+markers", line=line, marker=marker)
        traces.append(trace)
    if beyond is not None:
        traces = [*_expected_traces(beyond), *traces]  # the band lies behind the lines
    y_axis = figures.axis(f"best validation {data.metric}")
    return figures.figure(traces, figures.axis("trials", rangemode="tozero"), y_axis)


def _expected_traces(beyond: Expected) -> list[Trace]:
    """Return the mean and the band of simulated random search."""
    known = _known(beyond.mean)
    known = [known[i] for i in figures.evenly(len(known), most=MAX_POINTS)]
    x = [k + 1 for k in known]
    line = {"color": RANDOM_COLOUR, "dash": "2px,3px", "width": 1.5}
    last = {"legendrank": 1001}  # last in the legend, although behind the others in the figure
    return [
        figures.band("its 90 % band", x, beyond.low[known], beyond.high[known], RANDOM_COLOUR) | last,
        figures.scatter("random search, expected", x, beyond.mean[known], mode="lines", line=line) | last,
    ]


def _step_trace(curve: Floats, name: str, colour: str, dash: str) -> Trace:
    """Return a curve that changes in steps, by the places where it changes."""
    known = _known(curve)
    kept = [k for k in known if k in (known[0], known[-1]) or curve[k] != curve[k - 1]] if known else []
    return figures.steps(name, [k + 1 for k in kept], curve[kept], colour, dash)


def _note(data: StudyData, curve: Floats, default: float | None, random: Floats, beyond: Expected | None) -> str:
    parts = [tuning_gained(data.result)] if data.result is not None else []
    if not any(parts) and default is not None:
        gain = float(np.nanmax(curve)) - default
        parts.append(
            f"The best so far is {gain:.4f} above the best of the solvers' defaults on validation queries. The best of "
            "many values is too high: test queries show what tuning gained."
        )
    drawn = len(_known(random)) - 1
    if drawn > 0:
        parts.append(
            f"The curve of random search is the mean over random orders of the {drawn} trials that were drawn "
            "at random."
        )
    if beyond is not None:
        parts.append(_expected_note(curve, beyond))
    if data.brief:
        parts.append(f"`ranktune report {data.name}` adds what random search is expected to reach beyond these trials.")
    parts.append('For random search with the full budget, run the study with sampler "random" and compare the two.')
    if len(data.splits) > 1:
        parts.append(f"Values are means over {len(data.splits)} folds.")
    return " ".join(filter(None, parts))


def _expected_note(curve: Floats, beyond: Expected) -> str:
    """Return what random search is expected to reach, and what tuning gained over it."""
    text = (
        "Beyond these trials random search was not run: the dotted line is the mean of runs that the surrogate model "
        "simulates and the band holds 90 % of them. Both tend to be too high where few configurations were tried. "
    )
    end, now = len(beyond.mean) - 1, min(len(curve), len(beyond.mean)) - 1
    text += f"After {end + 1} trials random search is expected to reach {_with_range(beyond, end)}"
    if not np.isfinite(beyond.mean[now]):  # random search is known further than the study has come
        return f"{text}."
    at_now = "" if now == end else f", after the {now + 1} trials so far {_with_range(beyond, now)}"
    gain = float(curve[now] - beyond.mean[now])
    inside = ", within that range" if beyond.low[now] <= curve[now] <= beyond.high[now] else ""
    gained = f"gained {gain:.4f} over" if gain >= 0.0 else f"is {-gain:.4f} behind"
    return f"{text}{at_now}: tuning {gained} it{inside}."


def _with_range(beyond: Expected, k: int) -> str:
    return f"{beyond.mean[k]:.4f} ({beyond.low[k]:.4f} to {beyond.high[k]:.4f})"


def expected_random_search(data: StudyData, known: Sequence[Floats], budget: int) -> Expected | None:
    """Return what random search is expected to reach after up to budget trials, the mean over the splits.

    known has random_search of each split. None where random search was run, or where too few trials have a value.
    """
    ends = [int(np.flatnonzero(np.isfinite(best))[-1]) if np.isfinite(best).any() else -1 for best in known]
    if data.study.sampler == "random" or not ends or min(ends) < 0 or budget <= min(ends) + 1:
        return None
    budget = min(budget, min(ends) + 1 + MAX_TRIALS_AHEAD)
    most = MAX_OBSERVATIONS if len(known) == 1 else MAX_OBSERVATIONS // 2
    total = np.zeros((FUNCTIONS * ORDERS, budget))
    for k, (split, best, end) in enumerate(zip(data.splits, known, ends, strict=True)):
        generator = np.random.default_rng([data.study.seed, k])
        ahead = _simulated(data, split, float(best[end]), budget - end - 1, most, generator)
        if ahead is None:
            return None
        total[:, : end + 1] += best[: min(end + 1, budget)]
        total[:, end + 1 :] += ahead
    total /= len(known)
    total[:, : min(ends)] = np.nan
    begin = total[0, min(ends)]  # equal in all runs; subtracted, so that the mean is exactly that value
    low, high = np.quantile(total, (0.05, 0.95), axis=0)
    return Expected(begin + (total - begin).mean(axis=0), low, high)


def _simulated(
    data: StudyData, split: SplitData, reached: float, count: int, most: int, generator: np.random.Generator
) -> Floats | None:
    """Return the best after each of count further random trials, (r, count), None where no surrogate can be fitted."""
    from ranktune.tuner.samplers.belief import fit_belief  # loads the Gaussian process

    trials = [trial for trial in split.trials if trial.solver in data.solvers]
    if sum(trial.value is not None for trial in trials) < MIN_TRIALS:
        return None
    if count <= 0:
        return np.zeros((FUNCTIONS * ORDERS, 0))
    surrogate = fit_belief(data.study.union_space(), [observation for observation, _ in observations(trials)], most)
    if surrogate is None or not surrogate.spread > 1e-12 * max(1.0, abs(surrogate.centre)):
        return None
    values = function_values(surrogate, path_directions(trials), max(CONFIGURATIONS, count), generator)
    runs = best_in_random_orders(values, count, surrogate.noise_sd, generator)
    return np.maximum(runs, reached) if np.isfinite(runs).all() else None


def path_directions(trials: Sequence[Trial]) -> dict[str, bool]:
    """Return whether the path ascends, by flat name of the parameter along which most trials of a solver have one."""
    ascends = {}
    for solver in {trial.solver for trial in trials}:
        valued = [trial for trial in trials if trial.solver == solver and trial.value is not None]
        paths = [trial for trial in valued if len(trial.path) > 1]
        if 2 * len(paths) > len(valued):
            last = paths[-1]
            ascends[f"{solver}.{last.path_parameter}"] = last.path[-1][0] > last.path[0][0]
    return ascends


def function_values(
    surrogate: Belief, directions: Mapping[str, bool], count: int, generator: np.random.Generator
) -> Floats:
    """Return the values of functions drawn from the surrogate at random configurations, without noise, (c, f).

    Solvers and the values of their parameters are drawn uniformly. Where one fit gives the models of a path, up to the
    value that was drawn, the best of PATH_STEPS values on it counts, as in the study.
    """
    encoding = surrogate.encoding
    rows = encoding.masked(encoding.from_unit(generator.random((count, len(encoding.axes)))))
    places = {surrogate.axis(name): up for name, up in directions.items() if name in surrogate.space.distributions}
    follows = np.full(count, -1)
    for j in places:
        follows[~np.isnan(rows[:, j])] = j
    owner = np.repeat(np.arange(count), np.where(follows >= 0, PATH_STEPS, 1))
    first = np.searchsorted(owner, np.arange(count))
    rows, share = rows[owner], (np.arange(len(owner)) - first[owner] + 1) / PATH_STEPS
    for j, ascends in places.items():
        followers = follows[owner] == j
        drawn = rows[followers, j]
        rows[followers, j] = drawn * share[followers] if ascends else 1.0 - (1.0 - drawn) * share[followers]
    values = surrogate.draws(rows, FUNCTIONS, generator, levelled=True).T
    return np.asarray(np.maximum.reduceat(values, first, axis=0))


def best_in_random_orders(values: Floats, count: int, noise: float, generator: np.random.Generator) -> Floats:
    """Return the best of the first k of count configurations, k = 1, 2, ..., for each function and order, (r, count).

    values (c, f); noise is the standard deviation of a trial.
    """
    runs = []
    for _ in range(ORDERS):
        order, errors = generator.permutation(len(values)), generator.standard_normal(values.shape)
        runs.append(np.maximum.accumulate(values[order[:count]] + noise * errors[:count], axis=0).T)
    return np.concatenate(runs)
