"""What Solr and the plugins of Elasticsearch and OpenSearch hold in single precision, and what is refused. What a
feature is taken for in an engine, by the columns of the table and by its name. What the features of Vespa's rank
profiles stand for. What is exported is what the parsers of engines accept, and what they would refuse does not pass
the check."""

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.encoding import Age, Category, TableEncoding
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import SYNTAX, check_syntax
from ranktune.solvers.export.definitions import WRITERS, definition_files, meanings_of, summary, to_fill_in
from ranktune.solvers.export.search_engines import SLACK, without_slack
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.blend import BlendModel, needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from tests.engines.cells import CELLS, GOLDEN, MADE, exported
from tests.solvers.export.test_formats import HOSTILE
from tests.support.engine_grammars import Profile, Refused, load_plugin, load_solr, load_solr_features, load_vespa
from tests.support.export_samples import linear, random_trees, trees


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
@example(-0.49999997)
@example(1.0000000180025095e-35)
def test_what_solr_adds_is_taken_away(threshold: float) -> None:
    t = np.array([threshold], dtype=np.float32)
    reached = without_slack(t) + SLACK
    assert reached.dtype == np.float32 and reached[0] <= t[0]
    to_power = np.exp2(np.ceil(np.log2(abs(float(t[0]))))) - abs(float(t[0])) if threshold else 1.0
    if threshold == 0.0 or (abs(threshold) >= 2.0**-17 and (threshold > 0.0 or to_power > 2e-6)):
        assert reached[0] == t[0]
    else:  # no number plus the slack need give it: the last place is lost, or what is tiny beside the slack
        assert float(t[0]) - float(reached[0]) <= max(2.0**-42, float(np.spacing(np.abs(t[0]))))


@pytest.mark.parametrize("thresholds", [(1e-7, 3.0), (-2.5e-13, 1e-9), (1e-29, 8e3, 0.0)])
def test_values_that_are_tiny_beside_what_solr_adds_go_where_they_go_in_the_model(thresholds: tuple[float]) -> None:
    """Each threshold, its neighbours and 0 are told apart, in Solr's own arithmetic."""
    for threshold in thresholds:
        stumps = [one_tree([0], [t], [-1], [-2], [0.0, 1.0]) for t in (threshold, *thresholds)]
        model = json.loads(str(export(TreeModel(joined(stumps), 1, "x"), "solr")))
        tree, (feature,) = model["params"]["trees"][0]["root"], model["features"]
        limit = np.float32(tree["threshold"]) + np.float32(1e-6)
        low, high = (
            np.float32(feature.get("norm", {"params": {"min": 0, "max": 1}})["params"][end]) for end in ("min", "max")
        )
        near = np.float32(threshold) + np.spacing(np.float32(threshold)) * np.arange(-3, 4, dtype=np.float32)
        for x in (*near, np.float32(0.0), np.float32(-1.0), np.float32(50.0)):
            assert ((x - low) / (high - low) <= limit) == (float(x) <= threshold)


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "opensearch", "onnx"])
@pytest.mark.parametrize("weight", [1e39, -1e300, 1e-39, 5e-324])
def test_what_single_precision_cannot_hold_is_refused(format: str, weight: float) -> None:
    with pytest.raises(ParameterError, match=rf"{format} computes in single precision.*json, python"):
        export(LinearModel(np.array([0.0, weight]), "RankSVM"), format)


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "onnx"])
def test_trees_that_single_precision_cannot_hold_are_refused(format: str) -> None:
    for threshold in (1e39, -1e299, 3.4028235e38):
        with pytest.raises(ParameterError, match=f"splits at .* and {format} compares in single precision"):
            export(TreeModel(one_tree([0], [threshold], [-1], [-2], [0.0, 1.0]), 1, "x"), format)
    with pytest.raises(ParameterError, match=f"and {format} computes in single precision"):
        export(TreeModel(one_tree([0], [0.0], [-1], [-2], [0.0, 1e40]), 1, "x"), format)


def test_names_of_the_model_and_of_the_store() -> None:
    made = json.loads(export(linear(), "solr", name="mine", store="features"))
    assert (made["name"], made["store"]) == ("mine", "features")
    assert json.loads(export(linear(), "solr"))["store"] == "_DEFAULT_"
    assert json.loads(export(linear(), "elasticsearch", name="mine"))["model"]["name"] == "mine"


@pytest.mark.parametrize("engine", json.loads(GOLDEN.read_text()))
def test_what_engines_were_given_is_what_is_written_and_they_scored_it_alike(engine: str) -> None:
    """The scores are those of the engines themselves; RANKTUNE_WRITE_GOLDEN has tests/engines note them again."""
    known = json.loads(GOLDEN.read_text())[engine]
    assert len(known) >= len(MADE) - 1
    for name, entry in known.items():
        cell = CELLS[name]()
        assert exported(engine, cell) == entry["export"], name
        absent_is_zero = engine == "opensearch 2.19.6" or not cell.model.takes_missing
        X = np.nan_to_num(cell.X) if absent_is_zero else cell.X
        X = np.maximum(X, 0.0) if engine.startswith("elasticsearch") else X  # as its documents were
        cell._replace(X=X).check(np.array(entry["scores"]))


COLUMNS: dict[str, Category | Age] = {
    "brand": Category(("Elm", "{{x}}"), has_missing=True),
    "listed_on": Age("2026-01-31T00:00:00+00:00"),
    "a b": Category(("c",)),
}
KINDS = {
    "brand=Elm": "level",
    "brand={{x}}": "unknown",
    "brand:missing": "missing",
    "listed_on:age_days": "age",
    "a b=c": "unknown",
    "bm25(title)": "text",
    "bm25_body.en": "text",
    "nativeRank(title)": "unknown",
    "price": "field",
    "BM25": "unknown",
    "price per kg": "unknown",
    "size=3": "unknown",
}
MODEL = LinearModel(np.ones(len(KINDS)), "RankSVM", feature_names=tuple(KINDS), encoding=TableEncoding(columns=COLUMNS))


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "vespa"])
def test_a_feature_is_what_its_column_or_its_name_says(format: str) -> None:
    meanings = meanings_of(source_of(MODEL, format, "x", "x"))
    of_vespa = {"brand:missing": "unknown", "nativeRank(title)": "text"} if format == "vespa" else {}
    assert {meaning.feature: meaning.kind for meaning in meanings} == KINDS | of_vespa
    unknown = [name for name, kind in (KINDS | of_vespa).items() if kind == "unknown"]
    assert to_fill_in(meanings) == unknown and f"{len(unknown)} to fill in" in "".join(summary(meanings))
    said = summary(meanings)
    assert max(map(len, said[:2])) <= 80
    assert "must have these fields: body.en, brand, listed_on, price and title." in " ".join(said)
    if format == "vespa":
        assert str(export(MODEL, "vespa")).count("# FILL_IN") == len(unknown)


@pytest.mark.parametrize("format", WRITERS)
def test_hostile_names_and_values_stay_what_they_are(format: str) -> None:
    names = tuple(HOSTILE)
    levels = Category(tuple(name for name in HOSTILE if "{{" not in name and "${" not in name))
    features = (*names, *levels.names("kind"))
    model = LinearModel(
        np.ones(len(features)), "x", feature_names=features, encoding=TableEncoding(columns={"kind": levels})
    )
    source = source_of(model, format, 'say "x"', "store")
    files = definition_files(source, meanings_of(source))
    for name, text in files.items():
        text.encode()
        if name.endswith(".py"):
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.keyword)]
            assert [ast.literal_eval(k.value) for k in calls if k.arg == "feature_name"] == list(features)
            continue
        made = json.loads(text)
        made = made if format == "solr" else made["featureset"]["features"]
        assert [feature["name"] for feature in made] == list(features)
        for level, feature in zip(levels.levels, made[len(names) :], strict=True):
            known = feature["params"]["fq"] if format == "solr" else str(feature["template"])
            assert known == [f"{{!term f=kind}}{level}"] if format == "solr" else repr({"kind": level}) in known


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
