"""The signs of Solr's [features] are those that read every text of the file."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError

NAMES = ["bm25", "price", "tf:title", "title match", "f.3", "in stock?"]


def logged(texts: list[str], path: Path) -> Path:
    documents = [{"id": f"d{k}", "qid": k // 2, "grade": k % 2, "[features]": text} for k, text in enumerate(texts)]
    path.write_text("\n".join(map(json.dumps, documents)))
    return path


@pytest.mark.parametrize("seed", range(int(os.environ.get("RANKTUNE_CASES", "100"))))
def test_no_sign_changes_a_feature(seed: int, tmp_path: Path) -> None:
    generator = np.random.default_rng(seed)
    between, equals = generator.choice(list(",;| \t&/#")), generator.choice(list("=:"))
    names = list(generator.permutation(NAMES)[: generator.integers(1, 6)])
    values = np.round(generator.normal(size=(6, len(names))) * 10.0 ** generator.integers(-3, 6), 4).astype(np.float32)
    kept = generator.random(values.shape) < 0.8  # sparse: a feature that a text lacks is 0
    kept[0] = True
    space = str(generator.choice(["", " "]))
    texts = [
        f"{between}{space}".join(f"{names[j]}{equals}{values[k, j]}" for j in range(len(names)) if kept[k, j])
        for k in range(6)
    ]
    try:
        queries = ranktune.read(logged(texts, tmp_path / "log.jsonl"))
    except DataError:
        return
    assert queries.feature_names == tuple(names)
    np.testing.assert_array_equal(np.asarray(queries.features), np.where(kept, values, 0.0))


@pytest.mark.parametrize(
    "text",
    [
        "bm25:1.5 price=7",
        "x;y:3.0=7",
        "price:10.0=7",
        "a:1,500 b=7",
        "a=1,500,b=7",
        "a=-Infinity;b=7",
        "a=1,500;b=7",
        "a::1,b::7",
    ],
)
def test_a_name_that_reads_as_another_feature_is_refused_with_the_remedy(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="csvFeatureSeparator=, and csvKeyValueDelimiter==, and rename"):
        ranktune.read(logged([text, text], tmp_path / "log.jsonl"))


@pytest.mark.parametrize("name", ["brand=Elm, & Co", "a,b", 'say "a, b", c'])
def test_names_with_commas_and_missing_values_are_read(name: str, tmp_path: Path) -> None:
    """Solr 9.2 and later log NaN where the definition of a feature says so."""
    queries = ranktune.read(logged([f"{name}=NaN,price=2.0", f"{name}=1.5,price=NaN"], tmp_path / "log.jsonl"))
    assert queries.feature_names == (name, "price")
    np.testing.assert_array_equal(np.asarray(queries.features), [[np.nan, 2.0], [1.5, np.nan]])


@pytest.mark.parametrize("value", ["", "p.5", "1.5x"])
def test_a_value_that_is_no_number_is_not_a_part_of_the_next_name(value: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"log.jsonl:2: 'a={value},b=2' is no feature of Solr"):
        ranktune.read(logged(["a=1,b=2", f"a={value},b=2"], tmp_path / "log.jsonl"))


def test_signs_that_differ_between_documents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"log.jsonl:2: 'a:1;b:2' is no feature of Solr"):
        ranktune.read(logged(["a=1,b=2", "a:1;b:2"], tmp_path / "log.jsonl"))
