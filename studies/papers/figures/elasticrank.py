"""ElasticRank: NDCG against methods that iterate (Figure 2), sparsity (Figure 3), latency (Table 2), evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ranktune.studies.papers.claims import Verdict, said
from ranktune.studies.papers.figures.charts import Chart, PrintedFigure, Series
from ranktune.studies.papers.figures.work import Material, parts_of
from ranktune.studies.papers.tuner_runs import regrets_of

OPTIMIZERS = ("RDA", "FOBOS", "PSGD")
LATENCY, WEIGHTS = 9.0, 29
"""Table 2: microseconds to score a product by so many weights."""
KEPT = 0.02
"""A loss of recall up to that counts as kept."""
NOT_PUBLIC = "The data, purchase logs of a shop, were never published."


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 2 and 3, Table 2, and the curve that section 6 speaks of."""
    yield _accuracy(material)
    points = _points(material)
    yield _sparsity(material, points)
    yield _latency(material, points)
    yield _evaluations(material)


def _accuracy(material: Material) -> PrintedFigure:
    one = material.table("Figure 2")
    ours = material.ours("Figure 2")
    charts = []
    for name in material.names:
        series = []
        for entry in one.table.entries:
            places = [(int(label.split("@")[1]), ours[name, entry.name, label]) for label in entry.labels]
            known = [(k, value) for k, value in places if value is not None]
            series.append(Series(entry.name, [k for k, _ in known], [v for _, v in known], style="line+points"))
        for entry in one.table.entries:
            marks = [(int(label.split("@")[1]), v) for label, v in entry.published.get(name, {}).items()]
            if marks:
                label = f"{entry.name}, printed by LETOR"
                series.append(
                    Series(label, [k for k, _ in marks], [v for _, v in marks], style="points", like=entry.name)
                )
        charts.append(Chart(f"{name}: NDCG@K", "K", "NDCG@K", tuple(series)))
    printed = (
        "lines of six systems on TD2003, TD2004 and OHSUMED without numbers; the rivals' are LETOR's own figures, "
        "drawn here as circles."
    )
    claims = tuple(verdict for verdict in one.verdicts if verdict.source == "Figure 2")
    return PrintedFigure("Figure 2", "NDCG@K of one pass beside methods that iterate", printed, tuple(charts), claims)


Points = Mapping[tuple[str, str, int], list[dict[str, float]]]


def _points(material: Material) -> Points:
    """Return the measures of each point by data set, optimizer and passes, from few weights to many."""
    found: dict[tuple[str, str, int], dict[str, dict[str, float]]] = {}
    for row in material.table("Figure 3").rows:
        if row.ours is None:
            continue
        optimizer, rest = row.algorithm.split(", ", 1)
        passes = int(rest.split("passes=")[1].split(",")[0])
        found.setdefault((row.dataset, optimizer, passes), {}).setdefault(rest, {})[row.metric] = row.ours
    return {key: sorted(points.values(), key=lambda p: p["weights"]) for key, points in found.items()}


def _sparsity(material: Material, points: Points) -> PrintedFigure:
    charts, claims = [], []
    for name in material.names:
        for measure in ("recall@1", "recall@4"):
            series = tuple(
                Series(
                    f"{optimizer}, {passes} pass{'es' * (passes > 1)}",
                    [p["weights"] for p in own],
                    [p[measure] for p in own],
                    style="line+points",
                )
                for (dataset, optimizer, passes), own in points.items()
                if dataset == name
            )
            charts.append(Chart(f"{name}: {measure}", "weights that are not zero", measure, series))
        if all((name, optimizer, passes) in points for optimizer in OPTIMIZERS for passes in (1, 2)):
            claims += list(_sparsity_claims(name, points))
    printed = (
        "recall@1 and recall@4 over the number of weights, of purchase logs that were never published, without numbers."
    )
    caption = "Recall against the number of weights that are not zero"
    return PrintedFigure("Figure 3", caption, printed, tuple(charts), tuple(claims))


def _sparsity_claims(name: str, points: Points) -> Iterator[Verdict]:
    def best(optimizer: str, passes: int, most: float = np.inf) -> float:
        return max((p["recall@4"] for p in points[name, optimizer, passes] if p["weights"] <= most), default=0.0)

    dense = {optimizer: best(optimizer, 1) for optimizer in OPTIMIZERS}
    few = max(p["weights"] for p in points[name, "RDA", 1]) / 3
    loss = {optimizer: dense[optimizer] - best(optimizer, 1, few) for optimizer in dense}
    for optimizer in ("RDA", "PSGD"):
        reason = (
            f"With at most {few:.0f} weights recall@4 is {loss[optimizer]:.4f} below its best, {dense[optimizer]:.4f}."
        )
        claim = f"{optimizer} keeps its recall with a third of the weights ({name})"
        yield said("Figure 3", claim, loss[optimizer] <= KEPT, reason)
    ahead = min(best("RDA", 1, few), best("PSGD", 1, few)) >= best("FOBOS", 1, few)
    shown = ", ".join(f"{optimizer} {best(optimizer, 1, few):.4f}" for optimizer in dense)
    reason = f"Recall@4 with at most {few:.0f} weights: {shown}."
    yield said("Figure 3", f"RDA and PSGD pick more informative features than FOBOS ({name})", ahead, reason)
    gains = {optimizer: best(optimizer, 2) - dense[optimizer] for optimizer in dense}
    most = max(gains, key=lambda optimizer: gains[optimizer])
    shown = ", ".join(f"{optimizer} {gain:+.4f}" for optimizer, gain in gains.items())
    why = "With AdaGrad's steps every optimizer has converged after one pass, to a few thousandths."
    claim = f"a second pass helps FOBOS most ({name})"
    yield said("Figure 3", claim, most == "FOBOS", f"Change of the best recall@4: {shown}.", why)


def _latency(material: Material, points: Points) -> PrintedFigure:
    charts, claims = [], []
    for name in material.names:
        own = [p for (dataset, _, passes), many in points.items() if dataset == name and passes == 1 for p in many]
        own.sort(key=lambda p: p["weights"])
        weights, microseconds = [p["weights"] for p in own], [p["us/document"] for p in own]
        quality = [p["recall@4"] for p in own]
        charts += [
            Chart(f"{name}: latency", "weights that are not zero", "microseconds a document",
                  (Series("measured", weights, microseconds, style="points"),)),
            Chart(f"{name}: quality against latency", "microseconds a document", "recall@4",
                  (Series("one pass", microseconds, quality, style="points"),)),
        ]  # fmt: skip
        small = [us for count, us in zip(weights, microseconds, strict=True) if count <= WEIGHTS]
        claim = f"29 weights score a document in less than 0.009 ms ({name})"
        reason = (
            f"At most {max(small, default=np.nan):.3f} microseconds, the product with the kept features alone."
            if small
            else "No model has so few weights."
        )
        claims.append(Verdict("Table 2", claim, bool(small) and max(small) < LATENCY, reason))
    printed = "a table of latency and throughput; of its numbers the text that we have gives 29 weights and 0.009 ms."
    return PrintedFigure("Table 2", "Latency against the number of weights", printed, tuple(charts), tuple(claims))


def _evaluations(material: Material) -> PrintedFigure:
    one = material.table("Section 6")
    charts = []
    for name in material.names:
        series = []
        for entry in one.table.entries:
            parts = parts_of(one, entry.name, name)
            if parts:
                regrets = regrets_of(parts)
                low, middle, high = np.quantile(regrets, (0.25, 0.5, 0.75), axis=0)
                series.append(Series(entry.name, np.arange(1, len(middle) + 1), middle, low, high, style="steps"))
        title = f"{name}: regret, median and quartiles of {one.table.runs} runs"
        choose = one.table.entries[0].choose
        charts.append(Chart(title, "evaluations", f"regret in {choose}", tuple(series)))
    printed = "no figure: the text says that 30 evaluations are typical and that Thompson sampling worked best."
    caption = "Regret over evaluations of the tuner"
    return PrintedFigure("Section 6", caption, printed, tuple(charts), one.verdicts)
