"""Was tuning worth it: the best so far, against the solvers' defaults and against random search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from ranktune.dashboards.analysis.random_search import Expected, expected
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Panel, Table, look, plain, thinned
from ranktune.dashboards.records.study import SplitData, StudyData, best_so_far
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.samplers.registry import STARTUP

Figure = dict[str, Any]

DRAWN = 500
"""Points of the line of what is expected at most."""
RANDOM = "#d55e00"
"""The colour of random search."""


def panel(data: StudyData) -> Panel:
    """Return the best so far, with the best default and expected random search to measure it by."""
    title = f"Was tuning worth it? Best validation {data.metric} after so many trials"
    curve = mean_of_splits([best_by_number(split) for split in data.splits])
    if not np.isfinite(curve).any():
        return Panel("worth", title, Table(("trials", "best so far"), []), None, "No trial has succeeded yet.")
    floors = [_defaults(split, len(data.solvers)) for split in data.splits]
    known_floors = [floor for floor in floors if floor is not None]
    defaults = float(np.mean(known_floors)) if known_floors and len(known_floors) == len(floors) else None
    known = [random_search(split, len(data.solvers), data.study.sampler) for split in data.splits]
    random = mean_of_splits(known)
    beyond = expected(data, known, max(data.study.n_trials if data.by_number else 0, len(curve)))
    figure = worth_figure(data, {"best so far": curve}, defaults, random, beyond)
    table = _table(curve, defaults, random, beyond)
    return Panel("worth", title, table, figure, _worth_note(data, curve, defaults, random, beyond))


def _table(curve: Floats, defaults: float | None, random: Floats, beyond: Expected | None) -> Table:
    """Return the curves at the trials where the best so far changes, where random search is known, and at the end."""
    steps = {k for k in range(len(curve)) if k == len(curve) - 1 or k == 0 or curve[k] != curve[k - 1]}
    columns = ["trials", "best so far", "best default", "random search"]
    rows = [[k + 1, _at(curve, k), defaults, _at(random, k)] for k in sorted(steps | set(_known(random)))]
    if beyond is not None:
        if rows[-1][0] != len(beyond.mean):
            rows.append([len(beyond.mean), None, defaults, None])
        columns += ["random search, expected", "expected low", "expected high"]
        sides = (beyond.mean, beyond.low, beyond.high)
        rows = [[*row, *(_at(side, int(row[0] or 0) - 1) for side in sides)] for row in rows]
    return Table(tuple(columns), rows)


def best_by_number(split: SplitData) -> Floats:
    """Return the best value among the first k trials, for k = 1, 2, ... up to the first that is missing."""
    missing = next((k for k, trial in enumerate(split.trials) if trial.number != k), len(split.trials))
    return best_so_far(split.trials[:missing])


def _defaults(split: SplitData, solvers: int) -> float | None:
    """Return the best value of the solvers' defaults, which are what the first trials are asked for."""
    values = (trial.asked_value for trial in split.trials if trial.number < solvers)
    return max((value for value in values if value is not None), default=None)


def random_search(split: SplitData, solvers: int, sampler: str) -> Floats:
    """Return what the defaults and then k - solvers blind draws reach on average after k trials, (k,).

    Blind are the trials that were drawn without looking at results. Of n of them the expected best of m drawn without
    replacement is known for m <= n, and nothing beyond is claimed. One that was stopped early was for sure behind the
    best: its estimate stands for it. NaN up to the last default.
    """
    blind = [t.value for t in split.trials if solvers <= t.number and (sampler == "random" or t.number < STARTUP)]
    drawn = np.array([value for value in blind if value is not None])
    floor = _defaults(split, solvers)
    lifted = np.sort(drawn if floor is None else np.maximum(drawn, floor))
    found = np.full(solvers + len(lifted), np.nan)
    if floor is not None and solvers:
        found[solvers - 1] = floor
    for m in range(1, len(lifted) + 1):
        found[solvers + m - 1] = expected_best(lifted, m)
    return found


def expected_best(ascending: Floats, count: int) -> float:
    """Return the mean of the highest of count values drawn without replacement from ascending ones, count <= n."""
    n = len(ascending)
    total = comb(n, count)
    weights = [comb(i, count - 1) / total for i in range(count - 1, n)]
    return float(np.dot(weights, ascending[count - 1 :]))


def mean_of_splits(curves: Sequence[Floats]) -> Floats:
    """Return the mean over the splits as far as all of them go, (k,); empty where one has nothing."""
    length = min((len(curve) for curve in curves), default=0)
    if length == 0:
        return np.full(0, np.nan)
    return np.asarray(np.mean([curve[:length] for curve in curves], axis=0), dtype=np.float64)


def _known(curve: Floats) -> list[int]:
    return [int(k) for k in np.flatnonzero(np.isfinite(curve))]


def _at(curve: Floats, k: int) -> float | None:
    return float(curve[k]) if k < len(curve) and np.isfinite(curve[k]) else None


def worth_figure(
    data: StudyData,
    curves: Mapping[str, Floats],
    defaults: float | None,
    random: Floats,
    beyond: Expected | None = None,
) -> Figure:
    """Return best-so-far curves as steps, with the best default and random search, run and expected, below them."""
    traces = [
        step_trace(curve, plain(name), style["color"], dash)
        for (name, curve), style, dash in zip(
            curves.items(), look(["a", "b", "c"]).values(), ("solid", "dash", "dot"), strict=False
        )
    ]
    longest = max(*(len(curve) for curve in curves.values()), 0 if beyond is None else len(beyond.mean))
    if defaults is not None:
        line = {"color": "#7f7f7f", "dash": "dot", "width": 1.5}
        y = [defaults, defaults]
        x = [1, max(longest, 2)]
        traces.append({"type": "scatter", "mode": "lines", "name": "best default", "x": x, "y": y, "line": line})
    known = _known(random)
    if len(known) > 1:
        traces.append({
            "type": "scatter", "mode": "lines+markers", "name": "random search", "x": [k + 1 for k in known],
            "y": [float(random[k]) for k in known], "line": {"color": RANDOM, "dash": "dash", "width": 1.5},
            "marker": {"symbol": "x", "size": 6},
        })  # fmt: skip
    if beyond is not None:
        traces = [*_expected_traces(beyond), *traces]  # the band lies behind all else
    return {
        "data": traces,
        "layout": {
            "xaxis": {"title": {"text": "trials"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": f"best validation {plain(data.metric)}"}},
        },
    }


def _expected_traces(beyond: Expected) -> list[Figure]:
    """Return the band and the mean of what random search is expected to reach."""
    known = _known(beyond.mean)
    known = [known[i] for i in thinned(len(known), most=DRAWN)]
    x = [k + 1 for k in known]
    line = {"color": RANDOM, "dash": "2px,3px", "width": 1.5}
    last = {"legendrank": 1001}  # after all others in the legend, although behind them in the figure
    return [
        figures.band("its 90 % band", x, beyond.low[known], beyond.high[known], RANDOM) | last,
        figures.scatter("random search, expected", x, beyond.mean[known], mode="lines", line=line) | last,
    ]


def step_trace(curve: Floats, name: str, colour: str, dash: str = "solid") -> Figure:
    """Return a curve that changes in steps, by the places where it changes."""
    known = _known(curve)
    kept = [k for k in known if k in (known[0], known[-1]) or curve[k] != curve[k - 1]] if known else []
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": [k + 1 for k in kept],
        "y": [float(curve[k]) for k in kept], "line": {"shape": "hv", "color": colour, "width": 2.5, "dash": dash},
    }  # fmt: skip


def _worth_note(data: StudyData, curve: Floats, defaults: float | None, random: Floats, beyond: Expected | None) -> str:
    parts = []
    if defaults is not None:
        gain = float(np.nanmax(curve)) - defaults
        parts.append(f"Tuning gained {gain:.4f} over the best of the solvers' defaults on validation queries.")
    drawn = len(_known(random)) - 1
    if drawn > 0:
        parts.append(
            f"Random search is what a random order of the {drawn} trial{'s' if drawn > 1 else ''} drawn without "
            f"looking at results reaches on average; {'its line' if beyond is not None else 'the line'} ends there."
        )
    if beyond is not None:
        parts.append(_predicted(curve, beyond))
    parts.append("To see random search at the full budget, run the study with sampler random and compare the two.")
    if len(data.splits) > 1:
        parts.append(f"Means over {len(data.splits)} folds.")
    return " ".join(parts)


def _predicted(curve: Floats, beyond: Expected) -> str:
    """Return what the surrogate predicts of random search at the full budget, and what tuning gained over it."""
    said = (
        "From there on random search was not run: the dotted line is what the model that the optimiser has of the "
        "trials predicts that it would reach on average, the band holds 90 % of its runs, and where little was tried "
        "both rather promise too much"
    )
    end, now = len(beyond.mean) - 1, min(len(curve), len(beyond.mean)) - 1
    told = f"{said}. After {end + 1} trials that is {_with_range(beyond, end)}"
    if not np.isfinite(beyond.mean[now]):  # no further than random search is known
        return f"{told}."
    at_now = "" if now == end else f"; after the {now + 1} of now it is {_with_range(beyond, now)}"
    gain = float(curve[now] - beyond.mean[now])
    inside = ", within that range" if beyond.low[now] <= curve[now] <= beyond.high[now] else ""
    gained = f"gained {gain:.4f} over" if gain >= 0.0 else f"is {-gain:.4f} behind"
    return f"{told}{at_now}: tuning {gained} it{inside}."


def _with_range(beyond: Expected, k: int) -> str:
    return f"{beyond.mean[k]:.4f} ({beyond.low[k]:.4f} to {beyond.high[k]:.4f})"
