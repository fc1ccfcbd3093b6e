"""Where each trial came from: in the record, in the log, with -v, in the list of trials and on the pages."""

from pathlib import Path

import pytest

import ranktune
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views.optimiser import panels as optimiser
from ranktune.dashboards.views.progress import panels as progress
from ranktune.dashboards.views.progress import trials_table
from ranktune.terminal import Verbose
from ranktune.tuner.gp.proposal import DRAW, IMPROVEMENT, MEAN
from ranktune.tuner.storage.attributes import FIRST, GIVEN, ORIGINS
from ranktune.tuner.study.events import read_events
from tests.support.engine_samples import graded


def test_every_trial_says_where_it_came_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranktune.tune(
        graded(30, 0), test=graded(30, 1), home=tmp_path, name="s", jobs=1, seed=0, trials=20,
        solvers=["Ranker", "RankSVM"], first={"RankSVM": {"C": 0.3}}, progress=Verbose(),
    )  # fmt: skip
    data = open_study(tmp_path / "s")
    trials, origins = data.trials, [trial.origin for trial in data.trials]
    assert origins[:2] == [FIRST, GIVEN] and set(origins) <= set(ORIGINS) and DRAW in ORIGINS
    suggested = [trial for trial in trials if trial.origin in (IMPROVEMENT, MEAN)]
    assert len(suggested) >= 6 and all(trial.expected_gain is not None for trial in suggested)
    best = trials[0].full_value or 0.0
    for trial in trials[1:]:
        lead = (trial.full_value or 0.0) - best
        assert trial.lead == (pytest.approx(lead) if lead > 0.0 else None)
        best += max(lead, 0.0)

    events = [event for event in read_events(tmp_path / "s") if "origin" in event or event.get("lead")]
    assert [event["origin"] for event in events if "origin" in event] == origins
    assert [event["lead"] for event in events if event.get("lead")] == [t.lead for t in trials if t.lead]
    assert f"trial 1 asked: origin {GIVEN}" in capsys.readouterr().err

    shown, (parts,) = progress(data)[0], [panel for panel in optimiser(data) if panel.key.startswith("tried")]
    assert shown.table["Origin"] == trials_table(data)["origin"] == origins
    assert shown.figure is not None and set(origins) <= {trace["name"] for trace in shown.figure["data"]}
    tried = {f"loss {value}" for t in trials for name, value in t.params.items() if name.split("[")[0] == "loss"}
    assert {part for part in parts.table["Tried"] if part.startswith("loss")} == tried and len(tried) > 1
    assert max(filter(None, parts.table["Best ndcg@10"])) == pytest.approx(best, rel=1e-5)
