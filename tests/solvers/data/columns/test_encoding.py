import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.data.columns.encoding import DAY, Age, Category, TableEncoding
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.linear import LinearModel

COLOUR = Category(("red", "dark blue"), has_missing=True)
DATES = Age("2026-01-31T12:00:00+00:00")
ENCODING = TableEncoding("session", "bought", "sku", columns={"colour": COLOUR, "published": DATES})
NAMES = ("bm25", "colour=red", "colour=dark blue", "colour:missing", "published:age_days")


def test_features_are_named_after_columns() -> None:
    assert [ENCODING.features_of(name) for name in ("bm25", "colour", "published")] == [
        NAMES[:1],
        NAMES[1:4],
        NAMES[4:],
    ]
    sources = ENCODING.sources(NAMES)
    assert list(sources) == list(NAMES)
    assert list(sources.values()) == ["bm25", "colour", "colour", "colour", "published"]


def test_it_says_how_features_are_computed_that_are_no_columns() -> None:
    assert ENCODING.explained(NAMES[:1]) == []
    assert ENCODING.explained(NAMES) == [
        "colour=VALUE is 1 where colour is VALUE, else 0; colour:missing is 1 where it has none",
        "published:age_days is the days from published to 2026-01-31T12:00:00+00:00",
    ]


def test_an_age_counts_from_its_date_in_utc() -> None:
    assert DATES.microseconds == (np.datetime64("2026-01-31T12:00") - np.datetime64(0, "us")).astype(int)
    assert Age.until(DATES.microseconds) == DATES and Age.until(DAY).before == "1970-01-02T00:00:00+00:00"


def test_it_is_kept_as_json() -> None:
    assert TableEncoding.from_json(json.loads(json.dumps(ENCODING.as_json()))) == ENCODING
    assert TableEncoding.from_json(TableEncoding().as_json()) == TableEncoding()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"query": 7},
        {"missing": "maybe"},
        {"columns": ["colour"]},
        {"columns": {"colour": {"levels": [1], "missing": False}}},
        {"columns": {"colour": {"levels": "ab", "missing": False}}},
        {"columns": {"colour": {"levels": ["a"]}}},
        {"columns": {"day": {"before": "soon"}}},
        {"columns": {"day": {"before": 7}}},
        {"columns": {"day": None}},
    ],
)
def test_what_is_no_encoding_is_not_believed(change: dict[str, Any], tmp_path: Path) -> None:
    content = ENCODING.as_json() | change
    with pytest.raises(ValueError):
        TableEncoding.from_json(content)
    with pytest.raises(ValueError):
        TableEncoding.from_json([content])

    class Damaged(TableEncoding):
        def as_json(self) -> dict[str, Any]:
            return content

    LinearModel(np.ones(5), "RidgeRanker", feature_names=NAMES, encoding=Damaged()).save(tmp_path / "model.json")
    with pytest.raises(ModelFormatError, match="encoding cannot be used"):
        load_model(tmp_path / "model.json")


def test_queries_and_models_keep_it(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(6, 5))
    made = Queries(X, np.arange(6.0), np.array([0, 3, 6]), np.array(["a", "b"]), feature_names=NAMES, encoding=ENCODING)
    assert made.select([1]).encoding == concatenate([made, made]).encoding == ENCODING
    write_queries(made, tmp_path / "queries")
    assert read_queries(tmp_path / "queries").encoding == ENCODING
    model = LinearModel(np.ones(5), "RidgeRanker", feature_names=NAMES, encoding=ENCODING)
    for original in (model, blended([model, model], [0.5, 2.0], "LinearBlend", {})):
        original.save(tmp_path / "model.json")
        assert load_model(tmp_path / "model.json").encoding == ENCODING


def test_files_without_it_are_read(tmp_path: Path) -> None:
    LinearModel(np.ones(5), "RidgeRanker").save(tmp_path / "model.json")
    assert "encoding" not in json.loads((tmp_path / "model.json").read_text())
    assert load_model(tmp_path / "model.json").encoding is None
