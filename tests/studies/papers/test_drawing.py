"""Every paper's figures are drawn of small data, from its tables to the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ranktune.solvers.data.blocks import QuerySplit
from ranktune.studies.papers.figures.drawing import FIGURES, draw, write_figures
from ranktune.studies.papers.published import PAPERS, Paper, PublishedSystem, load_paper
from ranktune.studies.papers.reproduce import Dataset, reproduce
from tests.support.small_papers import some_queries

PRINTED = {
    "adarank": [f"Figure {k}" for k in range(2, 12)],
    "domination": ["Tables 1.2, 1.3"],
    "elasticrank": ["Figure 2", "Figure 3", "Table 2", "Section 6", "Sections 1 and 6"],
    "ranksvm": [f"Figure {k}" for k in range(4, 8)],
    "solar": ["Figure 2", "Figure 3"],
}


def dataset(name: str) -> Dataset:
    splits = [
        QuerySplit(f"Fold{k}", *(some_queries(n, 10 * k + n, length=12, features=45) for n in (16, 6, 7)))
        for k in (1, 2)
    ]
    return Dataset(name, tuple(splits))


def small(paper: Paper) -> Paper:
    """The paper with the ends of its numeric grids alone, few trees, orders and runs."""

    def entry(declared: PublishedSystem) -> PublishedSystem:
        grid = {
            name: values if isinstance(values[0], str) else values[:: len(values) - 1 or 1]
            for name, values in declared.grid.items()
        }
        fewer = {
            name: min(value, 30) if name == "trees" and isinstance(value, int) else value
            for name, value in declared.parameters.items()
        }
        return replace(declared, grid=grid, parameters=fewer, orders=1, evaluations=min(declared.evaluations, 12))

    tables = [replace(t, entries=tuple(map(entry, t.entries)), permutations=2, runs=2) for t in paper.tables]
    return replace(paper, tables=tuple(tables))


def test_every_paper_has_figures() -> None:
    assert set(FIGURES) == set(PAPERS) == set(PRINTED)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_drawn(name: str, tmp_path: Path) -> None:
    results = [dataset("OHSUMED"), dataset("MQ2008")]
    paper = small(load_paper(name))
    tables = reproduce(paper, results)
    assert not [remark for table in tables for remark in table.remarks if "could not run" in remark]
    sources: list[str] = []
    drawn = draw(paper, results, tables, on_figure=sources.append)
    assert sources == PRINTED[name] == [figure.source for figure in drawn.figures]
    for figure in drawn.figures:
        assert figure.charts or figure.declared.missing
        for chart in figure.charts:
            assert chart.series and all(len(series.x) == len(series.y) > 0 for series in chart.series)
    for verdict in drawn.verdicts:
        assert verdict.reason and verdict.claim
        assert verdict.word in ("yes", "refuted", "cannot be checked")
    text = write_figures(tmp_path, paper.name, paper.title, drawn).read_text()
    assert text.count("<svg ") == sum(len(figure.charts) for figure in drawn.figures)
    assert not re.search(r"\bnan\b", text)
    claims = sum(len(table.claims) for table in paper.tables)
    assert len(drawn.verdicts) >= claims + len(drawn.figures)
