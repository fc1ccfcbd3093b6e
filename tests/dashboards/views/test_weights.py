"""The weights' view: weights by name, agreement of splits, splits of trees, paths of L1 fits."""

from pathlib import Path

import numpy as np
import pytest

from ranktune.dashboards.views.weights import MAX_BARS, panels
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from ranktune.solvers.models.within import WithinModel
from tests.support.study_samples import (
    evidence_of,
    linear_model,
    named,
    numbers,
    study_data,
    study_of_splits,
    traces,
    trials_of,
)

LABELS = ("RankSVM", "LambdaRank")


def test_weights_are_by_name_the_largest_first(tmp_path: Path) -> None:
    file = linear_model(tmp_path / "m.json", [0.5, -2.0, 0.0, 1.0], ["bm25", "length", "links", "title"])
    data = study_data(evidence=evidence_of(LABELS), models={"RankSVM": file})
    (shown,) = panels(data)
    assert [list(row) for row in shown.table.rows] == [["length", -2.0], ["title", 1.0], ["bm25", 0.5]]
    assert shown.group == "RankSVM"
    assert traces(shown)[0]["y"] == ["length", "title", "bm25"]
    assert traces(shown)[0]["x"] == [-2.0, 1.0, 0.5]
    assert shown.note.startswith("3 of 4 features are used")


def test_only_the_largest_are_drawn_and_all_are_in_the_table(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=300)
    file = linear_model(tmp_path / "m.json", weights.tolist())
    (shown,) = panels(study_data(evidence=evidence_of(LABELS), models={"RankSVM": file}))
    assert len(shown.table.rows) == 300
    assert len(traces(shown)[0]["x"]) == MAX_BARS
    largest = np.sort(np.abs(weights))[::-1]
    np.testing.assert_allclose(np.abs(numbers(row[1] for row in shown.table.rows)), largest, rtol=1e-5)
    assert shown.table.rows[0][0] == f"feature {int(np.argmax(np.abs(weights))) + 1}"


def test_agreement_of_splits(tmp_path: Path) -> None:
    weights = {"a": [1.0, 2.0, 0.0, -1.0], "b": [2.0, 4.0, 0.0, 1.0], "c": [0.0, 0.0, 3.0, 0.0]}
    models = {(name, "RankSVM"): linear_model(tmp_path / f"{name}.json", vector) for name, vector in weights.items()}
    splits = [(name, (), evidence_of(LABELS)) for name in weights]
    (first,) = panels(study_of_splits(splits, models=models))
    W = np.array(list(weights.values()))
    by_name = {row[0]: row[1:] for row in first.table.rows}
    for j in range(4):
        mean, deviation, agree, *_ = by_name[f"feature {j + 1}"]
        assert mean == pytest.approx(W[:, j].mean(), rel=1e-5)
        assert deviation == pytest.approx(W[:, j].std(ddof=1), rel=1e-5)
        assert agree == pytest.approx(abs(np.sign(W[:, j]).sum()) / 3, rel=1e-5)


def test_trees_count_their_splits(tmp_path: Path) -> None:
    stump = one_tree([2], [0.5], [-1], [-2], [0.0, 1.0])
    deep = one_tree([0, 2], [0.5, 0.1], [1, -1], [-3, -2], [0.0, 1.0, 2.0])
    TreeModel(joined([stump, deep, stump]), 4, "LambdaMART").save(tmp_path / "t.json")
    data = study_data(evidence=evidence_of(LABELS), models={"RankSVM": tmp_path / "t.json"})
    (shown,) = panels(data)
    assert [list(row) for row in shown.table.rows] == [["feature 3", 3.0], ["feature 1", 1.0]]
    assert "Splits of the trees" in shown.title


def test_columns_within_queries_are_called_by_their_feature(tmp_path: Path) -> None:
    stump = one_tree([3], [0.5], [-1], [-2], [0.0, 1.0])
    deep = one_tree([1, 3], [0.5, 0.1], [1, -1], [-3, -2], [0.0, 1.0, 2.0])
    names = ("bm25", "price")
    WithinModel(TreeModel(joined([stump, deep]), 10, ""), "LambdaMART", feature_names=names).save(tmp_path / "a.json")
    TreeModel(one_tree([1], [0.5], [-1], [-2], [0.0, 1.0]), 2, "LambdaMART", feature_names=names).save(
        tmp_path / "b.json"
    )
    models = {(split, "RankSVM"): tmp_path / f"{split}.json" for split in "ab"}
    shown, plain = panels(study_of_splits([(split, (), evidence_of(LABELS)) for split in "ab"], models=models))
    assert [list(row) for row in shown.table.rows] == [["price, rank within the query", 2.0], ["price", 1.0]]
    assert shown.note.startswith("2 of 10 columns, features and what is made of them within queries, are used.")
    assert [list(row) for row in plain.table.rows] == [["price", 1.0]]


def test_blends_show_their_parts(tmp_path: Path) -> None:
    linear = LinearModel(np.array([1.0, 0.0, -1.0]), "RankSVM")
    trees = TreeModel(one_tree([2], [0.5], [-1], [-2], [0.0, 1.0]), 3, "LambdaMART")
    BlendModel((linear, trees), "Blend").save(tmp_path / "b.json")
    data = study_data(evidence=evidence_of(LABELS), models={"RankSVM": tmp_path / "b.json"})
    first, second = panels(data)
    assert [len(first.table.rows), len(second.table.rows)] == [2, 1]
    assert "A part of a blend" in first.note
    assert {first.group, second.group} == {"RankSVM"}


def test_a_model_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("nonsense")
    data = study_data(evidence=evidence_of(LABELS), models={"RankSVM": tmp_path / "m.json"})
    (shown,) = panels(data)
    assert shown.figure is None
    assert shown.note


def test_paths_are_the_trials_of_solvers_with_an_l1_strength() -> None:
    labels = ("LambdaRank", "RankSVM", "ElasticRank")
    trials = trials_of(60, labels)
    shown = named(panels(study_data(trials, solvers=labels)), "path")
    assert [panel.group for panel in shown] == ["LambdaRank", "ElasticRank"]
    for panel in shown:
        penalised = [t for t in trials if t.solver == panel.group and "l1" in t.params]
        assert sorted(numbers(row[0] for row in panel.table.rows)) == [t.number + 1 for t in penalised]
        strengths = numbers(row[2] for row in panel.table.rows).tolist()
        assert strengths == sorted(strengths)
        (features,) = traces(panel)
        assert features["x"] == strengths
        assert features["y"] == [row[3] for row in panel.table.rows]
