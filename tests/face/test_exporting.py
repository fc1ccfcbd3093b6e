"""The command `ranktune export` as a user runs it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.arguments import ExportArguments
from ranktune.command_line import exporting
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.models.linear import LinearModel
from tests.support.commands import ranktune, write_letor
from tests.support.export_samples import blend, linear, trees


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("exporting")
    linear().save(result / "linear.json")
    trees().save(result / "trees.json")
    blend().save(result / "blend.json")
    X = np.round(np.random.default_rng(0).normal(size=(40, 5)), 2)
    write_letor(result / "data.txt", X.tolist(), np.zeros(40), np.arange(40) // 10)
    return result


def test_text_goes_to_standard_output_and_the_rest_to_standard_error(folder: Path) -> None:
    done = ranktune("export", "linear.json", "--format", "solr", "--name", "mine", "--store", "mystore", cwd=folder)
    assert done.stdout == export(linear(), "solr", name="mine", store="mystore")
    assert "RankSVM with 4 of 5 features" in done.stderr
    assert "/schema/model-store" in done.stderr and "rq={!ltr model=mine" in done.stderr


def test_a_file_is_written_and_checked(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    done = ranktune("export", "trees.json", "-f", "onnx", "-o", "model.onnx", "--check", "data.txt", cwd=folder)
    assert done.stdout == ""
    assert (folder / "model.onnx").read_bytes() == export(trees(), "onnx")
    assert "by onnxruntime the order is the same on 4 of 4 queries" in done.stderr


def written(
    folder: Path,
    model: str,
    format: str,
    output: str | None = None,
    check: str | None = None,
    distil: str | None = None,
    trees: int | None = None,
) -> str:
    """What is said of an export in this process."""
    given = {"check": check, "distil": distil}
    data: dict[str, Any] = {name: str(folder / value) for name, value in given.items() if value is not None}
    where = None if output is None else folder / output
    return exporting.export_file(
        ExportArguments(folder / model, format=format, output=where, model_name="m", store="s", trees=trees, **data)
    )


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "opensearch", "vespa", "ranklib"])
def test_formats_of_engines_are_checked_and_their_features_defined(folder: Path, format: str) -> None:
    given = ("export", "trees.json", "-f", format, "-o", "made", "--check", "data.txt")
    done = ranktune(*given, cwd=folder)
    assert f"Checked: the file has the syntax that {format} loads; it was not scored." in done.stderr
    refused = format in ("vespa", "ranklib")
    done = ranktune(*given, "--definitions", f"for-{format}", cwd=folder, check=2 if refused else 0)
    assert (
        ("has no definitions beside the model" in done.stderr) == refused == (not (folder / f"for-{format}").exists())
    )


def test_a_version_is_warned_of(folder: Path) -> None:
    done = ranktune("export", "trees.json", "-f", "opensearch", "--engine-version", "3.5", cwd=folder)
    assert "warning: opensearch 3.5 sends a feature that a document lacks right in all splits" in done.stderr


@pytest.mark.filterwarnings("ignore:.*matched by position")
def test_a_blend_is_distilled(folder: Path) -> None:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(400, 5))
    grades = np.clip(np.round(blend().predict(X) + generator.normal(size=400)), 0, 2)
    write_letor(folder / "train.txt", X.tolist(), grades, np.arange(400) // 10)
    said = written(folder, "blend.json", "solr", "distilled.json", distil="train.txt")
    assert "Distilled: on queries of" in said and "ndcg@10 changes by " in said and "Blend with 4 of 5" in said
    assert json.loads((folder / "distilled.json").read_text())["class"].endswith("MultipleAdditiveTreesModel")
    said = written(folder, "blend.json", "lightgbm", "distilled.txt", check="train.txt", distil="train.txt")
    assert "by LightGBM the order is the same on 40 of 40 queries" in said
    said = written(folder, "trees.json", "solr", "learnt.json", distil="train.txt", trees=12)
    assert "Distilled: on queries" in said
    assert len(json.loads((folder / "learnt.json").read_text())["params"]["trees"]) == 12
    assert "is defined on no query" in written(folder, "blend.json", "solr", "other.json", distil="data.txt")
    assert "Distilled" not in written(folder, "trees.json", "solr", "other.json", distil="data.txt")


@pytest.mark.parametrize(
    ("model", "format", "output", "check", "said"),
    [
        ("trees.json", "liblinear", None, None, "cannot hold LambdaMART, a model of trees. Add --distil DATA"),
        ("blend.json", "solr", "m.json", None, "Add --distil DATA.* or export to one of vespa, onnx, "),
        ("linear.json", "liblinear", None, "data.txt", "nothing here can check liblinear"),
        ("linear.json", "python", "m.py", "none.txt", "none.txt"),
        ("linear.json", "json", "none/there.json", None, "none/there.json: No such file"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    model: str,
    format: str,
    output: str | None,
    check: str | None,
    said: str,
) -> None:
    with pytest.raises(RankTuneError, match=said):
        written(folder, model, format, output, check)
    assert capsys.readouterr().out == ""
    assert output is None or not (folder / output).exists()


def test_the_help_teaches(folder: Path) -> None:
    text = ranktune("export", "--help", cwd=folder).stdout
    for name, format in FORMATS.items():
        assert f"{name:<15}{format.help}" in exporting.HELP and format.help in text
    assert "_createmodel" in text and "/schema/model-store" in text


def test_trees_need_data_to_learn_from(folder: Path) -> None:
    assert "--distil DATA" in ranktune("export", "trees.json", "-f", "solr", "--trees", "9", cwd=folder, check=2).stderr


def test_every_format_says_how_it_is_used() -> None:
    assert all("FILE" in format.use or name in ("vespa", "json") for name, format in FORMATS.items())


def test_what_is_too_large_for_zookeeper_is_said(tmp_path: Path) -> None:
    names = tuple("n" * 500 + str(k) for k in range(1200))
    LinearModel(np.ones(1200), "RankSVM", feature_names=names).save(tmp_path / "wide.json")

    assert "ZooKeeper takes 1048576: see DefaultWrapperModel" in written(tmp_path, "wide.json", "solr", "made")
    assert "ZooKeeper" not in written(tmp_path, "wide.json", "elasticsearch", "made")
    assert json.loads((tmp_path / "made").read_text())
