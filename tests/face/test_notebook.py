"""A result that shows itself."""

import builtins
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import narwhals
import numpy as np
import pytest

import ranktune
from ranktune.dashboards.records import trial as frames
from ranktune.notebook import StudyResult, shown
from ranktune.solvers.core.errors import ParameterError
from ranktune.terminal import Notebook
from ranktune.tuner.search.progress import TrialReport
from tests.support.engine_samples import graded
from tests.support.study_samples import trial


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    solvers, home = ("RidgeRanker", "BestFeature"), tmp_path_factory.mktemp("home")
    return ranktune.tune(graded(24, 0), solvers=solvers, trials=3, sampler="random", name="s", home=home)


def test_it_is_a_table_with_its_conclusion(result: StudyResult) -> None:
    results: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            results.append(tag)

    text = result._repr_html_()
    Reader().feed(text)
    assert results.count("table") == 1 and results.count("tr") == 1 + len(result.leaderboard)
    assert f"Use {result.best.solver}" in text
    assert "script" not in results and results.count("th") <= 8  # the picture is one of them
    points = [float(x) for x in re.findall('x1="([0-9.]+)"[^>]*stroke-linecap', text)]
    means = [row.test.mean for row in result.leaderboard if row.test]
    scale = np.polyfit(means, points, 1)
    np.testing.assert_allclose(np.polyval(scale, means), points, atol=0.06)
    assert scale[0] > 0 and len({*points}) > 1 and max(points) <= 300


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
    means = [row.test.mean for row in result.leaderboard if row.test is not None]
    assert list(result.plot_leaderboard().data[-1].x) == pytest.approx(means, rel=1e-5)
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


def test_representations_are_short(result: StudyResult) -> None:
    assert repr(result).startswith("StudyResult(study='s', metric='ndcg@10', best=") and len(repr(result)) < 120
    study = ranktune.Study(name="s", trials=3, solvers=["RankSVM"], mlflow="http://me:secret@host:5000")
    assert repr(study) == "Study(solvers=['RankSVM'], trials=3, name='s', mlflow='http://me:***@host:5000')"
    assert repr(ranktune.Study(solvers=["RankSVM"])) == "Study(solvers=['RankSVM'])"
    queries = ranktune.Queries.from_arrays(np.ones((4, 3)), [0, 1, 0, 1], group=[2, 2])
    assert repr(queries) == "Queries(2 queries, 4 documents, 3 features)"
    assert len(repr(result.best_model)) < 100


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "none"])
def test_trials_and_leaderboard_are_data_frames(
    result: StudyResult, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "LIBRARIES", () if library == "none" else (library,))
    if library != "none":
        pytest.importorskip(library)
    trials, rows = result.trials_frame(), result.leaderboard_frame()
    if library != "none":
        trials, rows = (narwhals.from_native(frame).to_dict(as_series=False) for frame in (trials, rows))
    assert list(trials["number"]) == [0, 1, 2] and set(trials["solver"]) == {"RidgeRanker", "BestFeature"}
    assert {"RidgeRanker.alpha", "state", "value", "seconds"} <= set(trials)
    assert list(rows["solver"]) == [row.solver for row in result.leaderboard]
    assert list(rows["test_low"]) == [row.test.low for row in result.leaderboard if row.test is not None]


def test_columns_have_one_type() -> None:
    columns = frames.trial_columns([trial(0, "RankSVM", {"C": 1}, 0.5), trial(1, "RankSVM", {"C": 0.5}, 0.5)])
    assert columns["RankSVM.C"] == [1.0, 0.5] and isinstance(columns["RankSVM.C"][0], float)
    columns = frames.trial_columns([trial(0, "A", {"p": 1}, 0.5), trial(1, "A", {"p": "x"}, None)])
    assert columns["A.p"] == ["1", "x"] and columns["state"] == ["complete", "failed"]


def test_the_record_is_an_optuna_study(result: StudyResult) -> None:
    study = result.optuna_study
    assert len(study.trials) == 3 and study.best_value == max(
        trial.value for trial in study.trials if trial.value is not None
    )


def test_a_notebook_shows_progress_in_one_output(result: StudyResult, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, what: object) -> None:
            shown.append(repr(what))

    library = SimpleNamespace(display=lambda what, display_id: Handle())
    monkeypatch.setitem(sys.modules, "IPython.display", library)
    notebook = Notebook()
    notebook.stage("reading <x>")
    notebook.split("", 3, 0)
    notebook.trial(TrialReport("", 0, 3, 3, "RankSVM", 0.5, None, 0.5, "RankSVM", seconds_left=3.0))
    notebook.stage("refitting")
    notebook.answer(result)
    notebook.stage("explaining")
    assert "&lt;" not in repr(notebook) and "<" not in notebook._repr_html_().replace("<br>", "")
    notebook.close()
    assert shown[0] == "reading <x>"
    assert shown[-5:-3] == [
        "trials 3/3, best 0.5000 (RankSVM)\n0:03 left",
        "trials 3/3, best 0.5000 (RankSVM)\nrefitting",
    ]
    lines = shown[-2].splitlines()
    assert lines[1].startswith("Use ") and lines[-1] == "explaining"
    assert shown[-1].splitlines() == lines[:-1]
