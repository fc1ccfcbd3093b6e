"""Exports of two stages, ranked as the guides of the engines say that these rank: as the models do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.formats import export
from ranktune.solvers.export.two_stage import WRITERS, Stage, Stages, two_stage_files
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_samples import NAMES, linear, trees

WEIGHTS = np.array([0.75, 0.0, -2.5e-3, 0.0, 1.0])
WINDOW = 7


def documents(seed: int = 0, count: int = 40) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, 5))


def stages(second: LinearModel | TreeModel, window: int = WINDOW) -> Stages:
    first = LinearModel(WEIGHTS, "RidgeRanker", feature_names=NAMES)
    both = []
    for model in (first, second):
        scores = model.predict(documents(1))
        both.append(Stage(model, float(scores.mean()), float(scores.std())))
    return Stages(both[0], both[1], window, "mine", "mystore")


def expected(ranker: Stages, X: Floats) -> list[int]:
    """The documents in order: the window by the second model, then the others by the first."""
    first, second = ranker.first.model.predict(X), ranker.second.model.predict(X)
    order = sorted(range(len(X)), key=lambda k: -first[k])
    return sorted(order[: ranker.window], key=lambda k: -second[k]) + order[ranker.window :]


def of_function(text: str, params: Mapping[str, str], fields: Mapping[str, float]) -> float:
    """Evaluate a function of Solr: sum, product, sub, div and exp of numbers, fields and parameters."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|\$\w+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\w+|[(),]', text)
    assert "".join(tokens) == text
    position = 0

    def value() -> float:
        nonlocal position
        token = tokens[position]
        position += 1
        if token.startswith("$"):
            return of_function(params[token[1:]], params, fields)
        if not token.isalpha():
            return float(token)
        assert tokens[position] == "("
        position += 1
        if token == "field":
            name = json.loads(tokens[position])
            position += 2
            return fields[name]
        arguments = []
        while True:
            arguments.append(value())
            position += 1
            if tokens[position - 1] == ")":
                break
        known: dict[str, Callable[[list[float]], float]] = {
            "sum": sum,
            "product": math.prod,
            "exp": lambda args: math.exp(*args),
            "sub": lambda args: args[0] - args[1],
            "div": lambda args: args[0] / args[1],
        }
        return known[token](arguments)

    result = value()
    assert position == len(tokens)
    return result


@pytest.mark.parametrize("second", [linear(), trees()], ids=["linear", "trees"])
def test_solr_ranks_as_both_models(second: LinearModel | TreeModel) -> None:
    ranker, X = stages(second), documents()
    files = two_stage_files(ranker, "solr")
    assert files["model.json"] == export(second, "solr", name="mine", store="mystore")
    request = json.loads(files["request.json"])
    params = request["params"]
    assert params["rq"] == f"{{!ltr model=mine reRankDocs={WINDOW}}}"
    assert request["query"].startswith("{!func}")
    function = request["query"].removeprefix("{!func}")
    first = np.array([of_function(function, params, dict(zip(NAMES, row, strict=True))) for row in X.tolist()])
    assert ((first > 0.0) & (first < 1.0)).all()  # Lucene counts what is negative as 0
    order = np.argsort(-first, kind="stable").tolist()
    scores = second.predict(X)
    assert sorted(order[:WINDOW], key=lambda k: -scores[k]) + order[WINDOW:] == expected(ranker, X)


@pytest.mark.parametrize("format", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize("second", [linear(), trees()], ids=["linear", "trees"])
def test_the_plugin_ranks_as_both_models(format: str, second: LinearModel | TreeModel) -> None:
    ranker, X = stages(second), documents()
    files = two_stage_files(ranker, format)
    models = {"mine_first": ranker.first.model, "mine": second}
    for file, (name, model) in zip(("first.json", "model.json"), models.items(), strict=True):
        assert files[file] == export(model, format, name=name)
    request = json.loads(files["request.json"])

    def scored(query: Mapping[str, object]) -> Floats:
        """What script_score gives each document."""
        content = json.loads(json.dumps(query))["script_score"]
        inner = content["query"]
        inner = inner["bool"]["must"][0] if "bool" in inner else inner
        result = re.fullmatch(r"(1\.0 \+ )?1\.0 / \(1\.0 \+ Math\.exp\((.*)\)\)", content["script"]["source"])
        assert result
        assert result[2] == "(params.centre - _score) / params.spread"
        params = content["script"]["params"]
        scores = models[inner["sltr"]["model"]].predict(X)
        offset = 1.0 if result[1] else 0.0
        return np.asarray(offset + 1.0 / (1.0 + np.exp((params["centre"] - scores) / params["spread"])), np.float32)

    rescore = request["rescore"]
    assert rescore["window_size"] == WINDOW
    assert rescore["query"]["score_mode"] == "max"
    total = rescore["query"]["query_weight"] * scored(request["query"])
    window = np.argsort(-total, kind="stable")[:WINDOW]
    rescored = rescore["query"]["rescore_query_weight"] * scored(rescore["query"]["rescore_query"])
    total[window] = np.maximum(total[window], rescored[window])
    assert (total > 0.0).all()
    first = ranker.first.model.predict(X)  # documents of equal score may be in any order
    assert sorted(range(len(X)), key=lambda k: (-total[k], -first[k])) == expected(ranker, X)


def test_vespa_has_a_profile_of_both_phases() -> None:
    ranker, X = stages(trees()), documents()
    (profile,) = two_stage_files(ranker, "vespa").values()
    first = re.search(r"    first-phase \{\n        expression \{\n(.*?)\n        \}\n    \}\n", profile, flags=re.S)
    assert first
    names = dict(zip(re.findall(r"function (\w+)\(\)", profile), trees().used_features.tolist(), strict=True))
    terms = [re.fullmatch(r"\s*(\S+) \* (x_\w+)", term) for term in first[1].split(" +")]
    result = sum(float(term[1]) * X[:, names[term[2]]] for term in terms if term)
    assert all(terms)
    np.testing.assert_allclose(result, ranker.first.model.predict(X), rtol=1e-13)
    assert f"    second-phase {{\n        rerank-count: {WINDOW}\n        expression {{\n" in profile
    plain = str(export(trees(), "vespa", name="mine"))
    second = profile.replace(first[0], "", 1).replace(f"        rerank-count: {WINDOW}\n", "")
    assert second == plain


def test_formats_without_two_stages_are_refused() -> None:
    assert set(WRITERS) == {"vespa", "elasticsearch", "opensearch", "solr"}
    with pytest.raises(ParameterError, match="onnx has no two stages"):
        two_stage_files(stages(trees()), "onnx")
