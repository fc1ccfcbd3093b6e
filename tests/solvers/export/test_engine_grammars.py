"""What is exported is what the parsers of engines accept, and what they would refuse does not pass the check."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.encoding import Age, Category, TableEncoding
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import SYNTAX, check_syntax
from ranktune.solvers.export.definitions import definition_files, meanings_of
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.blend import BlendModel, needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import one_tree
from tests.support.engine_grammars import Profile, Refused, load_plugin, load_solr, load_solr_features, load_vespa
from tests.support.export_samples import random_trees, trees

ENGINES: dict[str, Callable[[str], Any]] = {
    "solr": load_solr,
    "elasticsearch": load_plugin,
    "opensearch": load_plugin,
    "vespa": load_vespa,
}
numbers = st.floats(-1e300, 1e300, allow_subnormal=True) | st.integers(-(2**70), 2**70).map(float)


@settings(deadline=None, max_examples=60)
@given(st.lists(numbers, min_size=1, max_size=4), st.booleans())
@example([5.15e-8, -2.5e-7, 1e-300], False)
@example([1e300, 1e22, 5e-324], True)
@example([-0.0, 3.0, -123456789012345680.0], True)
def test_any_weights_are_read_by_vespa_as_they_are(weights: list[float], learnt: bool) -> None:
    missing = np.array(weights[::-1]) if learnt else None
    model = LinearModel(np.array(weights), "RankSVM", missing=missing)
    made = str(export(model, "vespa"))
    check_syntax("vespa", made)
    score = load_vespa(made)
    for k, weight in enumerate(weights):
        others = {f"f{j + 1}": 0.0 for j in range(len(weights))}
        assert score(others | {f"f{k + 1}": 1.0}) == weight
    if missing is not None:
        assert score({}) == sum(missing.tolist())


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([None, "some", "all"]), st.sampled_from([1e-30, 1e-7, 1.0, 1e12, 1e30]))
@example(0, "some", 1e-30)
@example(1, "all", 1e30)
def test_any_trees_are_loaded_by_engines(seed: int, learnt: str | None, scale: float) -> None:
    """Thresholds and leaves from 1e-30 to 1e30, with sides for missing values or without."""
    generator = np.random.default_rng(seed)
    trees = random_trees(seed, count=3, splits=5)
    sides = None if learnt is None else generator.random(trees.n_splits) < (0.5 if learnt == "some" else 2.0)
    trees = replace(trees, threshold=trees.threshold * scale, value=trees.value * scale, missing_left=sides)
    model = TreeModel(trees, 6, "LambdaMART")
    for format in SYNTAX:
        if FORMATS[format].holds(needs_of(model)):
            made = str(export(model, format))
            check_syntax(format, made)
            if format in ENGINES:
                ENGINES[format](made)
    score = load_vespa(str(export(model, "vespa")))
    X = generator.normal(size=(20, 6)) * scale
    if learnt is not None:
        X[generator.random(X.shape) < 0.3] = np.nan
    documents = [{f"f{k + 1}": x for k, x in enumerate(row)} for row in X.tolist()]
    assert [score(document) for document in documents] == model.predict(X).tolist()


LEVELS = ("a{b", "}", "{}", "a\\", "\\", '"', "'", "#", "a\nb", "\x00", "\x08", "\x1f", "é", "\U0001f600", "", " ")


@pytest.mark.parametrize("level", LEVELS)
def test_a_value_of_a_category_stays_what_it_is_in_a_profile(level: str) -> None:
    encoding = TableEncoding(columns={"kind": Category((level,))})
    model = LinearModel(np.ones(1), "RankSVM", feature_names=(f"kind={level}",), encoding=encoding)
    made = str(export(model, "vespa"))
    check_syntax("vespa", made)
    ((function, _),) = Profile(made).functions.values()
    assert function[1] == ("==", ("attribute", ("name", "kind")), ("text", level))


@pytest.mark.parametrize(
    "names",
    [
        ("0x1",), ("99999999999999999999",), ("1L",), ("1f",), ("123",), ("5e3",), ("term(0x1)",), ("true", "in"),
        ("price", "x_price"), ("price", "x_price", "xx_price", "bm25(xx_x)"), ("x_", "x__x"), ("nativeRank(a.b, 12)",),
    ],
)  # fmt: skip
def test_no_name_is_taken_for_a_number_or_for_another_feature(names: tuple[str, ...]) -> None:
    model = LinearModel(np.array([2.0**k for k in range(len(names))]), "RankSVM", feature_names=names)
    made = str(export(model, "vespa"))
    check_syntax("vespa", made)
    score = load_vespa(made)
    for k, name in enumerate(names):
        assert score({name: 1.0}) == 2.0**k


def test_definitions_for_solr_are_of_types_that_its_setters_take() -> None:
    columns: dict[str, Category | Age] = {"brand": Category(("Elm",), True), "day": Age("2026-01-31T00:00:00+00:00")}
    names = ("brand=Elm", "brand:missing", "day:age_days", "bm25(title)", "price")
    missing = np.array([0.5, 0.0, 0.25, 0.0, 1e-9])
    model = LinearModel(
        np.ones(5), "RankSVM", feature_names=names, encoding=TableEncoding(columns=columns), missing=missing
    )
    source = source_of(model, "solr", "mine", "store")
    definitions = definition_files(source, meanings_of(source))["features.json"]
    load_solr_features(definitions)
    assert [feature["name"] for feature in json.loads(definitions)] == list(names)


def knowing() -> TreeModel:
    tree = one_tree([0, 1], [0.5, -1e-7], [1, -1], [-3, -2], [1.0, 2e-8, 4.0], [True, True])
    return TreeModel(tree, 2, "LambdaMART")


def blend() -> BlendModel:
    weights = LinearModel(np.array([5.15e-8, -0.5]), "RankSVM", missing=np.array([0.0, 0.25]))
    return BlendModel((weights, knowing()), "Blend")


CHANGES = [
    ("solr", '"isNullSameAsZero":false', '"isNullSameAsZero":"false"'),
    ("solr", '"isNullSameAsZero":false', '"isNullSameAsZero":0'),
    ("solr", '"threshold":"', '"threshold":"f'),
    ("solr", '"value":"1.0"', '"value":1.0'),
    ("solr", '"value":"1.0"', '"value":"inf"'),
    ("solr", '"weight":"1.0"', '"weights":"1.0"'),
    ("solr", '"missing":"left"', '"missing":"l"'),
    ("elasticsearch", '\\"split_condition\\":', '\\"split_condition\\":NaN,\\"split_condition\\":'),
    ("elasticsearch", '\\"leaf\\":1.0', '\\"leaf\\":Infinity'),
    ("elasticsearch", '\\"depth\\":0', '\\"depth\\":\\"0\\"'),
    ("opensearch", '\\"leaf\\":1.0', '\\"leaf\\":\\"one\\"'),
    ("opensearch", '\\"nodeid\\":0', '\\"nodeid\\":0,\\"gain\\":1'),
    ("vespa", "(x_f2 <= -1e-07) || (isNan(x_f2) == 1)", "x_f2 <= -1e-07 || isNan(x_f2) == 1"),
    ("vespa", "5.15e-08 * x_f1", "5.15e * x_f1"),
    ("vespa", "5.15e-08 * x_f1", "w_f1 * x_f1"),
    ("vespa", "    second-phase", "    constants {\n        w_f1: 5.15e-08\n    }\n    second-phase"),
    ("vespa", "attribute(f1)", "attribute(0x1)"),
    ("vespa", "expression: ", "expression: }"),
    ("vespa", "isNan(x_f2) == 1)", "isNan(x_f2) == 1"),
    ("ranklib", "## LambdaMART", "## LambdaMARTS"),
    ("ranklib", "</threshold>", "x</threshold>"),
    ("ranklib", ' pos="left"', ""),
    ("ranklib", "</split></tree>", "</tree>"),
    ("ranklib", '<tree id="1" weight="1.0">', "<tree>"),
]


@pytest.mark.parametrize(("format", "old", "new"), CHANGES)
def test_what_an_engine_refuses_the_check_refuses(format: str, old: str, new: str) -> None:
    model = {"vespa": blend, "ranklib": trees}.get(format, knowing)()
    made = str(export(model, format))
    check_syntax(format, made)
    assert old in made
    broken = made.replace(old, new, 1)
    with pytest.raises(DataError, match="does not load the model"):
        check_syntax(format, broken)
    if format not in ENGINES:
        return
    ENGINES[format](made)
    with pytest.raises(Refused):
        loaded = ENGINES[format](broken)
        assert loaded is not None  # a loader of Vespa knows what is not defined when it scores
        loaded({"f1": 0.25, "f2": 0.5})


def test_the_grammar_of_constants_has_no_exponent() -> None:
    """What was written once: it is what the refusals above are about."""
    profile = "rank-profile m inherits default {\n constants {\n w: %s\n }\n second-phase {\n expression: w\n }\n}\n"
    for number in ("0.5", "-3.0", "12", "-0.000000051"):
        assert Profile(profile % number).name == "m"
    for number in ("5.15e-08", "1e-300", "1E5", "-2.5e-07", ".5"):
        with pytest.raises(Refused):
            Profile(profile % number)


def test_a_number_in_json_is_no_number_of_a_tree_in_solr() -> None:
    made = json.loads(export(knowing(), "solr"))
    assert type(made["params"]["isNullSameAsZero"]) is bool
    made["params"]["trees"][0]["root"]["threshold"] = 0.5
    with pytest.raises(Refused):
        load_solr(json.dumps(made))
