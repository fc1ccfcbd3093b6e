"""The registry of views and the views of the frame: overview, progress, trials, compare."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.dashboards.figures.panels import Panel, panels_json, to_json
from ranktune.dashboards.records.study import StudyData, duration, open_study
from ranktune.dashboards.views import compare as view_compare
from ranktune.dashboards.views import progress as tuning_value
from ranktune.dashboards.views.progress import seconds_a_trial
from ranktune.dashboards.views.registry import VIEWS, build, view_json
from ranktune.dashboards.web.page import study_json
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.samplers.belief import MAX_TRIALS_IN_BELIEF
from tests.support.finished import Finished
from tests.support.page_studies import hostile_data
from tests.support.study_samples import (
    HOSTILE,
    concluded,
    conditions,
    evidence_of,
    figure_of,
    keyed,
    named,
    numbers,
    study_data,
    study_of_splits,
    traces,
    trial,
    trials_of,
)

LABELS = ("LambdaRank", "RankSVM")


def states(folder: Path) -> dict[str, StudyData]:
    studies = conditions()
    trials = trials_of(12)
    studies["finished"] = study_data(trials, evidence_of(), result=concluded("sample"))
    folds = [(f"Fold{k}", trials, None) for k in (1, 2)]
    studies["folds"] = study_of_splits(folds, result=concluded("s", LABELS, ("Fold1", "Fold2")))
    studies["hostile"] = hostile_data(folder / "hostile")
    studies["by time"] = study_data(trials, timeout=60.0)
    return studies


def whole(key: str, data: StudyData) -> list[Panel]:
    """Build a view and check its panels."""
    result = build(key, data)
    json.dumps(panels_json(result), allow_nan=False)
    assert len({panel.key for panel in result}) == len(result)
    assert all(len(row) == len(panel.table.columns) for panel in result for row in panel.table.rows)
    return result


@pytest.mark.parametrize("key", VIEWS)
def test_every_view_of_a_study_in_every_state_says_something(key: str, tmp_path: Path) -> None:
    for data in states(tmp_path).values():
        for panel in whole(key, data):
            assert panel.title and (panel.table.rows or panel.note)
            assert not re.search(r"(?<![\d.,-])1 (finished |test |validation )?(trials|queries|values)\b", panel.text)


@pytest.mark.parametrize("key", ["solvers", "parameters", "queries", "trade-offs", "weights", "optimiser"])
def test_a_study_that_has_run_is_drawn_with_its_scores_and_models(key: str, finished: Finished) -> None:
    data = open_study(finished.shared("blend") / "blend")
    panels = whole(key, data)
    assert any(panel.figure is not None for panel in panels) and data.result is not None
    if key == "queries":
        chosen = numbers(row[2] for row in keyed(panels, "difference-0").table.rows)
        assert data.result.best.test is not None
        assert chosen.mean() == pytest.approx(data.result.best.test.mean, abs=1e-5)
    model = data.splits[0].model("RidgeRanker")
    if key == "weights" and isinstance(model, LinearModel):
        shown = {panel.group: panel for panel in named(panels, "weights")}["RidgeRanker"].table.rows
        assert len(shown) == model.nonzeros
        assert numbers([shown[0][1]])[0] == pytest.approx(max(model.weights, key=abs), rel=1e-5)


def hostile_choices(_: Path) -> StudyData:
    """A study whose choices, solvers, parameters and split have hostile names."""
    params: dict[str, Any] = {"C": 1.0, "weight": "ndcg", "optimizer": "fobos", "pairs": "all"}
    trials = [
        trial(k, solver, {"loss": name, **params}, 0.5 + 0.01 * k, path_parameter="C", path=((1.0, 0.5), (2.0, 0.4)))
        for solver in ("RankSVM", "ElasticRank")
        for k, name in enumerate(HOSTILE)
    ]
    trials += [trial(99, HOSTILE[0], {HOSTILE[1]: 3.0, "l1": 0.1}, 0.5)]
    return study_of_splits([(HOSTILE[0], trials, None)], solvers=["RankSVM", "ElasticRank"])


@pytest.mark.parametrize("make", [hostile_data, hostile_choices])
@pytest.mark.parametrize("key", VIEWS)
def test_no_name_reaches_a_figure_as_markup(key: str, make: Callable[[Path], StudyData], tmp_path: Path) -> None:
    panels = build(key, make(tmp_path / "h"))
    figures = json.dumps([panel.figure for panel in panels], allow_nan=False)
    assert "<script" not in figures and "<b>" not in figures and "\\u202e" not in figures
    assert len(figures) < 400_000  # no name of 10,000 characters
    assert all(len(panel.title) < 500 for panel in panels)


def test_every_view_is_there_in_order() -> None:
    assert list(VIEWS) == [
        "overview", "progress", "solvers", "parameters", "choices", "queries", "trade-offs", "weights", "optimiser",
        "trials", "drift",
    ]  # fmt: skip
    with pytest.raises(StudyError, match="no view 'overveiw'"):
        build("overveiw", study_of_splits([]))


def test_json_has_no_nan() -> None:
    assert to_json({"a": [np.float64("nan"), np.inf, np.int64(3), (1.5, None)]}) == {"a": [None, None, 3, [1.5, None]]}
    assert to_json([np.pi, 1e-9 / 3, 12_345_678.0]) == [3.14159, 3.33333e-10, 12_345_678.0]  # six digits, or whole
    with pytest.raises(TypeError, match="which JSON does not have"):
        to_json(object())


def test_the_leaderboard_has_the_numbers_of_the_result(tmp_path: Path) -> None:
    result = concluded("sample")
    panel = keyed(build("overview", states(tmp_path)["finished"]), "leaderboard")
    for r, row in zip(result.leaderboard, panel.table.rows, strict=True):
        named = dict(zip(panel.table.columns, row, strict=True))
        assert r.vali is not None and r.test is not None
        assert (named["model"], named["validation"], named["test"]) == (r.solver, r.vali.mean, r.test.mean)
        assert (named["test low"], named["test high"]) == (r.test.low, r.test.high)
        assert (named["p Holm"], named["verdict"]) == (r.p_holm, r.verdict)
    assert traces(panel)[1]["x"] == [row.test.mean for row in result.leaderboard if row.test is not None]


def test_best_so_far_stops_at_the_first_trial_that_is_missing() -> None:
    trials = [trial(k, "RankSVM", {}, value) for k, value in ((0, None), (1, 0.2), (2, 0.1), (4, 0.9))]
    result = tuning_value.best_by_number(study_data(trials).splits[0])
    np.testing.assert_array_equal(result, [np.nan, 0.2, 0.2])


def test_time_left_forgets_pauses() -> None:
    steady = [trial(k, "RankSVM", {}, 0.5, begun=10.0 * k, ended=10.0 * k + 10) for k in range(9)]
    assert seconds_a_trial(steady) == pytest.approx(10)
    resumed = [*steady, *(trial(9 + k, "RankSVM", {}, 0.5, begun=1e6 + 10 * k, ended=1e6 + 10 * k + 10)
                          for k in range(9))]  # fmt: skip
    pace = seconds_a_trial(resumed)
    assert pace is not None and pace < 25
    assert seconds_a_trial(steady[:1]) is None
    assert [duration(s) for s in (5, 600, 7200)] == ["5 s", "10 min", "2.0 h"]


def test_states_and_progress(tmp_path: Path) -> None:
    result = states(tmp_path)
    assert result["finished"].state == "finished"
    assert result["running"].state == "stopped"
    assert result["by time"].progress == "12" and result["one"].progress == "1 of 30"
    for trials, fact in ((30, "1 of 30 trials"), (1, "1 of 1 trial")):
        assert fact in study_json(replace(result["one"], study=replace(result["one"].study, trials=trials)))["facts"]
    assert "1 trial" in study_json(replace(result["one"], study=result["by time"].study))["facts"]
    history, worth = build("progress", result["one"])[0], keyed(build("overview", result["one"]), "worth")
    assert figure_of(history)["layout"]["xaxis"]["range"] == [0.5, 1.5]
    for panel in (history, worth):
        low, high = figure_of(panel)["layout"]["yaxis"]["range"]
        assert high - low < 0.1 and low < traces(panel)[0]["y"][0] < high
    (note,) = [panel.note for panel in build("progress", result["by time"]) if panel.key == "time-left"]
    assert "The study takes 60 s" in note


def test_lanes_mark_failures_and_restarts() -> None:
    trials = [trial(0, "RankSVM", {}, 0.5), trial(1, "RankSVM", {}, None), trial(2, "RankSVM", {}, 0.4, restarts=1)]
    panels = build("progress", study_data(trials))
    lanes = keyed(panels, "workers-0")
    marked = {trace["name"]: trace["x"] for trace in traces(lanes) if trace["type"] == "scatter"}
    assert marked == {"failed": [1.5], "restarted": [2.5]}
    assert lanes.table["Mark"] == [None, "failed", "restarted"] and lanes.table["Trial"] == [1, 2, 3]


def test_ten_thousand_trials_are_drawn_in_few_points() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=10_000)
    trials = [trial(k, "RankSVM", {}, float(value), worker=str(k % 4)) for k, value in enumerate(values)]
    data = study_data(trials)
    for key in ("overview", "progress"):
        for panel in build(key, data):
            for trace in panel.figure["data"] if panel.figure else []:
                assert len(trace["x"]) <= 2600
    history = keyed(build("progress", data), "history-0")
    assert max(traces(history)[0]["y"]) == to_json(max(values))  # the best is never thinned away
    assert traces(history)[1]["y"][-1] == to_json(max(values))
    assert len(view_json("trials", data)["panels"][0]["table"]["rows"]) == 10_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("key", "most", "said"),
    [
        ("parameters", 2_000_000, "are shown"),
        ("trade-offs", 600_000, "of 10000 are shown"),
        ("optimiser", 300_000, f"fitted to {MAX_TRIALS_IN_BELIEF} of 10000 trials"),
    ],
)
def test_pages_of_ten_thousand_trials_stay_small(key: str, most: int, said: str) -> None:
    panels = build(key, study_data(trials_of(10_000, ["RankSVM"]), solvers=["RankSVM"]))
    assert len(json.dumps([panel.figure for panel in panels])) < most
    assert any(said in panel.note for panel in panels)


def test_two_studies_compared(tmp_path: Path) -> None:
    a = study_data(trials_of(12), folder=tmp_path / "a", result=concluded("a"))
    b = study_data(trials_of(8, seed=1), folder=tmp_path / "b", seed=7)
    panels = {panel.key: panel for panel in view_compare.panels(a, b)}
    assert [row for row in panels["settings"].table.rows] == [["seed", 0, 7]]
    assert len(traces(panels["race"])) == 2
    assert panels["race"].table.columns == ("trials", "a", "b")
    assert panels["leaderboard-1"].table.rows and panels["leaderboard-2"].note == "The study is not finished."
    same = {panel.key: panel for panel in view_compare.panels(a, a)}
    assert same["settings"].note == "Every setting is the same."
    other = study_data(trials_of(8), folder=tmp_path / "c", metric="map")
    race = keyed(view_compare.panels(a, other), "race")
    assert race.figure is None and "different metrics" in race.note
