"""Trials that were stopped early, on every page: neither failed nor the best of anything, and always marked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.dashboards.figures.kinds import NOTE, STOPPED, Points
from ranktune.dashboards.figures.panels import Frame, Panel, to_json
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.records.trial import best_of, counts
from ranktune.dashboards.terminal.listing import listing, state
from ranktune.dashboards.views import progress as tuning_value
from ranktune.dashboards.views.registry import build
from ranktune.dashboards.views.solver_trials import observations, pooled
from ranktune.dashboards.web.page import study_json
from tests.support.commands import called
from tests.support.page_studies import append, declare, finish
from tests.support.study_samples import (
    along,
    keyed,
    number,
    raced,
    study_data,
    study_of_splits,
    traces,
    trial,
    trials_of,
)

EARLY: dict[str, Any] = {"stopped": "fold 2 of 5", "error_of_estimate": 0.003}


def panel(data: StudyData, view: str, key: str) -> Panel:
    return keyed(build(view, data), key)


def column(shown: Panel, name: str) -> list[Any]:
    return [row[shown.table.columns.index(name)] for row in shown.table.rows]


@pytest.fixture
def data() -> StudyData:
    """Estimates lie above all complete values: whatever takes one of them for the best is wrong."""
    return study_data(raced(trials_of(60, failing=9)))


def test_the_saved_time_is_that_of_the_skipped_parts() -> None:
    trials = [
        trial(0, "RankSVM", {}, 0.5, seconds=10.0),
        trial(1, "RankSVM", {}, 0.4, seconds=2.0, stopped="fold 2 of 5"),
        trial(2, "RankSVM", {}, 0.4, seconds=1.0, stopped="order 4 of 10"),
        trial(3, "RankSVM", {}, 0.4, seconds=1.0, stopped="once"),  # whoever wrote that: nothing is known of it
    ]
    assert [finished.full_seconds for finished in trials] == [10.0, pytest.approx(5.0), pytest.approx(2.5), 1.0]
    assert counts(trials).saved == pytest.approx(4.5) and counts(trials).spent == 14.0


def test_nothing_that_was_stopped_is_the_best_of_anything(data: StudyData) -> None:
    trials = data.splits[0].trials
    best = best_of(trials)
    assert best is not None and not best.stopped and best.value is not None
    assert max(t.value for t in trials if t.value is not None) > best.value + 0.05
    assert tuning_value.best_by_number(data.splits[0])[-1] == best.value
    assert f"{best.value:.4f}" in panel(data, "overview", "conclusion").note
    assert max(column(panel(data, "overview", "leaderboard"), "Best")) == to_json(best.value)
    assert max(value for value in column(panel(data, "progress", "history-0"), "Best so far") if value) == to_json(
        best.value
    )
    assert column(panel(data, "solvers", "reached-0"), "Best trial")[0] == best.number + 1
    stopped = {t.number + 1 for t in trials if t.stopped}
    for cost in ("nonzeros", "bytes", "microseconds", "seconds"):
        rows = panel(data, "trade-offs", f"{cost}-0").table.rows
        assert not stopped & {row[1] for row in rows if row[0] != "trial"}
    for view in ("solvers", "parameters", "optimiser"):
        for shown in build(view, data):
            for trace in shown.figure["data"] if shown.figure else []:
                if trace.get("name") == "best trial":
                    values = trace["x"] if view == "solvers" else trace["y"]
                    assert max(values) <= best.value + 1e-6, (view, shown.key)
    together = best_of(pooled(data))
    assert together is not None and together is best


@pytest.mark.parametrize(
    ("view", "key"),
    [("progress", "history-0"), ("solvers", "trials-0"), ("trade-offs", "nonzeros-0"), ("optimiser", "noise-0"),
     ("parameters", "slice-0-0")],
)  # fmt: skip
def test_markers_of_stopped_trials_are_open_and_in_the_legend(view: str, key: str, data: StudyData) -> None:
    shown = panel(data, view, key)
    names = [trace.get("name") for trace in traces(shown) if trace.get("showlegend", True)]
    assert names.count(STOPPED) == 1 and len(names) == len(set(names))
    assert NOTE in shown.text
    wanted = {t.number + 1 for t in data.splits[0].trials if t.stopped}
    solver = shown.group if view == "parameters" else None
    wanted &= {t.number + 1 for t in data.splits[0].trials if solver in (None, t.solver)}
    drawn = {}
    for trace in traces(shown):
        symbol = trace.get("marker", {}).get("symbol")
        for text in trace.get("text", ()):
            if "trial " in text and symbol and symbol != "star":
                drawn[int(text.split("trial ")[1].split(",")[0])] = (symbol.endswith("-open"), "stopped after" in text)
    assert {at for at, (is_open, _) in drawn.items() if is_open} == wanted
    assert all(is_open == labelled for is_open, labelled in drawn.values())


def test_without_stopped_trials_nothing_is_said_of_them() -> None:
    data = study_data(trials_of(40))
    for view in ("overview", "progress", "solvers", "parameters", "trade-offs", "optimiser", "trials"):
        panels = build(view, data)
        assert panels, view
        for shown in panels:
            assert STOPPED not in [trace.get("name") for trace in (shown.figure or {"data": []})["data"]]
            assert "stopped early" not in shown.text, (view, shown.key)


def test_open_markers_keep_the_labels_and_errors_of_their_points() -> None:
    def drawn(*stopped: str) -> list[dict[str, Any]]:
        rows = [(k, part, k, k + 3, k) for k, part in enumerate(stopped, 1)]
        kind = Points("x", "y", {}, {}, {"a": {"symbol": "star"}}, "a", error="e")
        return list(kind(Frame(("Trial", "Stopped after", "x", "y", "e"), rows))["data"])

    full, empty, _ = drawn("", "fold 1 of 5", "")
    assert (full["x"], full["text"], full["error_y"]["array"]) == ([1, 3], ["a, trial 1", "a, trial 3"], [1, 3])
    assert (empty["x"], empty["y"], empty["error_y"]["array"]) == ([2], [5], [2])
    assert empty["marker"]["symbol"] == "star-open" and full["marker"]["symbol"] == "star"
    assert empty["showlegend"] is False and full["legendgroup"] == empty["legendgroup"]
    for stopped in ("", "fold 1 of 5"):
        only, *_ = drawn(stopped, stopped, stopped)
        assert only.get("showlegend", True)  # else the legend would not have the solver at all


def test_progress_counts_and_overview_has_the_saved_time(data: StudyData) -> None:
    counted = counts(data.splits[0].trials)
    assert counted.stopped > 10 and counted.failed > 3 and counted.saved > 1.0
    shown = panel(data, "progress", "time-left")
    rows = {row[0]: row[1] for row in shown.table.rows}
    assert (rows["evaluated in full"], rows["failed"]) == (counted.complete, counted.failed)
    assert rows["stopped early"] == counted.stopped
    assert rows["processor seconds saved by early stopping, about"] == pytest.approx(counted.saved, abs=1e-3)
    (sentence,) = [s for s in panel(data, "overview", "conclusion").note.split(". ") if "stopped early" in s]
    assert sentence.startswith(f"{counted.stopped} trials were stopped early")
    assert f"{counted.saved / (counted.spent + counted.saved):.0%}" in sentence
    assert f"60 trials, {counted.stopped} stopped early" in study_json(data)["facts"]
    lanes = panel(data, "progress", "workers-0")
    assert sum(map(bool, column(lanes, "Stopped after"))) == counted.stopped
    hatched = [
        shape for trace in traces(lanes) if trace["type"] == "bar" for shape in trace["marker"]["pattern"]["shape"]
    ]
    assert sum(map(bool, hatched)) == counted.stopped
    assert sum(column(panel(data, "solvers", "reached-0"), "Stopped early")) == counted.stopped


def test_distributions_include_estimates_and_defaults_are_the_requested_parameters() -> None:
    space = study_of_splits([], solvers=("RankSVM",)).study.union_space()
    (params,) = (space.split(default)[1] for default in space.defaults())
    strength = float(params["C"])  # type: ignore[arg-type]
    first = trial(0, "RankSVM", dict(params) | {"C": strength / 4}, 0.6)
    first = replace(first, path_parameter="C", path=((strength / 4, 0.6), (strength, 0.55)))
    others = [trial(k, "RankSVM", {}, 0.3 + 0.01 * k, **EARLY) for k in range(1, 5)]
    data = study_data([first, *others], solvers=("RankSVM",))
    shown = panel(data, "solvers", "reached-0")
    row = dict(zip(shown.table.columns, shown.table.rows[0], strict=True))
    assert (row["Trials"], row["Stopped early"], row["Failed"]) == (5, 4, 0)
    assert row["Median"] == pytest.approx(0.33)
    assert (row["Best"], row["Best trial"], row["Defaults"]) == (0.6, 1, 0.55)
    assert "0.0500 above the best of the solvers' defaults" in panel(data, "overview", "worth").note


def test_times_of_stopped_trials_are_those_of_all_parts() -> None:
    trials = [trial(0, "RankSVM", {}, 0.5, seconds=1.0), trial(1, "RankSVM", {}, 0.4, seconds=1.0, **EARLY)]
    shown = panel(study_data(trials), "trade-offs", "seconds-0")
    (empty,) = [t for t in traces(shown) if t["name"] == "RankSVM" and t["marker"]["symbol"].endswith("-open")]
    assert empty["x"] == [2.5]


def test_observations_have_the_error_of_an_estimate_and_the_values_of_a_path() -> None:
    sure = trial(0, "RankSVM", {"C": 1.0}, 0.5)
    unsure = trial(1, "RankSVM", {"C": 1.0}, 0.4, **EARLY)
    (walked,) = along([trial(2, "RankSVM", {"C": 1.0}, 0.6)], "C")
    result = observations([sure, unsure, walked.shifted(0.1)])
    assert [observation.partial for observation, _ in result[:2]] == [None, pytest.approx(0.003**2)]
    assert [observation is not None for _, observation in result] == [True, True, True, False, False]
    assert {observation.params["RankSVM.C"]: observation.value for observation, _ in result[2:]} == {
        1.0: 0.7, 0.5: pytest.approx(0.69), 2.0: pytest.approx(0.69),
    }  # fmt: skip


def test_an_estimate_changes_the_surrogate_less_than_a_value() -> None:
    def expected(of: dict[str, Any]) -> float:
        trials = list(trials_of(24, ["RankSVM"]))
        trials[7] = replace(trials[7], value=0.9, **of)
        data = study_data(trials, solvers=["RankSVM"])
        rows = panel(data, "optimiser", "noise-0").table.rows
        return float(np.mean([number(row[3]) for row in rows if row[0] != 8]))

    assert expected({"stopped": "fold 1 of 5", "error_of_estimate": 0.4}) < expected({}) - 1e-3


def test_stopped_trials_are_in_the_record_and_every_export(tmp_path: Path) -> None:
    trials = list(trials_of(5))
    trials[3] = replace(trials[3], value=0.9, stopped="fold 2 of 5", error_of_estimate=0.004, parts=(0.4, 0.3))
    trials[4] = trial(4, "RankSVM", {}, None, error="it did not converge")
    declare(tmp_path, "s")
    append(tmp_path, "s", trials)
    data = open_study(tmp_path / "s")
    read = data.splits[0].trials[3]
    assert (read.stopped, read.value, read.parts) == ("fold 2 of 5", 0.9, (0.4, 0.3))
    assert read.error_of_estimate == pytest.approx(0.004)
    result = counts(data.splits[0].trials)
    assert (result.complete, result.stopped, result.failed) == (3, 1, 1)
    assert best_of(data.splits[0].trials[3:]) is None
    line = state(tmp_path / "s")
    highest = max(t.value for t in trials[:3] if t.value is not None)
    assert (line["done"], line["stopped"], line["failed"], line["best"]) == (5, 1, 1, pytest.approx(highest))
    table = panel(data, "trials", "trials")
    assert column(table, "stopped after") == [None, None, None, "fold 2 of 5", None]
    assert "estimate" in table.note
    shown = called("show", "s", "--home", str(tmp_path))
    assert shown.stdout.startswith("s: 5 of 20 trials, 1 stopped early, 1 failed, best ndcg@10 ")
    asked = called("show", "s", "--home", str(tmp_path), "--json")
    assert (json.loads(asked.stdout)["stopped"], json.loads(asked.stdout)["failed"]) == (1, 1)


def test_a_conclusion_of_a_time_before_racing_can_still_be_read(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    result = finish(tmp_path, "s").as_dict()
    del result["stopped"]
    (tmp_path / "s" / "result.json").write_text(json.dumps(result))
    (line,) = listing(tmp_path)
    assert (line["state"], line["stopped"]) == ("finished", 0)


def test_a_study_that_ends_by_expected_improvement_has_no_number_of_trials() -> None:
    data = study_data(trials_of(12), until=0.002)
    assert data.progress == "12"
    assert "expected to improve ndcg@10 by less than 0.002, 500 at most" in panel(data, "progress", "time-left").note
