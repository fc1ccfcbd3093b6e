"""A study whose model compares the documents of a query: run, served, exported, explained and shown."""

import json
from pathlib import Path

import pytest

from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views.registry import view_json, views_json
from ranktune.dashboards.web.page import report_html
from ranktune.solvers.models.base import load_model
from tests.support.commands import letor, ranktune
from tests.support.reports import unpacked_page

DECLARED = """\
data = "train.txt"
vali = "vali.txt"
test = "test.txt"
solvers = ["LambdaMART"]
trials = 2
sampler = "random"
serve = ["onnx"]

[space]
"LambdaMART.within_query" = ["ranks"]
"LambdaMART.trees" = [20]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with data, and the finished study whose model compares ranks."""
    made = tmp_path_factory.mktemp("within")
    for seed, (name, queries) in enumerate({"train": 40, "vali": 15, "test": 20}.items()):
        letor(made / f"{name}.txt", queries, seed + 1)
    (made / "ranks.toml").write_text(DECLARED)
    assert "whole queries" in ranktune("tune", "ranks.toml", cwd=made).stdout
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    return folder / "ranktune-runs" / "ranks" / "model.json"


def test_a_served_study_keeps_ranks_where_the_system_holds_them(folder: Path, model: Path) -> None:
    assert load_model(model).needs_queries
    result = json.loads(ranktune("show", "ranks", "--json", cwd=folder).stdout)
    assert any(row["needs_queries"] and row["is_served"] for row in result["leaderboard"])
    (folder / "solr.toml").write_text(DECLARED.replace('"onnx"', '"solr"'))
    said = ranktune("tune", "solr.toml", cwd=folder, check=2).stderr
    assert "'LambdaMART.within_query' cannot be 'ranks'. Known: none." in said


def test_files_are_predicted_by_query(folder: Path, model: Path) -> None:
    scores = [float(line) for line in ranktune("predict", model, "test.txt", cwd=folder).stdout.splitlines()]
    assert len(set(scores)) > 20 and len(scores) == 200


@pytest.mark.parametrize("format", ["onnx", "python"])
def test_exports_say_that_whole_queries_are_given(folder: Path, model: Path, format: str) -> None:
    if format == "onnx":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
    said = ranktune("export", model, "-f", format, "-o", "exported", "--check", "test.txt", cwd=folder).stderr
    assert "the order is the same on 20 of 20 queries" in said
    assert ('"queries": Q' in said) if format == "onnx" else ("scores([{" in said)


def test_solr_is_told_what_holds_the_model_and_gets_a_copy(folder: Path, model: Path) -> None:
    said = ranktune("export", model, "-f", "solr", cwd=folder, check=2).stderr
    assert "a model of trees that compare the documents of a query. Add --distil DATA" in said
    assert "export to one of onnx, python" in said
    ranktune("export", model, "-f", "solr", "--distil", "train.txt", "-o", "copy.json", cwd=folder)
    assert json.loads((folder / "copy.json").read_text())["class"].endswith("MultipleAdditiveTreesModel")


def test_importance_is_explained_and_what_cannot_be_is_refused_clearly(folder: Path, model: Path) -> None:
    result = json.loads(ranktune("explain", model, "test.txt", "--json", cwd=folder).stdout)
    assert result["features"][0]["loss"] > 0.0
    for option in (("--query", "31"), ("--effect-of", "1")):
        said = ranktune("explain", model, "test.txt", *option, cwd=folder, check=2).stderr
        assert "compares each document with the others of its query" in said and "importance of features" in said


def test_every_page_opens_and_names_columns_by_their_feature(folder: Path) -> None:
    data = open_study(folder / "ranktune-runs" / "ranks")
    pages = {str(view["key"]): json.dumps(view_json(str(view["key"]), data), allow_nan=False) for view in views_json()}
    assert all(pages.values()) and "Importance of the features" in pages["weights"]
    assert "rank within the query" in pages["weights"] and "rank within the query" in unpacked_page(report_html(data))
