"""Exports scored by what reads them: the systems themselves where they are here, else what their sources say they do.

A document is a mapping from names of features to numbers: a feature that it lacks is left out, or NaN.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from xml.dom import minidom

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Features, Floats

Document = Mapping[str, np.float32]
EngineScore = Callable[[Document], np.float32]
ZERO = np.float32(0)


def java(number: Any) -> np.float32:
    """Float.parseFloat, or a double made a float."""
    return np.float32(float(number))


def solr(text: str | bytes) -> EngineScore:
    """LinearModel.score and MultipleAdditiveTreesModel.score, with the checks of their constructors and validate."""
    model = json.loads(text)
    names, params = [feature["name"] for feature in model["features"]], model["params"]
    assert model["name"] and model["store"] and names and len(set(names)) == len(names)
    if model["class"] == "org.apache.solr.ltr.model.LinearModel":
        assert set(params["weights"]) == set(names), "Model lacks weight(s) for"

        def linear_score(document: Document) -> np.float32:
            total = ZERO
            for name in names:
                total = np.float32(total + document.get(name, ZERO) * java(params["weights"][name]))
            return total

        return linear_score
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"

    null_is_zero = params.get("isNullSameAsZero", "true") == "true"

    def node_score(node: dict[str, Any], document: Document) -> np.float32:
        while "feature" in node:
            assert node["feature"] in names
            threshold = np.float32(java(node["threshold"]) + np.float32(1e-6))
            if node["feature"] not in document and not null_is_zero:
                node = node[node["missing"]]
            else:
                node = node["left"] if document.get(node["feature"], ZERO) <= threshold else node["right"]
        assert "left" not in node and "right" not in node
        return java(node["value"])

    def tree_score(document: Document) -> np.float32:
        total = ZERO
        for tree in params["trees"]:
            total = np.float32(total + java(tree["weight"]) * node_score(tree["root"], document))
        return total

    return tree_score


def plugin(text: str | bytes) -> EngineScore:
    """LinearRanker and NaiveAdditiveDecisionTree; a feature that a document lacks goes its own way."""
    model = json.loads(text)["model"]
    assert model["name"]
    definition = json.loads(model["model"]["definition"])
    if model["model"]["type"] == "model/linear":

        def linear_score(document: Document) -> np.float32:
            total = ZERO
            for name, weight in definition.items():
                total = np.float32(total + java(weight) * document.get(name, ZERO))
            return total

        return linear_score
    assert model["model"]["type"] == "model/xgboost+json" and isinstance(definition, list)

    def checked(node: dict[str, Any], depth: int) -> None:
        assert isinstance(node["nodeid"], int) and node["depth"] == depth
        if "leaf" not in node:
            yes, no = node["children"]
            assert (node["yes"], node["no"]) == (yes["nodeid"], no["nodeid"])
            assert node["missing"] in (node["yes"], node["no"]) and isinstance(node["split"], str)
            checked(yes, depth + 1)
            checked(no, depth + 1)

    def tree_score(document: Document) -> np.float32:
        total = ZERO
        for node in definition:
            while "leaf" not in node:
                if node["split"] not in document:
                    left = node["missing"] == node["yes"]
                else:
                    left = bool(java(node["split_condition"]) > document.get(node["split"], ZERO))
                node = node["children"][0 if left else 1]
            total = np.float32(total + java(node["leaf"]))
        return total

    for root in definition:
        checked(root, 0)
    return tree_score


def ranklib(text: str, X: Features) -> Floats:
    """CoorAscent.eval: features numbered from 1, in single precision, weights and sum in double."""
    first, *rest = text.splitlines()
    assert first.startswith("## Coordinate Ascent")  # by which RankerFactory chooses
    line = next(line for line in rest if line.strip() and not line.startswith("##"))
    pairs = [(int(number), float(weight)) for number, _, weight in (part.partition(":") for part in line.split())]
    assert all(1 <= number <= X.shape[1] for number, _ in pairs)
    values = X.astype(np.float32).astype(np.float64)
    total = np.zeros(len(X))
    for number, weight in pairs:
        total += weight * values[:, number - 1]
    return total


def ranklib_trees(text: str, X: Features) -> Floats:
    """Ensemble.eval: the first child of a tag is taken as it is, all numbers are single-precision ones."""
    first, *rest = text.splitlines()
    assert first == "## LambdaMART" and text.endswith("\n")
    document: Any = minidom.parseString("".join(line.rstrip() for line in rest if not line.startswith("#")))
    total = np.zeros(len(X), dtype=np.float32)
    rows = X.astype(np.float32)

    def output(node: Any, row: Floats) -> np.float32:
        while node.firstChild.nodeName == "feature":
            feature, threshold, left, right = node.childNodes
            at_most = row[int(feature.firstChild.nodeValue) - 1] <= np.float32(threshold.firstChild.nodeValue)
            node = left if at_most else right
        return np.float32(node.firstChild.firstChild.nodeValue)

    for tree in document.getElementsByTagName("tree"):
        weight = np.float32(tree.getAttribute("weight"))
        total += np.array([output(tree.firstChild, row) * weight for row in rows], dtype=np.float32)
    return total.astype(np.float64)


TOKEN = re.compile(r"\s*(-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|<=|==|\|\||[A-Za-z_]\w*|[(),*+])")


class Reader:
    """Sums of products of numbers, names, isNan(a) and if(a <= b || a == b, yes, no)."""

    def __init__(self, text: str, values: Mapping[str, float]) -> None:
        self.tokens = TOKEN.findall(text)
        assert re.sub(r"\s", "", text) == "".join(self.tokens)
        self.at, self.values = 0, values

    def take(self, wanted: str | None = None) -> str:
        token: str = self.tokens[self.at]
        assert wanted is None or token == wanted
        self.at += 1
        return token

    def sum(self) -> float:
        total = self.product()
        while self.at < len(self.tokens) and self.tokens[self.at] == "+":
            self.take()
            total += self.product()
        return total

    def product(self) -> float:
        value = self.atom()
        while self.at < len(self.tokens) and self.tokens[self.at] == "*":
            self.take()
            value *= self.atom()
        return value

    def atom(self) -> float:
        token = self.take()
        if token == "isNan":
            self.take("(")
            value = self.sum()
            self.take(")")
            return float(np.isnan(value))
        if token != "if":
            return float(token) if re.match(r"-?\d", token) else self.values[token]
        self.take("(")
        holds = self.comparison()
        while self.tokens[self.at] == "||":
            self.take()
            holds = self.comparison() or holds
        self.take(",")
        yes = self.sum()
        self.take(",")
        no = self.sum()
        self.take(")")
        return yes if holds else no

    def comparison(self) -> bool:
        left = self.sum()
        operator = self.take()
        right = self.sum()
        assert operator in ("<=", "==")
        return left <= right if operator == "<=" else left == right


def second_phase(text: str) -> Callable[[Mapping[str, float]], float]:
    """The second phase of a profile, as a function of the rank features that its functions name."""
    constants = re.search(r"constants \{\n(.*?)\n    \}", text, flags=re.S)
    fixed = dict(line.strip().split(": ") for line in constants[1].splitlines()) if constants else {}
    meaning = dict(re.findall(r"function (\w+)\(\) \{\n +expression: (.*)\n", text))
    or_zero = {word: re.fullmatch(r"if \(isNan\((.*)\) == 1, 0\.0, \1\)", what) for word, what in meaning.items()}
    expression = re.search(r"expression \{\n(.*?)\n        \}", text, flags=re.S)
    listed = re.search(r"match-features \{\n(.*?)\n    \}", text, flags=re.S)
    assert expression and listed and listed[1].split() == list(meaning)
    known = {name: float(number) for name, number in fixed.items()}

    def value(word: str, features: Mapping[str, float]) -> float:
        result = or_zero[word]
        return features[meaning[word]] if result is None else float(np.nan_to_num(features[result[1]]))

    def score(features: Mapping[str, float]) -> float:
        reader = Reader(expression[1], known | {word: value(word, features) for word in meaning})
        result = reader.sum()
        assert reader.at == len(reader.tokens)
        return result

    return score


Documents: TypeAlias = list[dict[str, float]]
Scores: TypeAlias = Callable[[Documents], Floats]


def rows(documents: Documents, names: Sequence[str], absent: float = np.nan) -> Floats:
    return np.array([[document.get(name, absent) for name in names] for document in documents]).reshape(-1, len(names))


def each(score: Callable[[Mapping[str, float]], Any]) -> Scores:
    return lambda documents: np.array([score(document) for document in documents], dtype=np.float64)


def by_engine(parse: Callable[[str | bytes], EngineScore], content: str, _: Sequence[str]) -> Scores:
    score = parse(content)
    return each(lambda document: score({name: np.float32(x) for name, x in document.items() if x == x}))


def by_vespa(content: str, _: Sequence[str]) -> Scores:
    """An attribute without a value is NaN; a rank feature is 0."""
    score, functions = second_phase(content), [line for line in content.splitlines() if "expression: " in line]
    comments = [json.loads(line.strip()[2:]) for line in content.splitlines() if line.startswith("    # ")]
    inner = [line.split("isNan(")[-1].split(") ==")[0].split("expression: ")[-1] for line in functions]
    meanings = dict(zip(comments, inner, strict=True))

    def of_document(document: Mapping[str, float]) -> float:
        absent = {what: np.nan if what.startswith("attribute") else 0.0 for what in meanings.values()}
        known = {meanings[name]: x for name, x in document.items() if name in meanings}
        return score(absent | {what: x for what, x in known.items() if x == x or what.startswith("attribute")})

    return each(of_document)


def by_onnxruntime(content: bytes, _: Sequence[str]) -> Scores:
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])

    def scores(documents: Documents) -> Floats:
        (result,) = session.run(None, {"features": rows(documents, names).astype(np.float32)})
        assert result.shape == (len(documents), 1) and result.dtype == np.float32
        return np.asarray(result[:, 0], dtype=np.float64)

    return scores


def by_pmml4s(content: str, _: Sequence[str]) -> Scores:
    pypmml: Any = pytest.importorskip("pypmml")
    if shutil.which("java") is None:
        pytest.skip("java is not here: apt install default-jre-headless")
    loaded = pypmml.Model.fromString(content)
    assert list(loaded.outputNames) == ["score"]
    return each(lambda document: loaded.predict({name: x for name, x in document.items() if x == x})["score"])


def by_ranklib(content: str, names: Sequence[str]) -> Scores:
    """DataPoint.getFeatureValue gives 0 for a feature that is absent or NaN."""
    read = ranklib if content.startswith("## Coordinate") else ranklib_trees
    return lambda documents: read(content, np.nan_to_num(rows(documents, names)))


def by_lightgbm(content: str, names: Sequence[str]) -> Scores:
    booster = pytest.importorskip("lightgbm").Booster(model_str=content)
    return lambda documents: np.asarray(booster.predict(rows(documents, names)))


def by_liblinear(content: str, names: Sequence[str]) -> Scores:
    """It prints six digits, and has no other way to say 0 than to leave a feature out."""
    program = shutil.which("liblinear-predict")
    if program is None:
        pytest.skip("liblinear-predict is not here: apt install liblinear-tools")

    def scores(documents: Documents) -> Floats:
        with TemporaryDirectory() as name:
            folder, X = Path(name), np.nan_to_num(rows(documents, names))
            lines = ("0 " + " ".join(f"{k}:{x!r}" for k, x in enumerate(row, 1) if x) for row in X.tolist())
            (folder / "rows").write_text("\n".join(lines) + "\n")
            (folder / "model").write_text(content)
            command: list[str | Path] = [program, folder / "rows", folder / "model", folder / "out"]
            subprocess.run(command, check=True, capture_output=True)
            return np.loadtxt(folder / "out", ndmin=1)

    return scores


def by_json(content: str, _: Sequence[str]) -> Scores:
    """Plain JSON, read as its description says."""
    made = json.loads(content)
    assert (made["format"], made["version"]) == ("ranktune-export", 1)

    def of_document(document: Mapping[str, float]) -> float:
        total, x = 0.0, [document.get(feature["name"], np.nan) for feature in made["features"]]
        for feature, value in zip(made["features"], x, strict=True):
            total += feature.get("missing", 0.0) if np.isnan(value) else feature.get("weight", 0.0) * value
        for tree in made.get("trees", ()):
            node = 0 if tree["feature"] else -1
            while node >= 0:
                value, limit = x[tree["feature"][node]], tree["threshold"][node]
                of_missing = tree["missing_left"][node] if "missing_left" in tree else limit >= 0.0
                node = tree["left" if (of_missing if np.isnan(value) else value <= limit) else "right"][node]
            total += tree["value"][~node]
        return total

    return each(of_document)


def by_python(content: str, _: Sequence[str]) -> Scores:
    made: dict[str, Any] = {}
    exec(content, made)
    return each(made["score"])


EVALUATORS: dict[str, Callable[[Any, Sequence[str]], Scores]] = {
    "solr": partial(by_engine, solr),
    "elasticsearch": partial(by_engine, plugin),
    "opensearch": partial(by_engine, plugin),
    "vespa": by_vespa,
    "onnx": by_onnxruntime,
    "pmml": by_pmml4s,
    "ranklib": by_ranklib,
    "lightgbm": by_lightgbm,
    "liblinear": by_liblinear,
    "json": by_json,
    "python": by_python,
}
"""Format -> function(content, names of all features) that returns what scores documents."""
