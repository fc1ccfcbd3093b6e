"""Domination rank: accuracy over the number of weights, on LETOR; what Tables 1.2 and 1.3 say of sparse models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ranktune.studies.papers.figures.charts import PrintedFigure
from ranktune.studies.papers.figures.work import Material, Points, best, over_weights, shown

MEASURES = ("avg_precision", "precision@10", "dominating", "pairwise_accuracy")
"""The measures of the tables; the last two are 1 less the domination error and 1 less the all-pairs error."""
SAME = 0.01
"""Figures that differ by no more count as the same."""
ZEROS = 0.93
"""The least share of zero weights of the printed models with the l1 penalty."""
SPARSE = ("Base-l1", "MultiValued", "Margin")


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield the sweeps."""
    figure = material.figure("Tables 1.2, 1.3")
    systems = {entry.name for entry in material.table("Tables 1.2 and 1.3").table.entries}
    for dataset in material.datasets:
        points = material.points("Tables 1.2 and 1.3", dataset.name, lambda label: label.split(", ", 1)[0])
        for measure in MEASURES:
            curves = over_weights(points, measure)
            figure.draw(f"{dataset.name}: {measure}", "weights that are not zero", measure, curves)
        if set(points) == systems:  # else a system could not run, which the table says
            _say(figure, dataset.name, points, dataset.splits[0].train.n_features)
    yield figure


def _say(figure: PrintedFigure, name: str, points: Mapping[str, Points], n_features: int) -> None:
    precision = {entry: best(many, "avg_precision") for entry, many in points.items()}
    dense, pamir = precision["Base-l2"], precision.pop("PAMIR")
    few = max(1, round((1.0 - ZEROS) * n_features))
    for share, most in ((ZEROS, few), (0.5, n_features // 2)):
        sparse = max(best(points[entry], "avg_precision", most) for entry in SPARSE)
        measured = (
            f"With at most {most} of {n_features} weights the average precision is {sparse:.4f}, without sparsity "
            f"{dense:.4f}. The printed problems have 10,000 features, of which 7 percent are still 700."
        )
        figure.say("sparse", sparse >= dense - SAME, measured, share=share, name=name)
    ours = max(precision.values())
    alike = ours - min(precision.values()) <= SAME
    figure.say("alike", alike, f"Average precision: {shown(precision)}.", name=name)
    gain = max(precision["MultiValued"], precision["Margin"]) - precision["Base-l1"]
    figure.say("plain", gain <= SAME / 2, f"The better of the two is {gain:+.4f} from Base-l1.", name=name)
    figure.say("pamir", ours >= pamir - SAME, f"Average precision {ours:.4f} against {pamir:.4f}.", name=name)
