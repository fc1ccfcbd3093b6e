"""The printed figures of a paper, drawn on our data, with their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ranktune.studies.papers.claims import Verdict
from ranktune.studies.papers.figures import adarank, domination, elasticrank, ranksvm, solar
from ranktune.studies.papers.figures.charts import PrintedFigure
from ranktune.studies.papers.figures.work import Material
from ranktune.studies.papers.published import Paper
from ranktune.studies.papers.reproduce import Dataset, Reproduced
from ranktune.tuner.workers.executor import make_executor

FIGURES: Mapping[str, Callable[[Material], Iterator[PrintedFigure]]] = {
    "adarank": adarank.figures,
    "domination": domination.figures,
    "elasticrank": elasticrank.figures,
    "ranksvm": ranksvm.figures,
    "solar": solar.figures,
}


@dataclass(frozen=True)
class Drawn:
    """The figures of a paper, and the verdicts on its tables that no figure holds."""

    figures: tuple[PrintedFigure, ...]
    others: tuple[Verdict, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts: on the figures, on what is said of them, and on tables."""
        return (*(one for figure in self.figures for one in figure.verdicts), *self.others)


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
    held = {one for figure in figures for one in figure.claims}
    return Drawn(tuple(figures), tuple(one for table in tables for one in table.verdicts if one not in held))
