"""Every form of data goes through read, tune, predict, evaluate and, where it is a file, the command line alike."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ranktune
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.sources.catalogue import load
from ranktune.solvers.models.linear import LinearModel
from tests.support.commands import called, succeeded
from tests.support.input_samples import ROWS, SAMPLES, Sample, expected, in_folder

STUDY: dict[str, Any] = {"solvers": "RidgeRanker", "trials": 2, "sampler": "random", "test": "none"}


def options_of(given: Mapping[str, str]) -> list[str]:
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]


def made(name: str, folder: Path) -> tuple[Sample, Any, dict[str, Any]]:
    sample = SAMPLES[name]
    return sample, sample.make(folder), dict(in_folder(sample.options, folder))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_form_is_read_scored_and_evaluated_alike(name: str, tmp_path: Path) -> None:
    sample, source, options = made(name, tmp_path)
    wanted = expected(sample)
    queries = ranktune.read(source, **options)
    assert np.array_equal(np.asarray(queries.features), wanted.features)
    assert np.array_equal(queries.grades, wanted.grades) and np.array_equal(queries.starts, wanted.starts)
    if "lightgbm" not in name and name != "xgboost":  # they hold the sizes of the queries alone
        assert [str(query_id) for query_id in queries.query_ids] == [str(query_id) for query_id in wanted.query_ids]
    (split,) = load(source, **options)  # as a study reads
    assert split.train.fingerprint == queries.fingerprint and split.test is split.vali is None

    weights = np.array([1.0, -0.5, 0.25])[: len(sample.columns)]
    model = LinearModel(weights, "RidgeRanker", feature_names=queries.feature_names)
    scores = ranktune.predict(model, source, **options)
    assert np.array_equal(scores, model.predict(np.asarray(queries.features)))
    actual = ranktune.evaluate(model, source, "map", also="ndcg@3", **options)["metrics"]
    named = replace(wanted, feature_names=model.feature_names)
    assert actual == ranktune.evaluate(model, named, "map", also="ndcg@3")["metrics"]
    if not sample.is_file:
        return

    file, columns = tmp_path / "model.json", options_of(options)
    model.save(file)
    described = json.loads(succeeded("data", source, *columns, "--json"))
    assert (described["parts"][0]["documents"], described["parts"][0]["features"]) == (144, len(sample.columns))
    assert [float(word) for word in succeeded("predict", file, source, *columns).split()] == scores.tolist()
    assert not succeeded("export", file, "--format", "python", "--check", source, *columns, "-o", tmp_path / "m.py")
    words = ("--metric", "map", "--also", "ndcg@3", "--json")
    assert json.loads(succeeded("evaluate", file, source, *columns, *words))["metrics"] == actual


@pytest.mark.parametrize("name", ["csv-columns", "jsonl-nested", "opensearch", "trec-folder"])
def test_the_command_tunes_on_files_as_python_does(name: str, tmp_path: Path) -> None:
    _, source, options = made(name, tmp_path)
    words = ["--solver", "RidgeRanker", "--trials", 2, "--sampler", "random", "--test", "none"]
    home = tmp_path / "runs"
    result = json.loads(succeeded("tune", source, *options_of(options), *words, "--home", home, "--json"))
    python = ranktune.tune(source, **STUDY, **options, home=home)
    assert result["trials"] == python.trials == 2
    assert ranktune.load_model(result["model"]).fingerprint == python.best_model.fingerprint


@pytest.mark.parametrize("name", ["polars-lazy", "tuple", "queries", "lightgbm", "xgboost"])
def test_a_study_takes_objects(name: str, tmp_path: Path) -> None:
    _, source, _ = made(name, tmp_path)
    result = ranktune.tune(source, **STUDY, home=tmp_path / "runs")
    assert result.trials == 2
    queries = ranktune.read(source)
    scores = ranktune.predict(result.best_model, source)
    assert np.array_equal(scores, result.best_model.predict(np.asarray(queries.features)))


def test_frames_are_validation_and_test_data_too(tmp_path: Path) -> None:
    _, frame, _ = made("pandas", tmp_path)
    other = frame.assign(bm25=frame["bm25"] + 1.0, age=-frame["age"])
    third = frame.assign(bm25=frame["bm25"] - 1.0, clicks=-frame["clicks"])
    study = {key: value for key, value in STUDY.items() if key != "test"}
    result = ranktune.tune(frame, vali=other, test=third, **study, home=tmp_path)
    assert result.best.test is not None
    assert result.best.test.mean == ranktune.evaluate(result.best_model, third)["metrics"]["ndcg@10"]["mean"]


def _shop() -> pl.DataFrame:
    """Return a table with a category and dates, whose columns of queries and grades have unusual names."""
    generator = np.random.default_rng(3)
    n = len(ROWS) * 2
    frame = pl.DataFrame({
        "session": [f"s{k // 6}" for k in range(n)],
        "bm25": generator.normal(size=n),
        "colour": generator.choice(["red", "blue", "green"], n),
        "added": pl.Series(generator.integers(0, 10**6, n) * 10**9).cast(pl.Datetime("us")).dt.truncate("1h"),
    })  # fmt: skip
    score = frame["bm25"].to_numpy() + 2.0 * (frame["colour"] == "red").to_numpy()
    return frame.with_columns(bought=pl.Series(np.digitize(score, [0.5, 2.0])))


def test_a_model_takes_tables_as_its_own_was_taken(tmp_path: Path) -> None:
    shop, home = tmp_path / "shop.csv", tmp_path / "runs"
    _shop().with_columns(pl.col("added").dt.to_string("iso")).write_csv(shop)
    options: dict[str, Any] = {"qid": "session", "grade": "bought"}
    ranktune.tune(shop, **STUDY | {"test": None}, **options, home=home, name="shop")
    model = ranktune.resume("shop", trials=3, home=home).best_model  # read again
    queries = ranktune.read(shop, **options)
    assert model.encoding == queries.encoding is not None
    assert model.feature_names == queries.feature_names and queries.n_features == 5
    other = _shop().to_pandas().drop(columns="bought").sample(frac=0.5, random_state=0)
    expected = pd.Series(model.predict(queries))[other.index]
    np.testing.assert_allclose(ranktune.predict(model, other), expected, rtol=1e-12)
    measured = ranktune.evaluate(model, shop)["metrics"]["ndcg@10"]["mean"]
    assert measured == ranktune.evaluate(model, queries)["metrics"]["ndcg@10"]["mean"] > 0.9
    model.save(tmp_path / "model.json")
    printed = succeeded("predict", tmp_path / "model.json", shop).split()
    assert [float(word) for word in printed] == model.predict(queries).tolist()
    assert json.loads(succeeded("evaluate", tmp_path / "model.json", shop, "--json"))["queries"] == queries.n_queries
    words = ["--format", "python", "--check", shop, "-o", tmp_path / "m.py"]
    done = called("export", tmp_path / "model.json", *words)
    assert "added:age_days is the days from added to 2001-" in done.stderr
    assert "the order is the same on 48 of 48 queries" in done.stderr


def test_features_that_look_wrong_are_named_and_kept(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X, qid = generator.normal(size=(600, 2)), np.repeat(np.arange(60), 10)
    frame = pd.DataFrame({"qid": qid, "grade": np.digitize(X[:, 0] + generator.normal(size=600), [0.5, 1.5])})
    frame = frame.assign(a=X[:, 0], b=X[:, 1], sku=generator.permutation(600) + 1000)
    with pytest.warns(RankTuneWarning, match='feature sku is another whole number.*drop="sku"') as warned:
        result = ranktune.tune(frame, **STUDY, home=tmp_path)
    assert len(warned) == 1 and result.best_model.feature_names == ("a", "b", "sku")
    result = ranktune.tune(frame, **STUDY, drop="sku", home=tmp_path, name="without")
    assert result.best_model.feature_names == ("a", "b")
