"""Vespa's rank profiles, evaluated by a small reader of its ranking expressions in double precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Features, Floats
from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_samples import SAMPLES, linear, random_blend, random_rows, random_trees, trained

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
        found = or_zero[word]
        return features[meaning[word]] if found is None else float(np.nan_to_num(features[found[1]]))

    def score(features: Mapping[str, float]) -> float:
        reader = Reader(expression[1], known | {word: value(word, features) for word in meaning})
        found = reader.sum()
        assert reader.at == len(reader.tokens)
        return found

    return score


def scores(model: Model, X: Features, names: list[str]) -> Floats:
    score = second_phase(str(export(model, "vespa")))
    return np.array([score(dict(zip(names, row, strict=True))) for row in X.tolist()])


MEANINGS = ["bm25(title)", "attribute(clicks)", "attribute(page_x20_rank)", "attribute(say_x20__x22_so_x22_)"]
MEANINGS.append("attribute(gr_xf6__xdf_e)")


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_scores_are_those_of_the_model(model: Model) -> None:
    X = np.round(np.random.default_rng(0).normal(size=(100, 5)), 1)
    X[:3] = [[0.1] * 5, [-1.5] * 5, [1.0 / 3.0] * 5]
    np.testing.assert_allclose(scores(model, X, MEANINGS), model.predict(X), rtol=1e-14)


@pytest.mark.parametrize(
    "model", [TreeModel(random_trees(0), 6, "LambdaMART"), random_blend(0)], ids=["trees", "blend"]
)
def test_models_of_any_shape(model: Model) -> None:
    X = random_rows(2, 50)
    found, expected = scores(model, X, [f"attribute(f{k})" for k in range(1, 7)]), model.predict(X)
    assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()
    assert ranks_alike(expected, found)


@pytest.mark.parametrize("solver", ["RankSVM", "LambdaMART", "Blend"])
def test_order_on_real_data(letor_folds: dict[str, Path], solver: str) -> None:
    model, queries = trained(letor_folds["MQ2008"], solver)
    count = 40 if solver == "RankSVM" else 5  # the reader is slow
    names = [f"attribute(f{k})" for k in range(1, model.n_features + 1)]
    theirs = scores(model, queries.features[: queries.starts[count]], names)
    ours = model.predict(queries)
    pairs = list(zip(queries.starts[:count], queries.starts[1 : count + 1], strict=True))
    assert sum(ranks_alike(ours[a:b], theirs[a:b]) for a, b in pairs) == count


def or_zero(attribute: str) -> str:
    """An attribute that is 0 where a document has no value."""
    return f"if (isNan({attribute}) == 1, 0.0, {attribute})"


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("bm25(title)", "bm25(title)"),
        ("fieldMatch(title).completeness", "fieldMatch(title).completeness"),
        ("nativeRank(a, b)", "nativeRank(a, b)"),
        ("bm25(title) * 2", or_zero("attribute(bm25_x28_title_x29__x20__x2a__x20_2)")),
        ("bm25()", or_zero("attribute(bm25_x28__x29_)")),
        ("now", or_zero("attribute(now)")),
    ],
)
def test_rank_features_stand_for_themselves_and_others_for_attributes(name: str, meaning: str) -> None:
    made = str(export(LinearModel(np.ones(1), "RankSVM", feature_names=(name,)), "vespa"))
    assert f"        expression: {meaning}\n" in made


def test_an_attribute_is_0_unless_training_documents_lacked_it() -> None:
    model = LinearModel(np.ones(2), "RankSVM", feature_names=("price", "age"), missing=np.array([0.5, 0.0]))
    made = str(export(model, "vespa"))
    assert "        expression: attribute(price)\n" in made
    assert f"        expression: {or_zero('attribute(age)')}\n" in made


def test_the_profile_has_the_name() -> None:
    assert "rank-profile my_x2d_model inherits default {" in str(export(linear(), "vespa", name="my-model"))
