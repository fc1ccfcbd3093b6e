"""The trade-offs' view: fronts, knees, and the leaderboard's rows."""

from dataclasses import replace

import pytest

from ranktune.dashboards.views.tradeoffs import panels
from ranktune.tuner.statistics.pareto import COSTS, Option, front, knee
from tests.support.study_samples import (
    concluded,
    figure_of,
    keyed,
    study_data,
    study_of_splits,
    traces,
    trial,
    trials_of,
)

LABELS = ("LambdaRank", "RankSVM")


def test_the_cost_of_features_is_shown_where_the_study_gives_costs() -> None:
    trials = [replace(trial, cost=2.0 * (trial.nonzeros or 1.0)) for trial in trials_of(20)]
    shown = panels(study_data(trials))[0]
    assert (shown.key, shown.title.rpartition(" by ")[2]) == ("cost-0", "cost of features")
    plain = panels(study_data(trials_of(20)))
    assert "cost-0" not in [panel.key for panel in plain]
    features = keyed(plain, "nonzeros-0")
    assert [row[3] for row in shown.table.rows] == [2.0 * float(row[3] or 0) for row in features.table.rows]


@pytest.mark.parametrize("cost", [cost for cost in COSTS if cost != "cost"])
def test_fronts_knees_and_rings_are_those_of_the_trials(cost: str) -> None:
    trials = trials_of(60, failing=7)
    result = panels(study_data(trials, result=concluded()))
    shown = keyed(result, f"{cost}-0")
    options = [
        Option(str(t.number + 1), t.value, t.nonzeros, t.bytes, t.microseconds, t.seconds)
        for t in trials
        if t.value is not None
    ]
    models = [
        Option("None", row.vali.mean, row.nonzeros, row.bytes, row.microseconds, row.seconds)
        for row in concluded().leaderboard
        if row.vali is not None
    ]
    line = [row for row in shown.table.rows if str(row[0]).startswith("front")]
    assert [str(row[1]) for row in line] == [option.label for option in front([*options, *models], cost)]
    bend = knee([*options, *models], cost)
    assert bend is not None
    assert [str(row[1]) for row in line if row[0] == "front, knee"] == [bend.label]
    drawn = {trace["name"]: trace for trace in traces(shown)}
    assert drawn["front"]["x"] == [row[3] for row in line]
    assert drawn["front"]["y"] == [row[4] for row in line]
    assert drawn["knee"]["y"] == [pytest.approx(bend.quality, rel=1e-5)]
    rings = [row for row in shown.table.rows if row[0] == "leaderboard"]
    assert [row[2] for row in rings] == list(LABELS)
    assert drawn["leaderboard"]["x"] == [row[3] for row in rings]
    assert sum(len(drawn[name]["x"]) for name in LABELS) == len(options)


def test_unknown_costs_are_reported() -> None:
    trials = [trial(0, "RankSVM", {}, 0.5, bytes=None)]
    result = panels(study_data(trials, solvers=["RankSVM"]))
    shown = keyed(result, "bytes-0")
    assert shown.figure is None
    assert "has this cost" in shown.note


def test_each_split_has_a_leaderboard() -> None:
    splits = [(name, trials_of(20, seed=k), None) for k, name in enumerate(("Fold1", "Fold2"))]
    second = concluded("s", LABELS, ("Fold1", "Fold2"), 0.8).folds[1]
    result = concluded(folds=(second,))
    shown = panels(study_of_splits(splits, result=result))
    by_key = {panel.key: panel for panel in shown}
    assert {panel.group for panel in shown} == {"Fold1", "Fold2"}
    assert not [row for row in by_key["bytes-0"].table.rows if row[0] == "leaderboard"]
    assert [row[4] for row in by_key["bytes-1"].table.rows if row[0] == "leaderboard"] == [0.8, 0.79]


def test_a_cost_of_zero_keeps_the_axis_linear() -> None:
    trials = [trial(k, "RankSVM", {}, 0.5 + 0.1 * k, nonzeros=float(k)) for k in range(3)]
    shown = panels(study_data(trials, solvers=["RankSVM"]))[0]
    assert figure_of(shown)["layout"]["xaxis"].get("type") != "log"
