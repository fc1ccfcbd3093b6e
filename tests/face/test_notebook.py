"""A result that shows itself."""

from __future__ import annotations

import builtins
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.dashboards.figures.plotly import number
from ranktune.notebook import StudyResult, shown
from ranktune.solvers.core.errors import ParameterError


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    generator = np.random.default_rng(0)
    X, qid = generator.random((240, 3)), np.repeat(np.arange(24), 10)
    y = np.digitize(X[:, 0] - X[:, 1] + 0.4 * generator.normal(size=240), [0.0, 0.5])
    home = tmp_path_factory.mktemp("home")
    solvers = ("RidgeRanker", "BestFeature")
    return ranktune.tune((X, y, qid), solvers=solvers, trials=3, sampler="random", name="s", home=home, jobs=1)


def test_it_is_a_table_with_its_conclusion(result: StudyResult) -> None:
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            found.append(tag)

    text = result._repr_html_()
    Reader().feed(text)
    assert found.count("table") == 1 and found.count("tr") == 1 + len(result.leaderboard)
    assert f"{result.best.solver} was chosen by validation" in text
    assert "script" not in found


def test_names_are_text(result: StudyResult) -> None:
    values = {name: getattr(result, name) for name in result.__dataclass_fields__}
    hostile = StudyResult(**values | {"study": "<script>alert(1)</script>", "model": "<img src=x>"})
    assert "<script" not in hostile._repr_html_() and "<img" not in hostile._repr_html_()


def test_figures_are_plotly_figures(result: StudyResult) -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    for plot in (
        result.plot_leaderboard, result.plot_best_so_far, result.plot_history, result.plot_time, result.plot_workers,
    ):  # fmt: skip
        figure = plot()
        assert isinstance(figure, graph_objects.Figure) and len(figure.data) > 0
    assert tuple(result.plot_leaderboard().data[-1].x) == tuple(
        number(row.test.mean) for row in result.leaderboard if row.test is not None
    )
    with pytest.raises(ParameterError, match="no figure 'histroy'"):
        result.plot("progress", "histroy")


def test_without_plotly_the_extra_is_named(result: StudyResult, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **others: Any) -> Any:
        if name.startswith("plotly"):
            raise ImportError(name)
        return real(name, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ParameterError, match=r'pip install "ranktune\[dashboard\]"'):
        result.plot_history()
    assert result._repr_html_()  # needs none


def test_what_it_says_is_what_it_was(result: StudyResult, tmp_path: Path) -> None:
    assert shown(result) == result
    result.save(tmp_path / "result.json")
    assert (tmp_path / "result.json").read_text() == (Path(result.folder) / "result.json").read_text()
