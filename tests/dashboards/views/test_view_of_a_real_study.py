"""The views of a study of MQ2008's first fold that has really run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.views.registry import build
from ranktune.solvers.models.linear import LinearModel

pytestmark = pytest.mark.thorough

SOLVERS = ("RidgeRanker", "ListNet")
VIEWS = ("solvers", "parameters", "queries", "trade-offs", "weights", "optimiser")


@pytest.fixture(scope="module")
def data(letor_folds: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> StudyData:
    fold = letor_folds["MQ2008"] / "Fold1"
    result = ranktune.tune(
        fold / "train.txt",
        vali=fold / "vali.txt",
        test=fold / "test.txt",
        solvers=SOLVERS,
        trials=16,
        seed=0,
        jobs=1,
        name="mq",
        home=tmp_path_factory.mktemp("home"),
    )
    return open_study(Path(result.folder))


@pytest.mark.parametrize("name", VIEWS)
def test_every_panel_is_whole(name: str, data: StudyData) -> None:
    result = build(name, data)
    json.dumps([[panel.figure, list(panel.table.rows)] for panel in result], allow_nan=False)
    assert len({panel.key for panel in result}) == len(result)
    assert all(panel.figure is not None or panel.note for panel in result)
    assert all(len(row) == len(panel.table.columns) for panel in result for row in panel.table.rows)
    assert sum(panel.figure is not None for panel in result) >= 2


def test_the_chosen_model_has_the_scores_of_the_result(data: StudyData) -> None:
    assert data.result is not None
    chosen = data.result["leaderboard"][0]
    evidence = data.splits[0].evidence
    assert evidence is not None
    assert evidence.labels[0] == chosen["solver"]
    result = build("queries", data)
    shown = next(panel for panel in result if panel.key == "difference-0")
    values = evidence.values[data.metric][0]
    assert np.nanmean(values) == pytest.approx(chosen["test"])
    counted = [float(row[2]) for row in shown.table.rows]
    assert np.mean(counted) == pytest.approx(chosen["test"], abs=1e-5)


def test_weights_are_those_of_the_model_files(data: StudyData) -> None:
    results = {panel.group: panel for panel in build("weights", data) if panel.key.startswith("weights")}
    model = data.splits[0].model("RidgeRanker")
    assert isinstance(model, LinearModel)
    weights = {str(row[0]): float(row[1]) for row in results["RidgeRanker"].table.rows}
    assert len(weights) == model.nonzeros
    largest = int(np.argmax(np.abs(model.weights)))
    assert max(weights.values(), key=abs) == pytest.approx(model.weights[largest], rel=1e-5)
