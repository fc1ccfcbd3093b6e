"""The solvers' view: distributions of trials and pairwise verdicts."""

import numpy as np
import pytest

from ranktune.dashboards.views.solvers import panels
from ranktune.tuner.statistics.comparisons import holm
from tests.support.study_samples import (
    evidence_of,
    figure_of,
    keyed,
    number,
    numbers,
    study_data,
    study_of_splits,
    traces,
    trial,
    trials_of,
)

LABELS = ("LambdaRank", "RankSVM")


def test_numbers_are_those_of_the_trials() -> None:
    trials = trials_of(41, failing=6)
    shown = keyed(panels(study_data(trials)), "reached-0")
    assert len(shown.table.rows) == 2
    for name, n, failed, median, low, high, best, place, default, seconds, *_ in shown.table.rows:
        of_solver = [t for t in trials if t.solver == name]
        values = [t.value for t in of_solver if t.value is not None]
        assert (n, failed) == (len(of_solver), len(of_solver) - len(values))
        np.testing.assert_allclose(numbers([low, median, high]), np.quantile(values, [0.25, 0.5, 0.75]), rtol=1e-5)
        assert best == pytest.approx(max(values), rel=1e-5)
        assert isinstance(place, int) and trials[place - 1].value == max(values)
        assert default is None
        assert seconds == pytest.approx(sum(t.seconds for t in of_solver), rel=1e-5)


def test_boxes_and_points_say_what_the_table_says() -> None:
    shown, reached = panels(study_data(trials_of(40)))[:2]
    boxes = {trace["name"]: trace for trace in traces(shown) if trace["type"] == "box"}
    assert sorted(boxes) == sorted(LABELS) and sum(len(box["x"]) for box in boxes.values()) == 40
    for name, _, _, median, *_ in reached.table.rows:
        assert np.median(boxes[str(name)]["x"]) == pytest.approx(median, rel=1e-5)
        assert set(boxes[str(name)]["y"]) == {name} and boxes[str(name)]["orientation"] == "h"
    best = next(trace for trace in traces(shown) if trace["name"] == "best trial")
    assert dict(zip(best["y"], best["x"], strict=True)) == {row[0]: row[6] for row in reached.table.rows}


def test_the_defaults_are_marked() -> None:
    data = study_data()
    space = data.study.union_space()
    default_trial = trial(0, "RankSVM", dict(map(space.split, space.defaults()))["RankSVM"], 0.25)
    data = study_data([default_trial, *trials_of(9)[1:]])
    shown, reached = panels(data)[:2]
    assert {row[0]: row[8] for row in reached.table.rows} == {"RankSVM": 0.25, "LambdaRank": None}
    assert next(trace for trace in traces(shown) if trace["name"] == "defaults")["x"] == [0.25]


def test_a_far_tail_is_outside_and_noted() -> None:
    trials = [trial(k, "RankSVM", {}, value) for k, value in enumerate([0.7, 0.71, 0.72, 0.715, 0.1])]
    shown = panels(study_data(trials, solvers=["RankSVM"]))[0]
    low, high = figure_of(shown)["layout"]["xaxis"]["range"]
    assert 0.1 < low < 0.7
    assert high > 0.72
    assert "One value lies far below" in shown.note


def test_learning_curves_are_those_of_the_best_trials() -> None:
    curve = ((4.5, 0.2), (14.5, 0.4), (24.5, 0.6))
    trials = [
        trial(0, "RankSVM", {}, 0.9),
        trial(1, "LambdaRank", {}, 0.4, learning_curve=curve),
        trial(2, "LambdaRank", {}, 0.3, learning_curve=((4.5, 0.0),)),
        trial(3, "LambdaRank", {}, 0.5, learning_curve=curve, stopped="order 2 of 5"),
    ]
    result = panels(study_data(trials))
    shown = keyed(result, "learning-0")
    expected = [["LambdaRank", 2, n, v, mean] for (n, v), mean in zip(curve, (0.2, 0.3, 0.4), strict=True)]
    assert [list(row) for row in shown.table.rows] == [pytest.approx(row) for row in expected]
    (line,) = traces(shown)
    assert (line["name"], line["x"]) == ("LambdaRank", [4.5, 14.5, 24.5])
    assert line["y"] == pytest.approx([0.2, 0.3, 0.4])


def test_trials_without_learning_curves_have_no_panel_of_them() -> None:
    shown = panels(study_data(trials_of(8)))
    assert [panel.key for panel in shown] == ["trials-0", "reached-0", "verdicts"]


def test_verdicts_are_of_every_pair_and_counts_add_up() -> None:
    labels = ("LambdaRank", "RankSVM", "ListNet", "ElasticRank")
    first, second = evidence_of(labels, 40, 0), evidence_of(tuple(reversed(labels)), 30, 1)
    data = study_of_splits([("Fold1", (), first), ("Fold2", (), second)], solvers=labels)
    shown = panels(data)[-1]
    rows = [list(row) for row in shown.table.rows]
    assert len(rows) == 6
    metric = data.metric
    for a, b, difference, _, _, _, wins, ties, losses in rows:
        gaps = [e.values[metric][e.labels.index(a)] - e.values[metric][e.labels.index(b)] for e in (first, second)]
        assert difference == pytest.approx(np.mean([np.nanmean(gap) for gap in gaps]), rel=1e-4)
        pooled = np.concatenate(gaps)
        assert (wins, losses) == (int((pooled > 0).sum()), int((pooled < 0).sum()))
        assert numbers([wins, ties, losses]).sum() == int((~np.isnan(pooled)).sum())
    adjusted = holm(numbers(row[3] for row in rows).tolist())
    np.testing.assert_allclose(numbers(row[4] for row in rows), numbers(adjusted), rtol=1e-4)
    assert {row[5] for row in rows} <= {"better", "worse", "not significant"}
    assert all((row[5] == "not significant") == (number(row[4]) > 0.05) for row in rows)
    z = np.array(traces(shown)[0]["z"], dtype=float)
    np.testing.assert_array_equal(np.isnan(z), np.eye(4, dtype=bool))
    np.testing.assert_allclose(np.nan_to_num(z), -np.nan_to_num(z).T)
    names = traces(shown)[0]["x"]
    for a, b, difference, *_ in rows:
        assert z[names.index(a), names.index(b)] == pytest.approx(difference)


def test_significant_differences_of_many_models_are_marked() -> None:
    labels = tuple(f"model {k}" for k in range(14))
    shown = panels(study_data(evidence=evidence_of(labels)))[-1]
    cells = [text for row in traces(shown)[0]["text"] for text in row if text]
    assert cells == ["*"] * 2 * sum(row[5] != "not significant" for row in shown.table.rows) != []
