"""SOLAR: online MAP over the queries seen (Figure 2), and time against retraining a batch method (Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import make
from ranktune.studies.papers.figures.charts import PrintedFigure
from ranktune.studies.papers.figures.work import Material, cpu_seconds, mean_and_band, parts_of, shown, thinned
from ranktune.studies.papers.protocols import PROGRESSIVE

PANELS = {
    "OHSUMED": (0.30, 0.46), "MQ2007": (0.40, 0.54), "HP2003": (0.0, 0.8), "HP2004": (0.0, 0.7), "NP2003": (0.0, 0.7),
    "NP2004": (0.0, 0.8), "TD2003": (0.0, 0.25), "TD2004": (0.02, 0.2),
}  # fmt: skip
"""The data sets of Figure 2, and the ends of the printed axes."""
SIZES = 12
"""Numbers of queries at which Figure 3 is measured."""
FASTER = 100.0
"""What the paper says of SOLAR's speed."""

System: TypeAlias = tuple[str, Mapping[str, Value]]
"""A solver and its parameters."""
ONLINE: Mapping[str, System] = {
    "SOLAR-I": ("SOLAR1", {"C": 1e-5, "scaling": "none", "pairs_per_query": 1_000_000_000}),
    "SOLAR-II": ("SOLAR2", {"gamma": 1e4, "covariance": "full", "scaling": "none", "pairs_per_query": 1_000_000_000}),
}
BATCH: System = ("RankSVM", {"C": 1.0, "scaling": "none", "average": "pairs"})
DIAGONAL: System = ("SOLAR2", {**ONLINE["SOLAR-II"][1], "covariance": "diagonal"})


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 2 and 3."""
    yield _online(material)
    yield _times(material)


def _online(material: Material) -> PrintedFigure:
    figure = PrintedFigure(
        "Figure 2",
        "Online cumulative MAP over the queries",
        "curves of five systems on eight data sets, MQ2008 not among them; of the values the text that we have keeps "
        f"the axes alone: {', '.join(f'{name} {low:g} to {high:g}' for name, (low, high) in PANELS.items())}.",
    )
    table = material.table("Table 2")
    for name in material.names:
        parts = {entry.name: parts_of(table, entry.name, name) for entry in table.table.entries}
        curves = {
            system: mean_and_band([part.curves[PROGRESSIVE] for part in own]) for system, own in parts.items() if own
        }
        lines = {}
        for system, (mean, low, high) in curves.items():
            kept = thinned(len(mean))
            lines[system] = np.array(kept) + 1, mean[kept], low[kept], high[kept]
        axis = PANELS.get(name) or _settled([mean for mean, _, _ in curves.values()])
        labels = "queries seen", "cumulative MAP, mean over orders"
        figure.draw(f"{name}: online MAP", *labels, lines, style="line", y_range=axis)
        _say_where_curves_end(figure, name, {system: float(mean[-1]) for system, (mean, _, _) in curves.items()})
    return figure


def _settled(means: Sequence[Floats]) -> tuple[float, float]:
    """Return a range for the curves without their first fifth, in which they are mostly noise."""
    values = np.concatenate([mean[len(mean) // 5 :] for mean in means])
    room = 0.1 * float(np.ptp(values)) + 1e-3
    return float(values.min()) - room, float(values.max()) + room


def _say_where_curves_end(figure: PrintedFigure, name: str, ends: Mapping[str, float]) -> None:
    if not set(ONLINE) < set(ends):
        return
    first, second = (ends[system] for system in ONLINE)
    rivals = max(value for system, value in ends.items() if system not in ONLINE)
    claim = f"both SOLAR end above Prank and Com-P ({name})"
    figure.say(claim, min(first, second) > rivals, f"At the end: {shown(ends)}.")
    figure.say(f"SOLAR-II ends above SOLAR-I ({name})", second > first, f"{second:.4f} against {first:.4f}.")
    if name in PANELS:
        low, high = PANELS[name]
        inside = all(low <= value <= high for value in ends.values() if value != ends.get("Prank(Pointwise)"))
        figure.say(f"the ends lie on the printed axis ({name})", inside, f"{low:g} to {high:g}; {shown(ends)}.")


def _times(material: Material) -> PrintedFigure:
    figure = PrintedFigure(
        "Figure 3",
        "Scalability on MQ2008",
        "seconds on a logarithmic axis from 0.1 to 10,000 over 0 to 800 queries; the values cannot be read from the "
        "text that we have. In words: SOLAR is 100+ times faster than RankSVM retrained at every query.",
    )
    dataset = next((one for one in material.datasets if one.name == "MQ2008"), None)
    if dataset is None:
        figure.missing = "MQ2008 was not given."
        return figure
    queries = dataset.queries
    order = np.random.default_rng(0).permutation(queries.n_queries)
    sizes = np.unique(np.linspace(queries.n_queries / SIZES, queries.n_queries, SIZES).astype(int))
    parts = [queries.select(order[:size]) for size in sizes]
    seconds = _measured(material, {**ONLINE, "RankSVM": BATCH}, parts)
    # a batch method is fitted again at every query: the area below the cost of one fit
    sides = np.diff(np.concatenate([[0], sizes]))
    before = np.concatenate([[0.0], seconds["RankSVM"][:-1]])
    seconds["RankSVM"] = retrained = np.cumsum(sides * (seconds["RankSVM"] + before) / 2)
    curves = {name: (sizes, values) for name, values in seconds.items()}
    labels = "queries received", "CPU seconds so far"
    figure.draw(f"{dataset.name}: training time", *labels, curves, log_y=True)
    _draw_by_features(figure, material, queries.select(np.arange(min(200, queries.n_queries))))
    for name in ONLINE:
        ours, theirs = seconds[name][-1], retrained[-1]
        figure.say(
            f"{name} is 100+ times faster than RankSVM retrained at every query",
            theirs / ours >= FASTER,
            f"{theirs / ours:,.0f} times after {sizes[-1]} queries: {ours:.3f} s against {theirs:.1f} s of RankSVM, "
            f"which is measured at {len(sizes)} sizes and summed over all between.",
            "RankSVM itself is faster here than the primal one of 2010 that the paper retrains, at 10 ms a fit.",
        )
    return figure


def _draw_by_features(figure: PrintedFigure, material: Material, queries: Queries) -> None:
    """Draw ours in addition: the time of one pass over the number of features, repeated where there are too few."""
    counts = (10, 20, 46, 92, 184)
    columns = np.tile(np.arange(queries.n_features), 1 + max(counts) // queries.n_features)
    parts = [queries.with_features(np.ascontiguousarray(queries.features[:, columns[:d]])) for d in counts]
    seconds = _measured(material, {**ONLINE, "SOLAR-II, diagonal": DIAGONAL}, parts)
    title = f"MQ2008, {queries.n_queries} queries: time over features, not printed"
    curves = {name: (counts, values) for name, values in seconds.items()}
    figure.draw(title, "features", "CPU seconds of a pass", curves, log_x=True, log_y=True)


def _measured(material: Material, systems: Mapping[str, System], parts: Sequence[Queries]) -> dict[str, Floats]:
    """Return by system the CPU seconds of fitting it on each part, (n_parts,)."""
    seconds = material.all_of(seconds_of_fits, [(*system, parts) for system in systems.values()])
    return dict(zip(systems, map(np.array, seconds), strict=True))


def seconds_of_fits(solver: str, parameters: Mapping[str, Value], parts: Sequence[Queries]) -> list[float]:
    """Return the CPU seconds of fitting a solver on each part."""
    make(solver, parameters, 0).fit(parts[0])  # compiles
    return [cpu_seconds(partial(make(solver, parameters, 0).fit, part)) for part in parts]
