"""Models: what they predict, and that what is loaded is what was saved."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.models.linear import LinearModel

NAMES = ("bm25", "title length", "page rank")


@pytest.fixture
def model() -> LinearModel:
    return LinearModel(
        np.array([0.5, -2.0, 0.0]), "RankSVM", parameters={"C": 0.1}, feature_names=NAMES, metric="ndcg@10"
    )


def same(a: Model, b: LinearModel) -> bool:
    assert isinstance(a, LinearModel)
    fields = ("solver", "parameters", "list_scaling", "feature_names", "metric", "fingerprint")
    return a.weights.tobytes() == b.weights.tobytes() and all(getattr(a, f) == getattr(b, f) for f in fields)


# --- predict ---


def test_scores_are_the_weighted_sums_in_the_order_of_the_rows(model: LinearModel) -> None:
    X = np.random.default_rng(0).normal(size=(7, 3))
    expected = X @ model.weights
    plain = LinearModel(model.weights, "RankSVM")
    qid = [2, 1, 2, 1, 3, 3, 1]
    for features in (X, sparse.csr_array(X), sparse.coo_matrix(X), np.asfortranarray(X), X.tolist(), pd.DataFrame(X)):
        assert np.allclose(plain.predict(features, qid=qid), expected, rtol=1e-12)
    assert np.allclose(model.predict(Queries.from_arrays(X, np.zeros(7), qid=qid)), expected, rtol=1e-12)
    assert np.allclose(model.predict(X.astype(np.float32)), expected, rtol=1e-6)
    assert model.predict(X[:0]).shape == (0,)
    assert (model.n_features, model.nonzeros) == (3, 2)


def test_rows_of_a_model_of_documents_need_no_query(model: LinearModel) -> None:
    X = np.random.default_rng(0).normal(size=(1200, 3))
    plain = LinearModel(model.weights, "RankSVM")  # a warning would be an error
    assert plain.predict(X).tolist() == plain.predict(X, qid=np.arange(1200) // 10).tolist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_named_columns_are_matched_by_name(model: LinearModel, frame: Any) -> None:
    X = np.random.default_rng(1).normal(size=(5, 3))
    columns = {"qid": np.arange(5), "page rank": X[:, 2], "bm25": X[:, 0], "title length": X[:, 1]}
    assert np.allclose(model.predict(frame(columns)), X @ model.weights, rtol=1e-12)
    with pytest.raises(DataError, match="no column 'bm25' and 1 more"):
        model.predict(frame({"page rank": X[:, 2], "BM25": X[:, 0]}))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_named_features_of_queries_are_matched_by_name(model: LinearModel, convert: Any) -> None:
    X = np.random.default_rng(2).normal(size=(5, 4))
    names = ("page rank", "other", "title length", "bm25")
    queries = Queries.from_arrays(convert(X), np.zeros(5), qid=[1, 2, 1, 2, 1], feature_names=names)
    assert np.allclose(model.predict(queries), X[:, [3, 2, 0]] @ model.weights, rtol=1e-12)


def test_what_cannot_be_scored_is_refused(model: LinearModel) -> None:
    with pytest.raises(DataError, match=r"4 features.*trained on 3"):
        model.predict(np.zeros((2, 4)))
    with pytest.raises(DataError, match=r"4 features.*trained on 3"):
        model.predict(sparse.csr_array((2, 4)))
    with pytest.raises(DataError, match=r"2 features.*trained on 3"):
        model.predict(Queries.from_arrays(np.zeros((2, 2)), np.zeros(2)))
    with pytest.raises(DataError, match=r"feature .* is missing \(NaN\).*no missing values"):
        model.predict(np.array([[0.0, np.nan, 0.0]]))
    with pytest.raises(DataError, match="finite"):
        model.predict(np.array([[0.0, np.inf, 0.0]]))
    with pytest.raises(DataError, match="two-dimensional"):
        model.predict(np.zeros(3))
    doubled = pd.DataFrame(np.zeros((1, 4)), columns=["bm25", "bm25", "title length", "page rank"])
    with pytest.raises(DataError, match="several columns 'bm25'"):
        model.predict(doubled)
    with pytest.raises(DataError, match="X is a tuple: give the features alone"):
        model.predict((np.zeros((2, 3)), np.zeros(2), [1, 1]))


def test_missing_values_of_pandas_extension_types_are_nan() -> None:
    model = LinearModel(np.array([1.0, 2.0]), "RankSVM", feature_names=("count", "flag"))
    frame = pd.DataFrame({"count": pd.array([1, 2], dtype="Int64"), "flag": pd.array([True, None], dtype="boolean")})
    assert model.predict(frame[:1]).tolist() == [3.0]
    with pytest.raises(DataError, match=r"feature 'flag' is missing \(NaN\)"):
        model.predict(frame)


def test_list_scaling_looks_at_each_query_alone() -> None:
    generator = np.random.default_rng(3)
    X, qid = generator.normal(size=(12, 3)), generator.permutation(np.repeat([5, 6, 7], 4))
    scaled = LinearModel(np.array([1.0, -1.0, 2.0]), "ElasticRank", list_scaling=True)
    together = scaled.predict(X, qid=qid)
    for query in (5, 6, 7):
        alone = scaled.predict(X[qid == query])
        assert np.allclose(together[qid == query], alone, rtol=1e-12)
        stretched = scaled.predict(X[qid == query] * np.array([10.0, 0.1, 3.0]))  # units do not matter
        assert np.allclose(stretched - stretched[0], alone - alone[0], atol=1e-9)
    assert not np.allclose(together, X @ scaled.weights)


def test_a_model_keeps_a_copy_of_its_weights() -> None:
    weights = np.array([1.0, -0.0])
    model = LinearModel(weights, "RankSVM")
    weights[:] = 7.0
    assert model.weights.tolist() == [1.0, 0.0] and not np.signbit(model.weights).any()


def test_weights_and_names_must_fit() -> None:
    with pytest.raises(DataError, match="2 feature names for 3 weights"):
        LinearModel(np.zeros(3), "RankSVM", feature_names=("a", "b"))
    for weights in (np.zeros((2, 2)), np.zeros(0)):
        with pytest.raises(DataError, match="one weight per feature"):
            LinearModel(weights, "RankSVM")


# --- save and load ---


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_what_is_loaded_is_what_was_saved_to_the_bit(tmp_path: Path, weights: list[float]) -> None:
    parameters: Any = {"C": 1e-300, "loss": "hinge", "bias": None, "on": True, "n": 3}
    saved = LinearModel(np.array(weights), "RankSVM", parameters=parameters)
    saved.save(tmp_path / "model.json")
    assert same(load_model(tmp_path / "model.json"), saved)


@pytest.mark.parametrize(("n", "share", "beside"), [(1_000, 1.0, False), (1_001, 1.0, True), (10**6, 1e-4, False)])
@pytest.mark.parametrize("scale", [1e-310, 1.0])
def test_few_weights_stand_in_the_manifest_and_many_beside_it(
    tmp_path: Path, n: int, share: float, beside: bool, scale: float
) -> None:
    generator = np.random.default_rng(4)
    weights = generator.normal(size=n) * scale * (generator.random(n) < share)
    saved = LinearModel(weights, "ElasticRank", parameters={"a": np.float64(0.1)}, list_scaling=True, fingerprint="abc")
    saved.save(tmp_path / "m.json")
    assert len(list(tmp_path.iterdir())) == 1 + beside
    assert same(load_model(str(tmp_path / "m.json")), saved)


def test_many_names_stand_beside_the_manifest(tmp_path: Path) -> None:
    names = tuple(f'"{i}"\n\\ ü[{{\ud800 of a long name' for i in range(30_000))
    saved = LinearModel(np.eye(1, len(names))[0], "RankSVM", feature_names=names)
    saved.save(tmp_path / "m.json")
    assert same(load_model(tmp_path / "m.json"), saved)
    (beside,) = tmp_path.glob("m.feature_names-*.txt")
    beside.write_bytes(beside.read_bytes()[:-64])
    with pytest.raises(ModelFormatError, match="not the file"):
        load_model(tmp_path / "m.json")
    LinearModel(np.ones(1), "RankSVM").save(tmp_path / "m.json")
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_many_sparse_weights_are_saved_with_their_places(tmp_path: Path) -> None:
    weights = np.zeros(50_000)
    weights[::17] = np.random.default_rng(5).normal(size=len(weights[::17]))
    saved = LinearModel(weights, "RankSVM")
    saved.save(tmp_path / "m.json")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 16 * len(weights[::17]) + 2_000
    assert same(load_model(tmp_path / "m.json"), saved)


@pytest.mark.parametrize(
    "name", ["with space.json", "modèle.json", "new\nline.json", "no-suffix", ".hidden.json", "a:b"]
)
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    saved = LinearModel(np.arange(1.0, 2_000.0), "RankSVM")
    saved.save(tmp_path / name)
    assert same(load_model(tmp_path / name), saved)


def test_saving_a_second_time_leaves_a_single_model(tmp_path: Path) -> None:
    stranger = tmp_path / "m.weights-notours.npz"
    stranger.write_bytes(b"")
    for seed in range(3):
        saved = LinearModel(np.random.default_rng(seed).normal(size=2_000), "RankSVM")
        saved.save(tmp_path / "m.json")
    assert same(load_model(tmp_path / "m.json"), saved)
    assert len(list(tmp_path.iterdir())) == 3 and stranger.exists()
    LinearModel(np.ones(2), "RankSVM").save(tmp_path / "m.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", stranger.name]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_save_that_fails_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    old = LinearModel(np.random.default_rng(0).normal(size=2_000), "RankSVM")
    old.save(tmp_path / "m.json")
    before = sorted(path.name for path in tmp_path.iterdir())
    calls = 0
    replace = os.replace

    def fails(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(28, "No space left on device")
        replace(*arguments)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        LinearModel(np.random.default_rng(1).normal(size=2_000), "RankSVM").save(tmp_path / "m.json")
    assert same(load_model(tmp_path / "m.json"), old)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [3, 3_000])
def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, value: float, n: int) -> None:
    weights = np.ones(n)
    weights[2] = value
    with pytest.raises(ModelFormatError, match=r"weights\[2\]"):
        LinearModel(weights, "RankSVM").save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_parameters_that_json_does_not_know_are_not_saved(tmp_path: Path) -> None:
    for value in (np.inf, object()):
        with pytest.raises(ModelFormatError, match="JSON"):
            LinearModel(np.ones(1), "RankSVM", parameters={"C": value}).save(tmp_path / "m.json")  # type: ignore[dict-item]
    with pytest.raises(ModelFormatError, match="too long"):
        LinearModel(np.ones(1), "RankSVM", parameters={"note": "x" * 2**23}).save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [100.0, -100.0])
def test_scores_that_are_not_finite_are_refused(value: float) -> None:
    model = LinearModel(np.full(3, 1e308), "RankSVM")
    assert np.isfinite(model.predict(np.full((2, 3), 1e-9))).all()
    with pytest.raises(DataError, match=r"the score of row 1 is -?inf"):
        model.predict(np.array([[0.0, 0.0, 0.0], [value] * 3]))
