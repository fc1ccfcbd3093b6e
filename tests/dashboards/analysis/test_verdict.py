"""A study in short: what was chosen, the runner-up, why, the gain, and what to watch."""

from pathlib import Path
from typing import Any

import pytest

from ranktune.dashboards.analysis.verdict import verdict
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views import compare, overview
from tests.support.page_studies import concluded
from tests.support.study_samples import keyed, study_data

LABELS = ("LambdaRank", "RankSVM", "baseline")
GAIN = {"baseline": "column:old", "part": "test", "difference": 0.02, "queries": 40, "p_randomisation": 0.2}


def data_of(name: str = "sample", **more: Any) -> StudyData:
    return study_data(folder=Path(name), result=concluded("s", LABELS) | more)


def test_an_unfinished_study_has_none() -> None:
    assert verdict(study_data()) == []


@pytest.mark.parametrize(("low", "watched"), [(-0.01, True), (0.01, False)])
def test_every_question_has_its_answer_and_doubts_are_named(low: float, watched: bool) -> None:
    data = data_of(gain=GAIN | {"interval": [low, 0.05]}, expected_on_test_interval=[0.1, 0.2])
    assert data.result is not None
    data.result["leaderboard"][1]["test"] = 0.9
    said = dict(verdict(data))
    assert list(said) == ["chosen", "runner-up", "why", "gain", "expected", "watch"]
    assert said["chosen"].startswith("LambdaRank: validation 0.5000 [0.4500, 0.5500]")
    assert said["runner-up"].startswith("RankSVM") and "-0.0100 [-0.0300, 0.0200]" in said["runner-up"]
    assert said["why"] == "It is the highest by validation." and "Higher on test" in said["watch"]
    assert f"0.0200 better than the baseline [{low:.4f}, 0.0500]" in said["gain"]
    assert ("not significantly better than the baseline" in said["watch"]) == watched
    assert "above the interval expected by validation" in said["watch"] and "0.4800" in said["expected"]


def test_it_is_on_the_first_page_and_beside_that_of_another() -> None:
    first, second = data_of("a"), study_data(folder=Path("b"))
    assert [tuple(row) for row in overview.panels(first)[1].table.rows] == verdict(first)
    table = compare.panels(first, second)[0].table
    assert table.columns == ("what", "a", "b") and ["state", "finished", "stopped"] in table.rows
    assert {row[0]: row[1] for row in table.rows[1:]} == dict(verdict(first))
    assert all(row[2] is None for row in table.rows[1:])


def test_the_figure_marks_models_and_the_scores_of_the_chosen() -> None:
    data = data_of()
    assert data.result is not None
    data.result["leaderboard"][1] |= {"is_served": False, "needs_queries": True}
    shown = keyed(overview.panels(data), "leaderboard")
    assert shown.figure is not None
    layout = shown.figure["layout"]
    assert layout["yaxis"]["ticktext"] == ["LambdaRank", "RankSVM * (whole queries)", "baseline"]
    assert [row[0] for row in shown.table.rows] == layout["yaxis"]["ticktext"]
    best = data.result["leaderboard"][0]
    assert [line["x0"] for line in layout["shapes"]] == [best["vali"], best["test"]]
    assert "cannot load it" in shown.note
