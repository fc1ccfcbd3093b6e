"""SOLAR: online MAP over the queries seen (Figure 2), and time against retraining a batch method (Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import make
from ranktune.studies.papers.figures.work import (
    Material,
    PrintedFigure,
    cpu_seconds,
    mean_and_band,
    parts_of,
    shown,
    thinned,
)
from ranktune.studies.papers.protocols import PROGRESSIVE
from ranktune.studies.papers.published import PublishedSystem

SIZES = 12
"""Numbers of queries at which Figure 3 is measured."""
FASTER = 100.0
"""What the paper says of SOLAR's speed."""

SOLAR = ("SOLAR-I", "SOLAR-II")


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 2 and 3."""
    yield _online(material)
    yield _times(material)


def _online(material: Material) -> PrintedFigure:
    figure = material.figure("Figure 2")
    table = material.table("Table 2")
    for name in material.names:
        parts = {entry.name: parts_of(table, entry.name, name) for entry in table.table.entries}
        curves = {
            system: mean_and_band([part.curves[PROGRESSIVE] for part in results])
            for system, results in parts.items()
            if results
        }
        lines = {}
        for system, (mean, low, high) in curves.items():
            places = thinned(len(mean))
            lines[system] = np.array(places) + 1, mean[places], low[places], high[places]
        axis = figure.declared.axes.get(name) or _settled([mean for mean, _, _ in curves.values()])
        labels = "queries seen", "cumulative MAP, mean over orders"
        figure.draw(f"{name}: online MAP", *labels, lines, style="line", y_range=axis)
        ends = {
            system: np.array([part.curves[PROGRESSIVE][-1] for part in results])
            for system, results in parts.items()
            if results
        }
        _say_where_curves_end(figure, name, ends)
    return figure


def _settled(means: Sequence[Floats]) -> tuple[float, float]:
    """Return a range for the curves without their first fifth, in which they are mostly noise."""
    values = np.concatenate([mean[len(mean) // 5 :] for mean in means])
    room = 0.1 * float(np.ptp(values)) + 1e-3
    return float(values.min()) - room, float(values.max()) + room


def _say_where_curves_end(figure: PrintedFigure, name: str, ends: Mapping[str, Floats]) -> None:
    """Say what is claimed of the ends of the curves, by random order."""
    if not set(SOLAR) < set(ends):
        return
    first, second = (ends[system] for system in SOLAR)
    rivals = max((values for system, values in ends.items() if system not in SOLAR), key=np.mean)
    ahead, more = min(first, second, key=np.mean) - rivals, second - first
    figure.say("above", ahead.mean() > 0.0, f"At the end: {shown(ends)}.", contrary=ahead, name=name)
    measured = f"{second.mean():.4f} against {first.mean():.4f}."
    figure.say("second", more.mean() > 0.0, measured, contrary=more, name=name)
    if name in figure.declared.axes:
        low, high = figure.declared.axes[name]
        inside = all(low <= values.mean() <= high for system, values in ends.items() if system != "Prank(Pointwise)")
        figure.say("axis", inside, f"{low:g} to {high:g}; {shown(ends)}.", contrary=True, name=name)


def _times(material: Material) -> PrintedFigure:
    figure = material.figure("Figure 3")
    dataset = next((dataset for dataset in material.datasets if dataset.name == "MQ2008"), None)
    if dataset is None:
        return PrintedFigure(replace(figure.declared, missing="MQ2008 was not given."))
    queries = dataset.queries
    order = np.random.default_rng(0).permutation(queries.n_queries)
    sizes = np.unique(np.linspace(queries.n_queries / SIZES, queries.n_queries, SIZES).astype(int))
    parts = [queries.select(order[:size]) for size in sizes]
    seconds = _measured(material, (*SOLAR, "RankSVM"), parts)
    # a batch method is fitted again at every query: the area below the cost of one fit
    sides = np.diff(np.concatenate([[0], sizes]))
    before = np.concatenate([[0.0], seconds["RankSVM"][:-1]])
    seconds["RankSVM"] = retrained = np.cumsum(sides * (seconds["RankSVM"] + before) / 2)
    curves = {name: (sizes, values) for name, values in seconds.items()}
    labels = "queries received", "CPU seconds so far"
    figure.draw(f"{dataset.name}: training time", *labels, curves, log_y=True)
    _draw_by_features(figure, material, queries.select(np.arange(min(200, queries.n_queries))))
    for name in SOLAR:
        ours, theirs = seconds[name][-1], retrained[-1]
        measured = (
            f"{theirs / ours:,.0f} times after {sizes[-1]} queries: {ours:.3f} s against {theirs:.1f} s of RankSVM, "
            f"which is measured at {len(sizes)} sizes and summed over all between."
        )
        figure.say("faster", theirs / ours >= FASTER, measured, contrary=True, system=name)
    return figure


def _draw_by_features(figure: PrintedFigure, material: Material, queries: Queries) -> None:
    """Draw ours in addition: the time of one pass over the number of features, repeated where there are too few."""
    counts = (10, 20, 46, 92, 184)
    columns = np.tile(np.arange(queries.n_features), 1 + max(counts) // queries.n_features)
    parts = [queries.with_features(np.ascontiguousarray(queries.features[:, columns[:d]])) for d in counts]
    seconds = _measured(material, (*SOLAR, "SOLAR-II, diagonal"), parts)
    title = f"MQ2008, {queries.n_queries} queries: time over features, not printed"
    curves = {name: (counts, values) for name, values in seconds.items()}
    figure.draw(title, "features", "CPU seconds of a pass", curves, log_x=True, log_y=True)


def _measured(material: Material, names: Sequence[str], parts: Sequence[Queries]) -> dict[str, Floats]:
    """Return by system the CPU seconds of fitting it on each part, (n_parts,)."""
    seconds = material.all_of(seconds_of_fits, [(material.paper.systems[name], parts) for name in names])
    return dict(zip(names, map(np.array, seconds), strict=True))


def seconds_of_fits(system: PublishedSystem, parts: Sequence[Queries]) -> list[float]:
    """Return the CPU seconds of fitting a system on each part."""
    make(system.solver, system.parameters, 0).fit(parts[0])  # compiles
    return [cpu_seconds(partial(make(system.solver, system.parameters, 0).fit, part)) for part in parts]
