"""The panels of explanations show what was kept, whatever it is called."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views import queries, weights
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps
from ranktune.tuner.selection.evidence import Effect, ExplainedQuery, Explanations, FeatureImportance
from ranktune.tuner.statistics.measured import Interval
from tests.support.study_samples import (
    HOSTILE,
    evidence_of,
    figure_of,
    linear_model,
    named,
    numbers,
    study_of_splits,
    traces,
)

LABELS = ("RankSVM", "LambdaRank")


def explained(names: tuple[str, ...], *, label: str = "RankSVM", shift: float = 0.0) -> Explanations:
    """Explanations of three features, the last of which matters most."""
    losses = [
        FeatureImportance(name, Interval(0.1 * k + shift, 0.1 * k - 0.02, 0.1 * k + 0.05))
        for k, name in enumerate(names)
    ]
    effects = (Effect(names[-1], (0.0, 2.0), (0.5, 1.0), (-0.3, 0.4)), Effect(names[0], (1.0,), (1.0,), (0.0,)))
    rows = tuple((*row[: len(names[:3])], row[-1]) for row in ((0.5, 0.25, 0.0, 0.125), (-0.5, 0.0, 0.0, 0.25)))
    closely = ExplainedQuery("q1", ("d7", names[0]), (1, 12), (1.875, 0.75), 1.0, 40, names[:3], rows)
    spreads = {label: {"linear": {0: 0.5, 2: 2.0}}}
    measured = tuple(sorted(losses, key=lambda g: -g.loss.mean))
    return Explanations(label, "test", "ndcg@10", 30, 40, 1, measured, effects, spreads, (closely,))


def study(folder: Path, explanations: dict[str, Explanations | None], model: Path) -> StudyData:
    data = study_of_splits(
        [(name, (), evidence_of(LABELS)) for name in explanations],
        models={(name, "RankSVM"): model for name in explanations},
    )
    splits = tuple(replace(split, explanations=explanations[split.name]) for split in data.splits)
    return replace(data, splits=splits)


def test_importance_comes_first_then_effects_then_spread_then_weights(tmp_path: Path) -> None:
    names = ("bm25", "length", "age")
    model = linear_model(tmp_path / "m.json", [-5.0, 0.0, 1.0], names)
    panels = weights.panels(study(tmp_path, {"": explained(names)}, model))
    assert [panel.key for panel in panels] == ["importance", "effects", "spread-0", "weights-0"]
    first, effects, spread, raw = panels
    assert [row[0] for row in first.table.rows] == ["age", "length", "bm25"]
    assert list(first.table.rows[0][1:]) == [0.2, 0.18, 0.25]
    assert "30 of 40 test queries" in first.note
    assert (first.group, effects.group, spread.group) == ("", "", "RankSVM")
    assert [list(row) for row in effects.table.rows] == [["age", 0, 0.5, -0.3], ["age", 2, 1, 0.4], ["bm25", 1, 1, 0]]
    assert [list(row) for row in spread.table.rows] == [["age", 2.0], ["bm25", -0.5]]  # with the sign of the weight
    assert raw.table.rows[0][0] == "bm25"
    assert traces(spread)[0]["x"] == [2.0, -0.5]


def test_several_splits_are_averaged_and_their_noise_too(tmp_path: Path) -> None:
    names = ("bm25", "length", "age")
    model = linear_model(tmp_path / "m.json", [1.0, 0.0, 1.0], names)
    results = {"a": explained(names), "b": explained(names[1:], shift=0.1), "c": None}
    first, _, spread, *_ = weights.panels(study(tmp_path, results, model))
    rows = {row[0]: numbers(row[1:]) for row in first.table.rows}
    assert rows["age"][0] == pytest.approx((0.2 + 0.2) / 2)
    assert rows["age"][1] == pytest.approx(0.2 - np.hypot(0.02, 0.12) / 2, rel=1e-5)
    assert rows["bm25"][0] == pytest.approx(0.0)  # one split's model does not use it
    assert "60 of 80" in first.note
    untested = replace(explained(names, shift=1.0), part="training")
    assert weights.panels(study(tmp_path, {**results, "d": untested}, model))[0].table.rows == first.table.rows
    alone = weights.panels(study(tmp_path, {"": untested}, model))[0]
    assert "trained on these queries" in alone.note
    assert len(spread.table.columns) == 5


def test_trees_show_their_spread_and_count_splits_in_a_table_alone(tmp_path: Path) -> None:
    names = ("bm25", "length", "age")
    trees = TreeModel(stumps([0, 2, 2], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]), 3, "RankBoost", feature_names=names)
    linear = LinearModel(np.ones(3), "RankSVM", feature_names=names)
    BlendModel((linear, trees), "Blend", feature_names=names).save(tmp_path / "b.json")
    explanations = replace(explained(names), spreads={"RankSVM": {"trees": {2: 0.75}}})
    panels = {panel.key: panel for panel in weights.panels(study(tmp_path, {"": explanations}, tmp_path / "b.json"))}
    assert list(panels) == ["importance", "effects", "weights-0", "spread-1", "weights-1"]
    assert [list(row) for row in panels["spread-1"].table.rows] == [["age", 0.75]]
    assert panels["weights-1"].figure is None


def test_without_time_for_the_importance_the_command_is_named(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m.json", [1.0, 1.0, 1.0])
    explanations = replace(explained(("a", "b", "c")), importance=(), effects=(), queries=0, repeats=0)
    first, *_ = weights.panels(study(tmp_path, {"": explanations}, model))
    assert "`ranktune explain MODEL DATA` does" in first.note
    assert first.figure is None
    older = weights.panels(study(tmp_path, {"": None}, model))
    assert [panel.key for panel in older] == ["weights-0"]


def test_the_order_of_a_query_is_explained_below_its_documents(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m.json", [1.0, 1.0, 1.0])
    panels = queries.panels(study(tmp_path, {"": explained(("bm25", "length", "age"))}, model))
    keys = [panel.key for panel in panels]
    (why,) = named(panels, "why-")
    assert keys.index(why.key) == keys.index(why.key.replace("why", "worst")) + 1
    assert [list(row) for row in why.table.rows] == [
        [1, "d7", 1.875, 0.5, 0.25, 0.0, 0.125],
        [12, "bm25", 0.75, -0.5, 0.0, 0.0, 0.25],
    ]
    assert [trace["name"] for trace in traces(why)] == ["bm25", "length", "all others"]
    assert figure_of(why)["layout"]["barmode"] == "relative"
    assert traces(why)[0]["y"] == ["1. d7", "12. bm25"]
    other = replace(explained(("bm25", "length", "age")), label="LambdaRank")
    assert not named(queries.panels(study(tmp_path, {"": other}, model)), "why-")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    names = tuple(HOSTILE)
    model = linear_model(tmp_path / "m.json", list(range(1, len(names) + 1)), names)
    data = study(tmp_path, {"": explained(names)}, model)
    for panel in [*weights.panels(data), *queries.panels(data)]:
        text = json.dumps(panel.figure, allow_nan=False)
        assert "<script" not in text and "<img" not in text and "<a " not in text
        assert all(len(row) == len(panel.table.columns) for row in panel.table.rows)
