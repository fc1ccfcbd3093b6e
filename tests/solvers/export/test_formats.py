"""Exports of all formats: golden files, names that try to break out, what is left out and what is refused."""

import ast
import json
import os
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.pmml import LEGAL
from ranktune.solvers.export.search_engines import LETTERS
from ranktune.solvers.export.source import escaped
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from tests.support.engine_grammars import load_vespa
from tests.support.export_samples import NAMES, SAMPLES, blend, linear, trees
from tests.support.paths import DATA

GOLDEN = DATA / "golden"
ENDS = {"solr": "json", "elasticsearch": "json", "opensearch": "json", "vespa": "sd", "pmml": "xml"}
OF_TREES = [name for name, declared in FORMATS.items() if declared.trees]
OF_BLENDS = [name for name, declared in FORMATS.items() if declared.blends]
OF_WEIGHTS = [name for name, declared in FORMATS.items() if declared.linear]
CASES = [("linear", name) for name in OF_WEIGHTS] + [("trees", name) for name in OF_TREES]
CASES += [("blend", name) for name in OF_BLENDS]
BY_NAME = [name for name in FORMATS if name not in ("onnx", "ranklib", "lightgbm", "liblinear")]


def readable(content: str | bytes) -> str:
    """Text as it is, ONNX as JSON of its fields."""
    if isinstance(content, str):
        return content
    import onnx

    fields = import_module("google.protobuf.json_format").MessageToDict(onnx.load_from_string(content))
    return json.dumps(fields, indent=1, sort_keys=True) + "\n"


@pytest.mark.parametrize(("kind", "format"), CASES)
def test_golden_files(kind: str, format: str) -> None:
    made = readable(export(SAMPLES[kind](), format, name="mine"))
    file = GOLDEN / f"export-{kind}-{format}.{ENDS.get(format, 'json' if format in ('json', 'onnx') else 'txt')}"
    if os.environ.get("RANKTUNE_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(made)
    assert made == file.read_text()


@pytest.mark.parametrize(("kind", "format"), CASES)
def test_the_file_holds_what_is_returned(kind: str, format: str, tmp_path: Path) -> None:
    model = SAMPLES[kind]()
    content = export(model, format, tmp_path / "made")
    raw = (tmp_path / "made").read_bytes()
    assert raw == (content if isinstance(content, bytes) else content.encode())
    assert export(model, format) == content
    assert isinstance(content, str) == FORMATS[format].is_text


def test_what_a_format_does_not_hold_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"liblinear has no writer for trees.*LambdaMART.*solr.*onnx.*python"):
        export(trees(), "liblinear")
    with pytest.raises(ParameterError, match=r"lightgbm has no writer for weights.*RankSVM.*solr.*liblinear.*a tree"):
        export(linear(), "lightgbm")


@pytest.mark.parametrize("format", FORMATS)
def test_scaling_by_list_is_refused(format: str) -> None:
    model = LinearModel(np.ones(2), "Ranker", list_scaling=True)
    with pytest.raises(ParameterError, match=r'range among the documents.*another scaling than "list".*load_model'):
        export(model, format)


@pytest.mark.parametrize("format", OF_WEIGHTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(format: str, value: float) -> None:
    with pytest.raises(ParameterError, match="not finite"):
        export(LinearModel(np.array([1.0, value]), "RankSVM"), format)


def test_a_name_is_needed() -> None:
    with pytest.raises(ParameterError, match="must not be empty"):
        export(linear(), "solr", name="")


@pytest.mark.parametrize("format", BY_NAME)
def test_two_features_of_one_name_are_refused_where_names_tell_them_apart(format: str) -> None:
    twice = replace(linear(), feature_names=("a", "b", "a", "c", "d"))
    with pytest.raises(ParameterError, match=f"two features are called 'a', and {format}.*onnx, ranklib or liblinear"):
        export(twice, format)
    if format in OF_TREES:
        with pytest.raises(
            ParameterError,
            match=f"two features are called 'a', and {format}.*onnx, ranklib or lightgbm, which go by number",
        ):
            export(replace(trees(), feature_names=twice.feature_names), format)
    export(replace(linear(), feature_names=("a", "a", "b", "c", "d")), format)  # the second does not matter
    export(twice, "ranklib")


@pytest.mark.parametrize("format", [name for name in OF_TREES if name not in ("onnx", "lightgbm", "json", "python")])
def test_trees_too_deep_to_be_nested_are_refused(format: str) -> None:
    with pytest.raises(ParameterError, match=f"201 splits deep, and {format} .*at most 200.*onnx, json or python"):
        export(chain(201), format)
    export(chain(200), format)


def test_the_others_take_any_depth() -> None:
    made: dict[str, Any] = {}
    exec(str(export(chain(5_000), "python")), made)
    assert made["score"]({"f1": 4_998.5}) == 4_999.0
    assert len(json.loads(export(chain(5_000), "json"))["trees"][0]["feature"]) == 5_000
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(export(chain(5_000), "onnx"))
    assert session.run(None, {"features": np.array([[4_998.5]], np.float32)})[0][0, 0] == 4_999.0


def chain(splits: int) -> TreeModel:
    """A tree whose right child is always the next split, at 0, 1, 2, ..."""
    right = [*range(1, splits), ~splits]
    tree = one_tree(np.zeros(splits), np.arange(float(splits)), ~np.arange(splits), right, np.arange(splits + 1.0))
    return TreeModel(tree, 1, "x")


@pytest.mark.parametrize("format", FORMATS)
def test_a_model_of_nothing_keeps_its_first_feature(format: str) -> None:
    assert format in OF_WEIGHTS or format in OF_TREES
    if format in OF_WEIGHTS:
        text = readable(export(LinearModel(np.zeros(3), "BestFeature"), format))
        assert "f2" not in text
    if format in OF_TREES:
        constant = TreeModel(joined([one_tree([], [], [], [], [0.5])]), 3, "GBDTRanker")
        assert ("f2" in readable(export(constant, format))) == (format == "lightgbm")  # it names all columns


HOSTILE = (
    "", " ", '"', "'", "\\", "\n", "\r\n", "\t", "\0", "\x1b[31m", "</PMML>", "<script>", "&amp;", "]]>", "%s", "{0}",
    "\u202eabc", "\ud800", "\ufffe", "\U0001f600", "#", "}", "*/", '"""', "'''", "bm25(title)", "bm25(a) * 2",
    "x" * 10_000, "y" * 10_000, "\n" * 10_000, "_x41_", "_x5f_x41_", "A", "_x", "__", "f1", "if", "None", "1", "-",
    "q(a,b).c",
)  # fmt: skip


def names_in(format: str, content: str) -> list[str]:
    """The feature names that a reader of the format finds, in order; it must be able to read all of it."""
    if format in ("solr", "json"):
        return [feature["name"] for feature in json.loads(content)["features"]]
    if format in ("elasticsearch", "opensearch"):
        return list(json.loads(json.loads(content)["model"]["model"]["definition"]))
    if format == "pmml":
        assert all(len(e) or e.text is None or not e.text.strip() for e in ElementTree.fromstring(content).iter())
        return [
            e.get("name", "") for e in ElementTree.fromstring(content).iter("{http://www.dmg.org/PMML-4_4}DataField")
        ]
    if format == "python":
        assert content.isascii()
        table = next(node for node in ast.parse(content).body if isinstance(node, ast.Assign))
        return list(ast.literal_eval(table.value))
    assert format == "vespa" and content.isascii()
    load_vespa(content)
    comments = [json.loads(line.strip()[2:]) for line in content.splitlines() if line.startswith("    # ")]
    words = re.findall(r"^    function (x+_\w*)\(\) \{$", content, flags=re.M)
    assert len(set(words)) == len(words) == len(comments)
    return comments


def decoded(made: str) -> str:
    """What escaped made of a short name, read back."""
    return re.sub("_x([0-9a-f]+)_", lambda match: chr(int(match[1], 16)), made)


@pytest.mark.parametrize("format", BY_NAME)
def test_hostile_names_are_only_names(format: str) -> None:
    check_names(format, list(HOSTILE))


@pytest.mark.parametrize("format", BY_NAME)
@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(), max_size=12) | st.sampled_from(HOSTILE), unique=True, min_size=1, max_size=6))
def test_any_names_are_only_names(format: str, names: list[str]) -> None:
    check_names(format, names)


def check_names(format: str, names: list[str]) -> None:
    weights = np.arange(1.0, len(names) + 1)
    model = LinearModel(weights, names[0], feature_names=tuple(names), metric=names[-1])
    result = names_in(format, str(export(model, format, name=names[-1] or "x")))
    if format == "pmml":
        assert len(set(result)) == len(names)
        result = [
            decoded(made) if len(n) <= 120 and made[:3] != "_xn" else n for made, n in zip(result, names, strict=True)
        ]
    assert result == names


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("_x4156fnA.\n") | st.characters(), max_size=9), unique=True, max_size=8))
def test_no_two_names_become_the_same(names: list[str]) -> None:
    for legal in (LETTERS, LEGAL):
        made = [escaped(name, place, legal) for place, name in enumerate(names)]
        assert len(set(made)) == len(names)
        assert all(re.fullmatch(f"{legal}+", word) for word in made)
        assert all(decoded(word) == name for word, name in zip(made, names, strict=True) if word[:3] != "_xn")


def test_plain_names_stay_as_they_are() -> None:
    for legal in (LETTERS, LEGAL):
        assert [escaped(name, 0, legal) for name in ("bm25_title", "max_xyz", "_", "F1")] == [
            "bm25_title",
            "max_xyz",
            "_",
            "F1",
        ]
    assert escaped("größe", 0, LEGAL) == "größe"
    assert escaped("z" * 121, 6, LETTERS) == "_xn7_" != escaped("_xn7_", 0, LETTERS)


@pytest.mark.parametrize("format", ["onnx", "ranklib", "liblinear"])
def test_hostile_names_do_not_disturb_formats_that_go_by_number(format: str) -> None:
    weights = np.arange(1.0, len(HOSTILE) + 1)
    model = LinearModel(weights, "\ud800\0", feature_names=HOSTILE, metric="\n")
    content = export(model, format, name="\ud800\n")
    if isinstance(content, bytes):
        import onnx

        made = onnx.load_from_string(content)
        onnx.checker.check_model(made, full_check=True)
        about = {entry.key: entry.value for entry in made.metadata_props}
        assert tuple(json.loads(about["feature_names"])) == HOSTILE
    else:
        assert content == export(LinearModel(weights, "RankSVM"), format)


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - set(OF_BLENDS)))
def test_blends_are_refused_by_the_others(format: str, tmp_path: Path) -> None:
    said = rf"{format} holds .*Blend, is the sum.*vespa, onnx, pmml, json, python.*distil.*models.*LinearBlend\.json"
    with pytest.raises(ParameterError, match=said) as refused:
        export(blend(), format, tmp_path / "made")
    both = format in OF_TREES and format in OF_WEIGHTS
    assert ("weights or trees" in str(refused.value)) == both != (" alone" in str(refused.value))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("format", FORMATS)
def test_blends_with_scaling_by_list_are_refused(format: str) -> None:
    by_list = LinearModel(np.ones(5), "Ranker", feature_names=NAMES, list_scaling=True)
    remedy = r'range among the documents.*another scaling than "list".*load_model.*models.*LinearBlend\.json'
    for others in ([trees()], [linear()], [linear(), trees()]):
        with pytest.raises(ParameterError, match=remedy):
            export(BlendModel((*others, by_list), "Blend", feature_names=NAMES), format)


@pytest.mark.parametrize("format", OF_BLENDS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_beside_trees(format: str, value: float) -> None:
    weights = LinearModel(np.array([1.0, value, 0.0, 0.0, 0.0]), "RankSVM", feature_names=NAMES)
    with pytest.raises(ParameterError, match="not finite"):
        export(BlendModel((weights, trees()), "Blend", feature_names=NAMES), format)


@pytest.mark.parametrize("format", OF_BLENDS)
def test_a_blend_whose_weights_are_all_0_is_its_trees(format: str) -> None:
    nothing = LinearModel(np.zeros(5), "RankSVM", feature_names=NAMES)
    text = readable(export(BlendModel((nothing, trees()), "Blend", feature_names=NAMES), format))
    assert "clicks" not in text and "RegressionModel" not in text and "constants" not in text


def test_models_of_other_kinds_are_refused() -> None:
    stranger: Any = object()
    with pytest.raises(ParameterError, match=r"a object cannot be exported.*only linear.*load_model"):
        export(stranger, "json")
