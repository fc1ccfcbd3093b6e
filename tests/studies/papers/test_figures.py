"""Figures of papers: charts as SVG, verdicts of figures, the page, and what figures are computed from, by hand. Every
paper's figures are drawn of small data, from its tables to the page."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.studies.papers.claims import ClaimVerdict, Finding
from ranktune.studies.papers.figures import adarank, ranksvm
from ranktune.studies.papers.figures.drawing import FIGURES, Drawn, draw, html, write_figures
from ranktune.studies.papers.figures.pictures import png, svg
from ranktune.studies.papers.figures.work import Chart, PrintedFigure, Series, best, mean_and_band, thinned
from ranktune.studies.papers.published import PAPERS, Figure, Paper, PublishedSystem, load_paper
from ranktune.studies.papers.reproduce import Dataset, reproduce
from tests.support.small_papers import some_queries, split

NAMESPACE = "{http://www.w3.org/2000/svg}"


CURVE = Series("ours <b>", [1, 10, 100], [0.1, 0.2, 0.4], [0.05, 0.1, 0.3], [0.2, 0.3, 0.5], style="line+points")


def texts(chart: Chart) -> set[str | None]:
    return {element.text for element in ET.fromstring(svg(chart)).iter(f"{NAMESPACE}text")}


def test_a_chart_has_the_words_of_its_series_and_axes() -> None:
    chart = Chart("quality & time", "seconds", "NDCG", (CURVE, Series("other", [1, 100], [0.3, 0.3])), log_x=True)
    assert {"quality & time", "seconds", "NDCG", "ours <b>", "other"} <= texts(chart)
    assert svg(chart) == svg(chart)
    assert png(chart).startswith(b"\x89PNG")


def test_bars_are_named_by_their_categories() -> None:
    series = (Series("A", [0, 1], [0.2, 0.4], style="bars"), Series("B", [0, 1], [0.4, -0.1], style="bars"))
    assert {"x", "y", "A", "B"} <= texts(Chart("bars", "", "value", series, categories=("x", "y")))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("y", [[], [np.nan, np.nan], [0.5, 0.5], [0.0, 0.0], [1e-9, 1e9], [-1.0, 2.0]])
def test_any_values_can_be_drawn(y: list[float], log: bool) -> None:
    for styles in (("line", "steps", "points", "line+points"), ("bars",)):
        series = tuple(Series(style, range(len(y)), y, style=style) for style in styles)
        assert "t" in texts(Chart("t", "x", "y", series, log_y=log))


HELD, MISSED, UNSURE, OPEN = (
    ClaimVerdict("Figure 1", name, finding, "r") for name, finding in zip("abdc", Finding, strict=True)
)


@pytest.mark.parametrize(
    ("claims", "missing", "finding"),
    [((HELD,), "", "confirmed"), ((HELD, OPEN), "", "confirmed"), ((HELD, UNSURE, MISSED), "", "refuted"),
     ((HELD, UNSURE), "", "not shown"), ((OPEN,), "", "cannot be checked"), ((), "", "confirmed"),
     ((), "not public", "cannot be checked")],
)  # fmt: skip
def test_a_figure_is_reproduced_where_its_claims_hold(
    claims: tuple[ClaimVerdict, ...], missing: str, finding: str
) -> None:
    declared = Figure("Figure 1", "Accuracy", "bars without numbers.", missing=missing)
    figure = PrintedFigure(declared, [], list(claims))
    assert figure.verdict.finding == finding and len(figure.verdicts) == 1 + len(claims)
    assert (missing or {"refuted": "refuted: b", "not shown": "not shown: d"}.get(finding, "")) in figure.verdict.reason


def test_the_page_shows_figures_and_counts(tmp_path: Path) -> None:
    chart = Chart("time", "x", "y", (CURVE,))
    drawn = Drawn((PrintedFigure(Figure("Figure 1", "A & B", "no <numbers>."), [chart, chart], [MISSED]),), (HELD,))
    page = write_figures(tmp_path / "out", "solar", "SOLAR", drawn)
    text = page.read_text()
    assert text == html("SOLAR", drawn)
    assert "3 printed figures and claims: 1 confirmed, 2 refuted." in text and text.count("<svg ") == 2
    assert "no &lt;numbers&gt;." in text and "<numbers>" not in text and "A &amp; B" in text
    names = sorted(path.name for path in page.parent.iterdir())
    assert names == [*(f"solar-figure-1-{number}.{kind}" for number in (1, 2) for kind in ("png", "svg")), "solar.html"]
    assert (page.parent / names[1]).read_text() == svg(chart)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ParameterError, match=r"cannot write to .*out.*Give a folder"):
        write_figures(tmp_path / "out", "solar", "SOLAR", Drawn((), ()))


def test_curves_are_thinned_and_averaged() -> None:
    assert list(thinned(5)) == [0, 1, 2, 3, 4]
    kept = thinned(1000, 11)
    assert (len(kept), kept[0], kept[-1]) == (11, 0, 999)
    mean, low, high = mean_and_band([np.array([1.0, 2.0]), np.array([3.0, 2.0])])
    assert (mean.tolist(), low.tolist(), high.tolist()) == ([2.0, 2.0], [1.0, 2.0], [3.0, 2.0])


def test_wrong_pairs_are_those_of_a_double_loop() -> None:
    data = some_queries(5, 4)
    scores = np.round(np.random.default_rng(0).normal(size=data.n_documents), 1)  # with ties
    expected = {kind: [0.0, 0] for kind in adarank.PAIRS}
    for a, b in zip(data.starts[:-1], data.starts[1:], strict=True):
        for i in range(a, b):
            for j in range(a, b):
                for kind, grades in adarank.PAIRS.items():
                    if (data.grades[i], data.grades[j]) == grades:
                        expected[kind][0] += (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j])
                        expected[kind][1] += 1
    assert {kind: list(pairs) for kind, pairs in adarank.wrong_pairs(scores, data).items()} == expected


def test_queries_are_grouped_by_their_pairs() -> None:
    numbers, names = adarank.groups_of(np.array([0.0, 999.0, 1000.0, 2500.0, 90_000.0]))
    assert numbers.tolist() == [0, 0, 1, 2, 7] and names[0] == "0k-1k" and names[-1] == "7k+"
    few, names = adarank.groups_of(np.array([1.0, 15.0, 16.0]))
    assert few.tolist() == [0, 7, 7] and names[0] == "0-2"


def test_the_objective_is_that_of_rank_svm() -> None:
    train = split(1).train
    for loss, power in (("l2", 2), ("l1", 1)):
        fitted = RankSVM(C=0.3, loss=loss, scaling="none", average="none", tol=1e-6).fit(train)
        ours = ranksvm.objective(train, fitted.coef_, 0.3, power)
        assert ours == pytest.approx(fitted.objective_, rel=1e-4)


def test_liblinear_on_listed_pairs_solves_the_same_problem() -> None:
    newton, listed = (ranksvm.curve_of(split(1), system, 0.3) for system in (ranksvm.NEWTON, ranksvm.LISTED))
    assert listed.objective[-1] == pytest.approx(newton.objective[-1], rel=1e-4)
    assert newton.objective[0] > newton.objective[-1] and (np.diff(newton.seconds) >= 0.0).all()
    assert 0 < newton.stopped < len(newton.seconds)


def test_pairs_are_listed_with_the_better_document_first() -> None:
    data = Queries.from_arrays([[1.0], [2.0], [5.0], [9.0]], [1, 0, 0, 2], group=[2, 2])
    assert ranksvm.listed_pairs(data).tolist() == [[-1.0], [4.0]]


def test_features_are_scaled_by_the_training_queries() -> None:
    result = ranksvm.scaled(split(1))
    assert result.train.features.min() == 0.0 and result.train.features.max() == 1.0
    assert result.test is not None and result.test.features.max() != 1.0


def test_grades_by_rank_are_all_different() -> None:
    result = ranksvm.by_rank(ranksvm.scaled(split(1)))
    for part in (result.train, result.test):
        assert part is not None
        for a, b in zip(part.starts[:-1], part.starts[1:], strict=True):
            assert sorted(part.grades[a:b]) == list(range(b - a))


def test_the_best_point_has_at_most_so_many_weights() -> None:
    points = [{"weights": 2.0, "map": 0.3}, {"weights": 5.0, "map": 0.4}]
    assert (best(points, "map"), best(points, "map", 3)) == (0.4, 0.3)
    assert best(points, "map", 1) == -np.inf


def test_a_fold_study_measures_every_system() -> None:
    generator = np.random.default_rng(0)

    def wide(data: Queries | None) -> Queries:
        assert data is not None
        return data.with_features(np.hstack([data.features, generator.normal(size=(data.n_documents, 2))]))

    fold = split(1)
    fold = replace(fold, train=wide(fold.train), vali=wide(fold.vali), test=wide(fold.test))
    result = adarank.fold_study(load_paper("adarank").systems, fold, 1)
    assert tuple(name for name in adarank.SYSTEMS if name in result.test) == adarank.SYSTEMS
    assert all(len(values) == 9 for metrics in result.test.values() for values in metrics.values())
    assert set(result.errors) == set(result.training) == set(adarank.SYSTEMS[1:])
    assert len(result.curve) <= 60 and result.curve.max() >= result.curve[0]


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
        assert verdict.finding in list(Finding)
    text = write_figures(tmp_path, paper.name, paper.title, drawn).read_text()
    assert text.count("<svg ") == sum(len(figure.charts) for figure in drawn.figures)
    assert not re.search(r"\bnan\b", text)
    claims = sum(len(table.claims) for table in paper.tables)
    assert len(drawn.verdicts) >= claims + len(drawn.figures)
