"""ElasticRank: NDCG beside methods that iterate (Figure 2), sparsity (Figure 3), latency (Table 2), tuning, days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.papers.claims import SIGNIFICANT
from ranktune.studies.papers.figures.work import (
    Chart,
    Material,
    Points,
    PrintedFigure,
    Series,
    best,
    mean_and_band,
    over_weights,
    parts_of,
    shown,
)
from ranktune.studies.papers.protocols import NAME
from ranktune.studies.papers.tuner_runs import regrets_of

OPTIMIZERS = ("RDA", "FOBOS", "PSGD")
PASSES = {1: "1 pass", 2: "2 passes"}
LATENCY, WEIGHTS = 9.0, 29
"""Table 2: microseconds to score a product by so many weights."""
DAILY = "Sections 1 and 6"
DEFAULTS, TUNED = "defaults", "Thompson sampling daily"
"""Ways of the simulated days."""
KEPT = 0.02
"""A loss of recall up to that counts as kept."""


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 2 and 3, Table 2, and the curves of what sections 6 and 1 speak of."""
    yield _accuracy(material)
    points = {name: material.points("Figure 3", name, _swept) for name in material.names}
    yield _sparsity(material.figure("Figure 3"), points)
    yield _latency(material.figure("Table 2"), points)
    yield _evaluations(material)
    yield _days(material)


def _swept(label: str) -> str:
    """Return the name of a sweep, "RDA, 1 pass", of a label with its point, "RDA, passes=1, l1=0.1"."""
    optimizer, passes = label.split(", ")[:2]
    return f"{optimizer}, {PASSES[int(passes.removeprefix('passes='))]}"


def _accuracy(material: Material) -> PrintedFigure:
    reproduced = material.table("Figure 2")
    figure = material.figure("Figure 2")
    figure.claims += [verdict for verdict in reproduced.verdicts if verdict.source == "Figure 2"]
    for name in material.names:
        lines, circles = [], []
        for entry in reproduced.table.entries:
            rows = [row for row in reproduced.rows if (row.dataset, row.algorithm) == (name, entry.name)]
            ours = {int(row.metric.split("@")[1]): row.ours for row in rows if row.ours is not None}
            lines.append(Series(entry.name, list(ours), list(ours.values()), style="line+points"))
            marks = {int(label.split("@")[1]): value for label, value in entry.published.get(name, {}).items()}
            if marks:
                label = f"{entry.name}, printed by LETOR"
                circles.append(Series(label, list(marks), list(marks.values()), style="points", like=entry.name))
        figure.charts.append(Chart(f"{name}: NDCG@K", "K", "NDCG@K", (*lines, *circles)))
    return figure


def _sparsity(figure: PrintedFigure, points: Mapping[str, Mapping[str, Points]]) -> PrintedFigure:
    wanted = {f"{optimizer}, {passes}" for optimizer in OPTIMIZERS for passes in PASSES.values()}
    for name, swept in points.items():
        for measure in ("recall@1", "recall@4"):
            figure.draw(f"{name}: {measure}", "weights that are not zero", measure, over_weights(swept, measure))
        if wanted <= set(swept):
            _say_of_sparsity(figure, name, swept)
    return figure


def _say_of_sparsity(figure: PrintedFigure, name: str, swept: Mapping[str, Points]) -> None:
    few = max(p["weights"] for p in swept["RDA, 1 pass"]) / 3
    dense = {optimizer: best(swept[f"{optimizer}, 1 pass"], "recall@4") for optimizer in OPTIMIZERS}
    sparse = {optimizer: max(best(swept[f"{optimizer}, 1 pass"], "recall@4", few), 0.0) for optimizer in OPTIMIZERS}
    for optimizer in ("RDA", "PSGD"):
        loss = dense[optimizer] - sparse[optimizer]
        measured = f"With at most {few:.0f} weights recall@4 is {loss:.4f} below its best, {dense[optimizer]:.4f}."
        figure.say("third", loss <= KEPT, measured, optimizer=optimizer, name=name)
    ahead = min(sparse["RDA"], sparse["PSGD"]) >= sparse["FOBOS"]
    figure.say("informative", ahead, f"Recall@4 with at most {few:.0f} weights: {shown(sparse)}.", name=name)
    twice = {optimizer: best(swept[f"{optimizer}, 2 passes"], "recall@4") for optimizer in OPTIMIZERS}
    gains = {optimizer: twice[optimizer] - dense[optimizer] for optimizer in OPTIMIZERS}
    most = max(gains, key=lambda optimizer: gains[optimizer])
    figure.say("second", most == "FOBOS", f"Change of the best recall@4: {shown(gains, '+.4f')}.", name=name)


def _latency(figure: PrintedFigure, points: Mapping[str, Mapping[str, Points]]) -> PrintedFigure:
    for name, swept in points.items():
        once = [p for system, many in swept.items() if system.endswith(PASSES[1]) for p in many]
        once.sort(key=lambda p: p["weights"])
        weights, microseconds, quality = ([p[m] for p in once] for m in ("weights", "us/document", "recall@4"))
        labels = "weights that are not zero", "microseconds a document", "recall@4"
        figure.draw(f"{name}: latency", *labels[:2], {"measured": (weights, microseconds)}, style="points")
        curve = {"one pass": (microseconds, quality)}
        figure.draw(f"{name}: quality against latency", *labels[1:], curve, style="points")
        small = [us for count, us in zip(weights, microseconds, strict=True) if count <= WEIGHTS]
        measured = "No model has so few weights."
        if small:
            measured = f"At most {max(small):.3f} microseconds, the product with the kept features alone."
        figure.say("latency", bool(small) and max(small) < LATENCY, measured, contrary=bool(small), name=name)
    return figure


def _evaluations(material: Material) -> PrintedFigure:
    reproduced = material.table("Section 6")
    figure = material.figure("Section 6")
    figure.claims += reproduced.verdicts
    entries, runs = reproduced.table.entries, reproduced.table.runs
    for name in material.names:
        curves = {}
        for entry in entries:
            parts = parts_of(reproduced, entry.name, name)
            if parts:
                low, middle, high = np.quantile(regrets_of(parts), (0.25, 0.5, 0.75), axis=0)
                curves[entry.name] = np.arange(1, len(middle) + 1), middle, low, high
        title = f"{name}: regret, median and quartiles of {runs} runs"
        figure.draw(title, "evaluations", f"regret in {entries[0].choose}", curves, style="steps")
    return figure


def _days(material: Material) -> PrintedFigure:
    reproduced, figure = material.table(DAILY), material.figure(DAILY)
    runs = {
        entry.name: np.array([part.curves["days"] for part in parts])
        for entry in reproduced.table.entries
        if (parts := parts_of(reproduced, entry.name, NAME))
    }
    if DEFAULTS not in runs:
        return figure
    metric = reproduced.table.entries[0].choose
    means = {name: (np.arange(2, values.shape[1] + 2), values.mean(axis=0)) for name, values in runs.items()}
    figure.draw(f"{NAME}: {metric} on the next day", "day", metric, means)
    gains = {}
    for name, values in runs.items():
        so_far = np.cumsum(values - runs[DEFAULTS], axis=1) / np.arange(1, values.shape[1] + 1)
        gains[name] = means[name][0], *mean_and_band(list(so_far))
    figure.draw(f"{NAME}: mean gain over the defaults so far", "day", f"gain in {metric}", gains, style="line")
    if TUNED in runs:
        gain = (runs[TUNED] - runs[DEFAULTS]).mean(axis=1)
        better = _p_of_gain(gain) < SIGNIFICANT
        scores = shown({name: float(values.mean()) for name, values in runs.items()})
        measured = f"{scores}; paired over {len(gain)} runs p = {_p_of_gain(gain):.2g}."
        figure.say("careful", better, measured, contrary=gain)
    return figure


def _p_of_gain(gains: Floats) -> float:
    """Return the one-sided p value of a t-test of the gains of runs, 1 for a single run."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(gains, 0.0, alternative="greater").pvalue) if len(gains) > 1 else 1.0
