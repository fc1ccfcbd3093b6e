"""The parameters' view: what matters, slices, surfaces and dependences of each solver."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.views.parameters import panels
from ranktune.dashboards.views.solver_trials import MIN_TRIALS_FOR_SURFACE
from ranktune.solvers.core.space import Float, Int
from ranktune.solvers.registry import solver_class
from tests.support.study_samples import (
    figure_of,
    named,
    number,
    numbers,
    study_data,
    study_of_splits,
    traces,
    trials_of,
)


def running(solver: str, count: int, **more: Any) -> list[Panel]:
    return panels(study_data(trials_of(count, [solver]), solvers=[solver], **more))


def test_the_only_parameter_that_matters_comes_first() -> None:
    result = running("LambdaRank", 60)
    shown = named(result, "importance")[0]
    assert shown.table.rows[0][0] == "l1"
    assert number(shown.table.rows[0][3]) > 0.05
    for name, _, _, low, _ in shown.table.rows[1:]:
        assert number(low) <= 0.0, name
    assert named(result, "slice")[0].table.columns[2] == "l1"
    assert named(result, "contour")[0].table.columns[2] == "l1"
    bars = traces(shown)[0]
    assert bars["x"] == [row[2] for row in shown.table.rows]
    low = np.array(bars["x"]) - np.array(bars["error_x"]["arrayminus"])
    np.testing.assert_allclose(low, numbers(row[3] for row in shown.table.rows), atol=1e-5)


@pytest.mark.parametrize("solver", ["ElasticRank", "RankSVM", "DominationRank"])
def test_slices_show_the_trials_in_which_the_parameter_was_active(solver: str) -> None:
    trials = trials_of(40, [solver])
    result = panels(study_data(trials, solvers=[solver]))
    shown = {panel.table.columns[2]: panel for panel in named(result, "slice")}
    conditional = 0
    for parameter in solver_class(solver).space:
        if parameter.name not in shown:
            continue
        panel = shown[parameter.name]
        active = [t.number + 1 for t in trials if parameter.name in t.params]
        conditional += len(active) < len(trials)
        assert [row[0] for row in panel.table.rows] == active
        points = traces(panel)[0]
        assert len(points["x"]) == len(points["y"]) == len(panel.table.rows)
        assert points["y"] == [row[3] for row in panel.table.rows]
        log = isinstance(parameter, Float | Int) and parameter.log
        assert (figure_of(panel)["layout"]["xaxis"].get("type") == "log") == log
        assert (f"In {len(active)} of 40 trials" in panel.note) == (len(active) < 40)
    assert conditional == sum(parameter.when is not None for parameter in solver_class(solver).space)


def test_surfaces_need_trials_and_say_so() -> None:
    few, enough = (running("RankSVM", n) for n in (MIN_TRIALS_FOR_SURFACE - 1, MIN_TRIALS_FOR_SURFACE))
    kinds = [[trace["type"] for trace in traces(named(shown, "contour")[0])] for shown in (few, enough)]
    assert kinds[0] == ["scatter"]
    assert kinds[1] in (["heatmap", "scatter"], ["contour", "scatter"])
    assert "too few" in named(few, "contour")[0].note
    assert not named(few, "dependence")
    assert any(panel.figure is not None for panel in named(enough, "dependence"))


def test_dependences_follow_the_metric() -> None:
    result = running("LambdaRank", 80)
    shown = next(panel for panel in named(result, "dependence") if panel.table.columns[0] == "l1")
    best = max(shown.table.rows, key=lambda row: number(row[1]))
    assert 1e-4 < number(best[0]) < 1e-2  # the score is highest at 1e-3
    line = traces(shown)[1]
    assert line["x"] == [row[0] for row in shown.table.rows]
    assert line["y"] == [row[1] for row in shown.table.rows]
    band = traces(shown)[0]["y"]
    half = len(band) // 2
    assert band[:half] == [row[3] for row in shown.table.rows]
    assert band[half:] == [row[2] for row in shown.table.rows][::-1]


def test_splits_are_pooled_on_one_level() -> None:
    low, high = trials_of(30, ["RankSVM"], seed=1, level=0.3), trials_of(30, ["RankSVM"], seed=1, level=0.7)
    result = panels(study_of_splits([("a", low, None), ("b", high, None)], solvers=["RankSVM"]))
    shown = named(result, "slice")[0]
    by_split = {name: numbers(row[3] for row in shown.table.rows if row[1] == name) for name in ("a", "b")}
    np.testing.assert_allclose(by_split["a"], by_split["b"], atol=1e-5)
    assert np.median(by_split["a"]) == pytest.approx(
        0.5 * (np.median(numbers(t.value for t in low)) + np.median(numbers(t.value for t in high))), abs=1e-5
    )
    assert "same median" in shown.note


def test_the_whole_search_space_says_which_choice_matters() -> None:
    """Three solvers on levels .1 apart: too few trials for each of them, enough for all together."""
    names = ("LambdaRank", "RankSVM", "RidgeRanker")
    levels = {name: 0.3 + 0.1 * k for k, name in enumerate(names)}
    trials = [replace(t, value=(t.value or 0.0) + levels[t.solver]) for t in trials_of(27, names)]
    result = panels(study_data(trials, solvers=names))
    shown = result[0]
    assert (shown.key, shown.group) == ("importance", "") and traces(shown)
    assert shown.table.rows[0][:2] == ["solver", 27]
    assert number(shown.table.rows[0][3]) > 0.0
    assert "LambdaRank.l1" in [row[0] for row in shown.table.rows]
    assert all("too few" in panel.note for panel in named(result, "importance-"))
    by_name = {str(row[0]): row[1] for row in shown.table.rows}
    assert by_name["RankSVM.C"] == 9
    few = panels(study_data([*trials_of(20, names[:1]), *trials_of(4, names[1:])], solvers=names))
    assert all(not str(row[0]).startswith(("RankSVM", "RidgeRanker")) for row in few[0].table.rows)


def test_one_or_two_trials_are_not_drawn() -> None:
    for count, drawn in ((1, False), (2, False), (3, True)):
        result = running("RankSVM", count)
        assert bool(named(result, "slice")) == drawn
        assert result[0].note.startswith("1 trial of this solver has" if count == 1 else f"{count} trials of this")
        assert ("the trials view lists them" in result[0].note) != drawn


def test_one_solver_needs_no_panel_of_the_whole_search_space() -> None:
    assert running("RankSVM", 30)[0].key == "importance-0"
    few = panels(study_data(trials_of(4, ["RankSVM"]), solvers=["RankSVM", "RidgeRanker"]))
    assert few[0].figure is None and "too few, 10 are needed" in few[0].note


def test_a_report_in_brief_names_the_command_that_adds_the_importance() -> None:
    whole = study_data(trials_of(60, ["RankSVM", "LambdaRank"]))
    brief = panels(replace(whole, brief=True))
    assert [panel.key for panel in brief] == [panel.key for panel in panels(whole)]
    for panel in named(brief, "importance"):
        assert not panel.table.rows and f"`ranktune show {whole.name} --page FILE`" in panel.note
