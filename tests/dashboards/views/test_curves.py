"""Validation curves: a line a trial along the parameter that one fit goes through, with the trial's value on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.records.trial import best_of
from ranktune.dashboards.views.parameters import MAX_CURVES, panels
from ranktune.dashboards.views.progress import trials_table
from tests.support.page_studies import append, declare
from tests.support.study_samples import (
    HOSTILE,
    along,
    named,
    number,
    raced,
    study_data,
    study_of_splits,
    traces,
    trial,
    trials_of,
)


def curves(data: StudyData) -> Panel:
    (result,) = named(panels(data), "curves")
    return result


def drawn(panel: Panel, mode: str) -> list[dict[str, Any]]:
    return [trace for trace in traces(panel) if trace["mode"] == mode and trace["x"] != [None]]


def walked(count: int, **more: Any) -> StudyData:
    trials = along(raced(trials_of(count, ["RankSVM"])), "C")
    return study_data(trials, solvers=["RankSVM"], **more)


def test_each_line_is_the_path_of_a_trial_and_the_dot_its_value() -> None:
    data = walked(12)
    shown, trials = curves(data), data.splits[0].trials
    lines = drawn(shown, "lines")
    assert len(lines) == len(trials)
    by_trial = {line["text"][0].split("<br>")[0].split(",")[0]: line for line in lines}
    for t in trials:
        line = by_trial[f"trial {t.number + 1}"]
        assert line["x"] == pytest.approx([value for value, _ in t.path], rel=1e-5)
        assert line["y"] == pytest.approx([mean for _, mean in t.path], rel=1e-5)
        assert ("dash" in line["line"]) == bool(t.stopped)
    dots = next(trace for trace in drawn(shown, "markers") if trace["name"] == "best of a trial")
    assert sorted(dots["y"]) == pytest.approx(sorted(t.value or 0.0 for t in trials), rel=1e-5)
    star = next(trace for trace in drawn(shown, "markers") if trace["name"] == "best trial")
    best = best_of(trials)
    assert best is not None and star["y"] == [pytest.approx(best.value, rel=1e-5)]
    assert star["x"] == [pytest.approx(best.params["C"], rel=1e-5)]
    assert sum(line["line"]["width"] > 2 for line in lines) == 1
    full = sum(not t.stopped for t in trials)
    assert f"In {full} of {full} trials evaluated in full another value" in shown.note
    assert "by 0.01 in the median" in shown.note


def test_the_table_says_what_the_lines_do() -> None:
    shown = curves(walked(6))
    assert shown.table.columns == ("Trial", "Split", "C", "ndcg@10", "Which", "Stopped after")
    points = sorted((x, y) for line in drawn(shown, "lines") for x, y in zip(line["x"], line["y"], strict=True))
    assert points == sorted((number(row[2]), number(row[3])) for row in shown.table.rows)
    assert sum(row[4] == "best" for row in shown.table.rows) == sum(row[4] == "requested" for row in shown.table.rows)


def test_many_curves_are_thinned_to_the_best_and_some_others() -> None:
    data = walked(300)
    shown = curves(data)
    assert len(drawn(shown, "lines")) == MAX_CURVES
    assert f"{MAX_CURVES} of 300 curves are shown" in shown.note
    ahead = sorted((t for t in data.splits[0].trials if not t.stopped), key=lambda t: -(t.value or 0.0))[:15]
    assert {t.number + 1 for t in ahead} <= {row[0] for row in shown.table.rows}


def test_colours_have_a_key() -> None:
    trials = along(trials_of(40, ["LambdaRank"]), "l1")
    for shown in (curves(walked(40)), curves(study_data(trials, solvers=["LambdaRank"]))):
        key = {t["line"]["color"] for t in traces(shown) if t["x"] == [None] and ": " in t["name"]}
        assert len(key) > 1 and {line["line"]["color"] for line in drawn(shown, "lines")} <= key


def test_curves_of_several_splits_are_on_one_level() -> None:
    splits = [(name, along(trials_of(8, ["RankSVM"], seed=1, level=level), "C"), None)
              for name, level in (("a", 0.3), ("b", 0.7))]  # fmt: skip
    shown = curves(study_of_splits(splits, solvers=["RankSVM"]))
    by_split = {name: sorted(number(row[3]) for row in shown.table.rows if row[1] == name) for name in ("a", "b")}
    assert by_split["a"] == pytest.approx(by_split["b"], abs=0.01)
    assert "same median" in shown.note


def test_there_is_no_picture_without_a_path() -> None:
    trials = trials_of(8, ["RankSVM"])
    strange = [
        replace(trials[0], path_parameter="C", path=((1.0, 0.5),)),  # a point is no line
        replace(trials[1], path_parameter="C", path=((1e9, 0.5), (2e9, 0.4))),  # its own value is not on it
        replace(trials[2], path_parameter=HOSTILE[0], path=((1.0, 0.5), (2.0, 0.4))),
    ]
    data = study_data([*strange, *trials[3:]], solvers=["RankSVM"])
    assert not named(panels(data), "curves")


def test_paths_survive_the_record_on_the_level_of_the_value(tmp_path: Path) -> None:
    """A trial that was stopped has a path of what was evaluated; on pages it is where the estimate is."""
    (written,) = along([trial(0, "RankSVM", {"C": 1.0}, 0.5)], "C")
    (halted,) = along([trial(1, "RankSVM", {"C": 1.0}, 0.6)], "C")
    halted = replace(halted, value=0.45, stopped="fold 1 of 5", error_of_estimate=0.01)
    declare(tmp_path, "s")
    append(tmp_path, "s", [written, halted])
    data = open_study(tmp_path / "s")
    first, second = data.splits[0].trials
    assert first.path_parameter == "C" and dict(first.path) == pytest.approx(dict(written.path))
    assert dict(second.path) == pytest.approx({0.25: 0.43, 0.5: 0.44, 1.0: 0.45, 2.0: 0.44})
    table = trials_table(data)
    paths = [row[table.columns.index("path")] for row in table.rows]
    assert paths[0] == "C 0.25: 0.4800, 0.5: 0.4900, 1: 0.5000, 2: 0.4900"
    assert (
        first.requested_params["C"] == 2.0
        and first.requested_value == pytest.approx(0.49)
        and second.requested_value is None
    )
