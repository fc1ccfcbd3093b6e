"""Domination loss: no figure is printed; sweeps of the penalty show what Tables 1.2 and 1.3 say of sparse models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ranktune.studies.papers.claims import Verdict
from ranktune.studies.papers.figures.charts import Chart, PrintedFigure, Series
from ranktune.studies.papers.figures.work import Material

MEASURES = ("avg_precision", "precision@10", "dominating", "pairwise_accuracy")
"""The measures of the tables; the last two are 1 less the domination error and 1 less the all-pairs error."""
SAME = 0.01
"""Figures that differ by no more count as the same."""
ZEROS = 0.93
"""The least share of zero weights of the printed models with the l1 penalty."""
SPARSE = ("Base-l1", "MultiValued", "Margin")

Points = Mapping[str, list[dict[str, float]]]


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield the sweeps."""
    table = material.table("Tables 1.2 and 1.3")
    charts, claims = [], []
    for dataset in material.datasets:
        points: dict[str, dict[str, dict[str, float]]] = {}
        for row in table.rows:
            if row.dataset == dataset.name and row.ours is not None:
                entry, point = row.algorithm.split(", ", 1)
                points.setdefault(entry, {}).setdefault(point, {})[row.metric] = row.ours
        own: Points = {e: sorted(p.values(), key=lambda v: v["weights"]) for e, p in points.items()}
        for measure in MEASURES:
            series = tuple(
                Series(entry, [p["weights"] for p in many], [p[measure] for p in many], style="line+points")
                for entry, many in own.items()
            )
            charts.append(Chart(f"{dataset.name}: {measure}", "weights that are not zero", measure, series))
        if set(own) != {entry.name for entry in table.table.entries}:
            continue  # a system could not run, which the table says
        n_features = dataset.splits[0].train.n_features
        claims += list(_claims(dataset.name, own, n_features))
    printed = (
        "no figure; Table 1.2 is of images and Table 1.3 of RCV1, whose figures are for 10,000 and more features. Here "
        "the same five measures are swept over the penalty on LETOR."
    )
    caption = "Accuracy over the number of weights, by the penalty"
    yield PrintedFigure("Tables 1.2, 1.3", caption, printed, tuple(charts), tuple(claims))


def _claims(name: str, points: Points, n_features: int) -> Iterator[Verdict]:
    source = "Tables 1.2, 1.3"
    dense = best(points["Base-l2"], "avg_precision")
    few = max(1, round((1.0 - ZEROS) * n_features))
    for share, most in ((ZEROS, few), (0.5, n_features // 2)):
        sparse = max(best(points[entry], "avg_precision", most) for entry in SPARSE)
        reason = (
            f"With at most {most} of {n_features} weights the average precision is {sparse:.4f}, without sparsity "
            f"{dense:.4f}. The printed problems have 10,000 features, of which 7 percent are still 700."
        )
        claim = f"l1 models with {share:.0%} zero weights are as accurate as l2 models ({name})"
        yield Verdict(source, claim, sparse >= dense - SAME, reason)
    own = {entry: best(points[entry], "avg_precision") for entry in points if entry != "PAMIR"}
    shown = ", ".join(f"{entry} {value:.4f}" for entry, value in own.items())
    alike = max(own.values()) - min(own.values()) <= SAME
    yield Verdict(source, f"all variants attain comparable performance ({name})", alike, f"Average precision: {shown}.")
    gain = max(own["MultiValued"], own["Margin"]) - own["Base-l1"]
    claim = f"neither grades nor margins improve on the base variant ({name})"
    yield Verdict(source, claim, gain <= SAME / 2, f"The better of the two is {gain:+.4f} from Base-l1.")
    pamir = best(points["PAMIR"], "avg_precision")
    ours = max(own.values())
    claim = f"domination rank is competitive with PAMIR ({name})"
    yield Verdict(source, claim, ours >= pamir - SAME, f"Average precision {ours:.4f} against {pamir:.4f}.")


def best(points: list[dict[str, float]], measure: str, most: float = np.inf) -> float:
    """Return the best value of measure among points of at most so many weights, minus infinity where there are none."""
    return max((p[measure] for p in points if p["weights"] <= most), default=-np.inf)
