"""The figures of a paper as one page of HTML, and each chart as an SVG and a PNG file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.files import atomic_write
from ranktune.studies.papers.claims import Verdict, counted
from ranktune.studies.papers.figures.charts import PrintedFigure
from ranktune.studies.papers.figures.pictures import png, svg

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
.yes { color: #00795a; font-weight: 600; } .NO { color: #c04400; font-weight: 600; } .not { color: #777; }
@media (prefers-color-scheme: dark) { td:first-child { white-space: nowrap; }
.yes { color: #2fc79a; } .NO { color: #ff8a4c; } }
"""


def write_figures(
    folder: str | Path, name: str, title: str, figures: Sequence[PrintedFigure], verdicts: Sequence[Verdict]
) -> Path:
    """Write NAME.html, and NAME-FIGURE-N.svg and .png, into folder, which is made, and return the path of the page.

    verdicts are those on the paper's tables. Raises ParameterError where folder cannot be written to.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            for number, chart in enumerate(figure.charts, start=1):
                stem = f"{name}-{_slug(figure.source)}-{number}"
                atomic_write(place / f"{stem}.svg", svg(chart))
                atomic_write(place / f"{stem}.png", png(chart))
        page = place / f"{name}.html"
        atomic_write(page, html(title, figures, verdicts))
    except OSError as error:
        raise ParameterError(f"cannot write to {place}: {error.strerror}. Give a folder you may write to.") from None
    return page


def html(title: str, figures: Sequence[PrintedFigure], verdicts: Sequence[Verdict]) -> str:
    """Return the page: what is printed of each figure beside ours, and all verdicts with their counts."""
    every = [*(one for figure in figures for one in figure.verdicts), *verdicts]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(counted(every))}</p>",
    ]
    for figure in figures:
        parts += _figure(figure)
    if verdicts:
        parts += ["<h2>What the text says about the tables</h2>", *_table(verdicts)]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _figure(figure: PrintedFigure) -> Iterator[str]:
    yield f"<h2>{escape(figure.source)}. {escape(figure.declared.caption)}</h2>"
    yield f'<p class="printed">Printed: {escape(figure.declared.printed)}</p>'
    if figure.charts:
        yield f'<div class="charts">{"".join(svg(chart) for chart in figure.charts)}</div>'
    yield from _table(figure.verdicts)


def _table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "<table><tr><th>source</th><th>claim</th><th></th><th>measured here</th></tr>"
    for one in verdicts:
        cells = f"<td>{escape(one.source)}</td><td>{escape(one.claim)}</td>"
        word = f'<td class="{one.word.split()[0]}">{one.word}</td>'
        yield f"<tr>{cells}{word}<td>{escape(one.reason)}</td></tr>"
    yield "</table>"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
