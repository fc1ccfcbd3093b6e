"""What a feature is taken for in an engine, by the columns of the table and by its name."""

import ast
import json

import numpy as np
import pytest

from ranktune.solvers.data.columns.encoding import Age, Category, TableEncoding
from ranktune.solvers.export import export
from ranktune.solvers.export.definitions import WRITERS, definition_files, meanings_of, summary, to_fill_in
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.linear import LinearModel
from tests.solvers.export.test_formats import HOSTILE

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
