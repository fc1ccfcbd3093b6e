"""Was tuning worth it: the best so far, against the solvers' defaults and against random search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from ranktune.dashboards.panels import Panel, Table, look, plain
from ranktune.dashboards.study_data import SplitData, StudyData, best_so_far
from ranktune.solvers.arrays import Floats

Figure = dict[str, Any]

STARTUP = 10
"""Until so many trials are complete no sampler looks at results: those after the defaults are drawn blindly."""


def panel(data: StudyData) -> Panel:
    """Return the best so far, with the best default and expected random search to measure it by."""
    title = f"Was tuning worth it? Best validation {data.metric} after so many trials"
    curve = mean_of_splits([best_by_number(split) for split in data.splits])
    if not np.isfinite(curve).any():
        return Panel("worth", title, Table(("trials", "best so far"), []), None, "No trial has succeeded yet.")
    floors = [_defaults(split, len(data.solvers)) for split in data.splits]
    known_floors = [floor for floor in floors if floor is not None]
    defaults = float(np.mean(known_floors)) if known_floors and len(known_floors) == len(floors) else None
    random = mean_of_splits([random_search(split, len(data.solvers), data.study.sampler) for split in data.splits])
    steps = [k for k in range(len(curve)) if k == len(curve) - 1 or k == 0 or curve[k] != curve[k - 1]]
    rows = [[k + 1, _at(curve, k), defaults, _at(random, k)] for k in sorted({*steps, *_known(random)})]
    columns = ("trials", "best so far", "best default", "random search")
    figure = worth_figure(data, {"best so far": curve}, defaults, random)
    return Panel("worth", title, Table(columns, rows), figure, _worth_note(data, curve, defaults, random))


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


def worth_figure(data: StudyData, curves: Mapping[str, Floats], defaults: float | None, random: Floats) -> Figure:
    """Return best-so-far curves as steps, with the best default and the expected random search below them."""
    traces = [
        step_trace(curve, plain(name), style["color"], dash)
        for (name, curve), style, dash in zip(
            curves.items(), look(["a", "b", "c"]).values(), ("solid", "dash", "dot"), strict=False
        )
    ]
    longest = max(len(curve) for curve in curves.values())
    if defaults is not None:
        line = {"color": "#7f7f7f", "dash": "dot", "width": 1.5}
        y = [defaults, defaults]
        x = [1, max(longest, 2)]
        traces.append({"type": "scatter", "mode": "lines", "name": "best default", "x": x, "y": y, "line": line})
    known = _known(random)
    if len(known) > 1:
        traces.append({
            "type": "scatter", "mode": "lines+markers", "name": "random search", "x": [k + 1 for k in known],
            "y": [float(random[k]) for k in known], "line": {"color": "#d55e00", "dash": "dash", "width": 1.5},
            "marker": {"symbol": "x", "size": 6},
        })  # fmt: skip
    return {
        "data": traces,
        "layout": {
            "xaxis": {"title": {"text": "trials"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": f"best validation {plain(data.metric)}"}},
        },
    }


def step_trace(curve: Floats, name: str, colour: str, dash: str = "solid") -> Figure:
    """Return a curve that changes in steps, by the places where it changes."""
    known = _known(curve)
    kept = [k for k in known if k in (known[0], known[-1]) or curve[k] != curve[k - 1]] if known else []
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": [k + 1 for k in kept],
        "y": [float(curve[k]) for k in kept], "line": {"shape": "hv", "color": colour, "width": 2.5, "dash": dash},
    }  # fmt: skip


def _worth_note(data: StudyData, curve: Floats, defaults: float | None, random: Floats) -> str:
    parts = []
    if defaults is not None:
        gain = float(np.nanmax(curve)) - defaults
        parts.append(f"Tuning gained {gain:.4f} over the best of the solvers' defaults on validation queries.")
    drawn = len(_known(random)) - 1
    if drawn > 0:
        parts.append(
            f"Random search is what a random order of the {drawn} trials that were drawn without looking at results "
            "reaches on average; the line ends where they do."
        )
    parts.append("To see random search at the full budget, run the study with sampler random and compare the two.")
    if len(data.splits) > 1:
        parts.append(f"Means over {len(data.splits)} folds.")
    return " ".join(parts)
