"""The printed figures of a paper, drawn on our data, with their verdicts: one page of HTML, SVG and PNG files.

The figures of the other papers have modules of their own. Those of domination rank are here: accuracy over the number
of weights, on LETOR, and what Tables 1.2 and 1.3 say of sparse models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.studies.papers.claims import ClaimVerdict, counted
from ranktune.studies.papers.figures import adarank, elasticrank, ranksvm, solar
from ranktune.studies.papers.figures.pictures import png, svg
from ranktune.studies.papers.figures.work import Material, Points, PrintedFigure, best, over_weights, shown
from ranktune.studies.papers.published import Paper
from ranktune.studies.papers.reproduce import Dataset, Reproduced
from ranktune.tuner.workers.executor import make_executor

MEASURES = ("avg_precision", "precision@10", "dominating", "pairwise_accuracy")
"""The measures of the tables; the last two are 1 less the domination error and 1 less the all-pairs error."""
SAME = 0.01
"""Figures that differ by no more count as the same."""
ZEROS = 0.93
"""The least share of zero weights of the printed models with the l1 penalty."""
SPARSE = ("Base-l1", "MultiValued", "Margin")
CSS = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .3rem; }
.printed { border-left: 3px solid #888; padding-left: .7rem; max-width: 60rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; margin: .8rem 0; }
.charts svg { max-width: 100%; height: auto; border-radius: 4px; }
table { border-collapse: collapse; margin: .5rem 0; } th { text-align: left; }
td, th { padding: .25rem .7rem .25rem 0; vertical-align: top; border-top: 1px solid #8884; }
td:first-child { white-space: nowrap; }
.confirmed { color: #00795a; font-weight: 600; } .refuted { color: #c04400; font-weight: 600; }
.not, .cannot { color: #777; }
@media (prefers-color-scheme: dark) { td:first-child { white-space: nowrap; }
.confirmed { color: #2fc79a; } .refuted { color: #ff8a4c; } }
"""


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


FIGURES: Mapping[str, Callable[[Material], Iterator[PrintedFigure]]] = {
    "adarank": adarank.figures,
    "domination": figures,
    "elasticrank": elasticrank.figures,
    "ranksvm": ranksvm.figures,
    "solar": solar.figures,
}


@dataclass(frozen=True)
class Drawn:
    """The figures of a paper, and the verdicts on its tables that no figure holds."""

    figures: tuple[PrintedFigure, ...]
    others: tuple[ClaimVerdict, ...]

    @property
    def verdicts(self) -> tuple[ClaimVerdict, ...]:
        """All verdicts: on the figures, on their claims, and on tables."""
        return (*(verdict for figure in self.figures for verdict in figure.verdicts), *self.others)


def draw(
    paper: Paper,
    datasets: Sequence[Dataset],
    tables: Sequence[Reproduced],
    *,
    jobs: int = 1,
    on_figure: Callable[[str], None] | None = None,
) -> Drawn:
    """Return paper's printed figures on datasets, of which reproduce made tables; jobs processes share the work."""
    figures = []
    with make_executor(jobs) as executor:
        for figure in FIGURES[paper.name](Material(paper, datasets, tables, executor)):
            figures.append(figure)
            if on_figure is not None:
                on_figure(figure.source)
    drawn = {verdict for figure in figures for verdict in figure.claims}
    others = tuple(verdict for table in tables for verdict in table.verdicts if verdict not in drawn)
    return Drawn(tuple(figures), others)


def write_figures(folder: str | Path, name: str, title: str, drawn: Drawn) -> Path:
    """Write NAME.html, and NAME-FIGURE-N.svg and .png, into folder, which is made, and return the path of the page.

    Raises ParameterError where folder cannot be written to.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for figure in drawn.figures:
            for number, chart in enumerate(figure.charts, start=1):
                slug = re.sub(r"[^a-z0-9]+", "-", figure.source.lower()).strip("-")
                stem = f"{name}-{slug}-{number}"
                atomic_write(place / f"{stem}.svg", svg(chart))
                atomic_write(place / f"{stem}.png", png(chart))
        page = place / f"{name}.html"
        atomic_write(page, html(title, drawn))
    except OSError as error:
        raise ParameterError(f"cannot write to {place}: {error.strerror}. Give a folder you may write to.") from None
    return page


def html(title: str, drawn: Drawn) -> str:
    """Return the page: what is printed of each figure beside ours, and all verdicts with their counts."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(counted(drawn.verdicts))}</p>",
    ]
    for figure in drawn.figures:
        parts += _figure(figure)
    if drawn.others:
        parts += ["<h2>What the text says about the tables</h2>", *_table(drawn.others)]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _figure(figure: PrintedFigure) -> Iterator[str]:
    yield f"<h2>{escape(figure.source)}. {escape(figure.declared.caption)}</h2>"
    yield f'<p class="printed">Printed: {escape(figure.declared.printed)}</p>'
    if figure.charts:
        yield f'<div class="charts">{"".join(svg(chart) for chart in figure.charts)}</div>'
    yield from _table(figure.verdicts)


def _table(verdicts: Sequence[ClaimVerdict]) -> Iterator[str]:
    yield "<table><tr><th>source</th><th>claim</th><th></th><th>measured here</th></tr>"
    for verdict in verdicts:
        cells = f"<td>{escape(verdict.source)}</td><td>{escape(verdict.claim)}</td>"
        word = f'<td class="{verdict.finding.split()[0]}">{verdict.finding}</td>'
        yield f"<tr>{cells}{word}<td>{escape(verdict.reason)}</td></tr>"
    yield "</table>"
