"""Files of LightGBM, XGBoost and CatBoost score as these libraries do; other kinds are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import export
from ranktune.solvers.export.check import agreement
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.other_libraries import base
from ranktune.solvers.models.other_libraries.catboost import read_catboost
from ranktune.solvers.models.other_libraries.lightgbm import read_lightgbm
from ranktune.solvers.models.other_libraries.xgboost import decoded, read_xgboost
from ranktune.solvers.rankings.opening import open_ranking

generator = np.random.default_rng(0)
X: Floats = np.round(generator.normal(size=(1000, 4)), 1)
X[:, 3] = generator.integers(0, 40, 1000)
y = (X[:, 0] + (X[:, 3] % 3 == 1) > 0.5).astype(float)
X[generator.random(X.shape) < 0.1] = np.nan
ROWS = np.concatenate([X, X + 0.25, -X, np.full((1, 4), 1e-36), np.full((1, 4), -0.5), np.full((1, 4), 3e7)])
CATEGORIES = {"max_cat_to_onehot": 1}


def lightgbm_file(folder: Path, options: dict[str, Any]) -> Any:
    import lightgbm

    small = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "min_data_in_leaf": 5}
    data = lightgbm.Dataset(X, y, categorical_feature=[3] if CATEGORIES.keys() <= options.keys() else [])
    return lightgbm.train(small | options, data, 10).save_model(folder / "model")


def xgboost_file(folder: Path, kind: str, options: dict[str, Any]) -> Any:
    import xgboost

    types = {"feature_types": ["q", "q", "q", "c"]} if CATEGORIES.keys() <= options.keys() else {}
    data = xgboost.DMatrix(X, y, **types, enable_categorical=bool(types))
    booster = xgboost.train({"nthread": 1} | options, data, 10)
    booster.save_model(folder / f"model.{kind}")
    return booster, xgboost.DMatrix(ROWS)


def catboost_file(folder: Path, options: dict[str, Any], given: Any = X, **columns: Any) -> Any:
    import catboost

    small = {"iterations": 10, "depth": 4, "thread_count": 1, "allow_writing_files": False, "logging_level": "Silent"}
    pool = catboost.Pool(given, y, group_id=np.arange(len(X)) // 10, **columns)
    model = catboost.CatBoost({"loss_function": "RMSE"} | small | options).fit(pool)
    model.save_model(str(folder / "model.json"), format="json", pool=pool)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        CATEGORIES,
        CATEGORIES | {"zero_as_missing": True},
        {"use_missing": False},
        {"objective": "poisson"},
        {"boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"min_data_in_leaf": 2000},
    ],
)
def test_files_of_lightgbm_score_to_the_bit(options: dict[str, Any], tmp_path: Path) -> None:
    expected = lightgbm_file(tmp_path, options).predict(ROWS, raw_score=True)
    model = read_lightgbm(tmp_path / "model")
    assert model.n_features == 4 and model.names is None
    np.testing.assert_array_equal(model.scores(ROWS), expected)
    np.testing.assert_array_equal(model.scores(sparse.csr_array(ROWS)), expected)


@pytest.mark.parametrize("kind", ["json", "ubj"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        CATEGORIES,
        {"booster": "dart", "rate_drop": 0.5},
        {"objective": "count:poisson"},
        {"objective": "binary:logistic", "base_score": 0.3},
        {"num_parallel_tree": 2},
        {"tree_method": "exact", "gamma": 1.0},  # prunes, so that nodes are deleted
    ],
)
def test_files_of_xgboost_score_as_it_does(
    kind: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "CELLS", 5000)  # several blocks
    booster, rows = xgboost_file(tmp_path, kind, options)
    scores = read_xgboost(tmp_path / f"model.{kind}").scores(ROWS)
    np.testing.assert_allclose(scores, booster.predict(rows, output_margin=True), rtol=1e-5, atol=1e-6)
    assert np.ptp(scores) > 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"nan_mode": "Min"},
        {"nan_mode": "Max"},
        {"per_float_feature_quantization": ["0:nan_mode=Max", "1:nan_mode=Min"]},
        {"ignored_features": [1, 2]},
        {"loss_function": "Logloss"},
        {"loss_function": "YetiRank", "depth": 6},
        {"depth": 1, "boost_from_average": False},
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_files_of_catboost_score_as_it_does(known: bool, options: dict[str, Any], tmp_path: Path) -> None:
    """Where missing values are known from training, and where they first come later."""
    given = X if known else np.nan_to_num(X)
    model = catboost_file(tmp_path, options, given, feature_names=["a", "b", "c", "d"] if known else None)
    model.set_scale_and_bias(*((0.7, -2.0) if "depth" in options else model.get_scale_and_bias()))
    model.save_model(str(tmp_path / "model.json"), format="json")
    whole = json.loads((tmp_path / "model.json").read_text())
    borders = np.array([value for feature in whole["features_info"]["float_features"] for value in feature["borders"]])
    borders = borders[np.abs(borders) < 3e38]  # those at the ends are for missing values
    near = np.concatenate([borders, np.nextafter(borders, np.inf), np.nextafter(borders, -np.inf), [3.4e38, -3.4e38]])
    rows = np.concatenate([ROWS, np.tile(near[:, None], 4)])
    read = read_catboost(tmp_path / "model.json")
    assert read.names == (("a", "b", "c", "d") if known else None)
    expected = model.predict(rows, prediction_type="RawFormulaVal")
    assert np.ptp(expected) > 0.1
    for scores in (read.scores(rows), load_model(tmp_path / "model.json").predict(rows)):
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)


def test_files_of_the_first_releases_with_json_score_alike(tmp_path: Path) -> None:
    xgboost_file(tmp_path, "json", {})
    expected = read_xgboost(tmp_path / "model.json").scores(ROWS)
    whole = json.loads((tmp_path / "model.json").read_text())
    model, parameters = whole["learner"]["gradient_booster"]["model"], whole["learner"]["learner_model_param"]
    parameters["base_score"] = parameters["base_score"].strip("[]")
    del model["iteration_indptr"], model["cats"], parameters["num_target"]
    for tree in model["trees"]:
        tree["default_left"] = [side == 1 for side in tree["default_left"]]
        for name in [name for name in tree if name.startswith(("categories", "split_type"))]:
            del tree[name]
    (tmp_path / "model.json").write_text(json.dumps(whole))
    np.testing.assert_array_equal(read_xgboost(tmp_path / "model.json").scores(ROWS), expected)


def test_other_kinds_of_models_and_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    not_read = "such models are not read. Score the documents with"
    options: dict[str, Any]
    for options in ({"linear_tree": True}, {"objective": "multiclass", "num_class": 2}):
        lightgbm_file(tmp_path, options)
        with pytest.raises(ModelFormatError, match=not_read):
            read_lightgbm(tmp_path / "model")
    for options in ({"booster": "gblinear"}, {"objective": "multi:softprob", "num_class": 2}):
        xgboost_file(tmp_path, "json", options)
        with pytest.raises(ModelFormatError, match=not_read):
            read_xgboost(tmp_path / "model.json")
    for options in ({"grow_policy": "Depthwise"}, {"loss_function": "MultiClass"}):
        catboost_file(tmp_path, options)
        with pytest.raises(ModelFormatError, match=not_read):
            read_catboost(tmp_path / "model.json")
    words = np.nan_to_num(X).astype(int).astype(object)
    for size in (1, 99):  # counters, and a column for each category
        catboost_file(tmp_path, {"one_hot_max_size": size}, words, cat_features=[3])
        with pytest.raises(ModelFormatError, match=f"features that are categories, text or embeddings: {not_read}"):
            load_model(tmp_path / "model.json")
    monkeypatch.setattr(base, "MAX_BYTES", 1)
    with pytest.raises(ModelFormatError, match=f"is larger than 0 MB: {not_read}"):
        read_xgboost(tmp_path / "model.json")


def dumps() -> dict[str, str]:
    """What users of search engines have of models, as they have it."""
    import lightgbm
    import xgboost

    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), 2)
    trees = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    whole = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(X, y), 2).dump_model()
    uploaded = {"name": "m", "model": {"type": "model/xgboost+json", "definition": json.dumps(trees)}}
    return {
        "XGBoost, trees": json.dumps(trees, indent=1), "XGBoost, a tree": json.dumps(trees[0]),
        "XGBoost, list": json.dumps(booster.get_dump()), "XGBoost, text": booster.get_dump(with_stats=True)[0],
        "XGBoost, dot": f"booster[0]:\n{booster.get_dump(dump_format='dot')[0]}",
        "XGBoost, uploaded": json.dumps({"model": uploaded}),
        "XGBoost, with objective": json.dumps({"objective": "rank:ndcg", "splits": trees}),
        "LightGBM, as it is": json.dumps(whole), "LightGBM, sorted": json.dumps(whole, sort_keys=True, indent=2),
    }  # fmt: skip


def test_dumps_are_refused_as_what_they_are(tmp_path: Path) -> None:
    for name, text in dumps().items():
        (tmp_path / "dump").write_text(text)
        library = name.split(",")[0]
        with pytest.raises(ModelFormatError, match=f"is a dump of a model of {library}.*Save the model by save_model"):
            open_ranking(tmp_path / "dump")


def test_models_of_other_libraries_are_exported(tmp_path: Path) -> None:
    lightgbm_file(tmp_path, {})
    xgboost_file(tmp_path, "ubj", {"base_score": 0.25})
    catboost_file(tmp_path, {"nan_mode": "Max"})
    data = Queries.from_arrays(ROWS, np.zeros(len(ROWS)), qid=np.arange(len(ROWS)) // 10)
    for name in ("model", "model.ubj", "model.json"):
        model = load_model(tmp_path / name)
        agreed = agreement(model, "python", export(model, "python"), data)
        assert agreed.same == agreed.queries and agreed.difference < 1e-12
        export(model, "onnx")
        model.save(tmp_path / "ours.json")
        np.testing.assert_array_equal(load_model(tmp_path / "ours.json").predict(ROWS), model.predict(ROWS))
    lightgbm_file(tmp_path, CATEGORIES)
    with pytest.raises(ModelFormatError, match=r"has splits by categories.*train it in LightGBM without them"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("content", "defect"),
    [
        (b"[#L" + bytes(7) + b"\x01" + b"[#U\x01" * 40 + b"Z", "nested more than 32 deep"),
        (b"[#i\xff", "a length in it is below 0"),
        (b"[$d#L\x7f" + b"\xff" * 7, "it ends early"),
        (b"[$Z#L\x7f" + b"\xff" * 7, "an array of the unknown type 'Z'"),
        (b"[i\x01]", "an array in it has no length"),
        (b"ZZ", "goes on after its end"),
        (b"{d", "is no whole number"),
        (b"H", "the unknown type 'H'"),
    ],
)
def test_damaged_ubjson_is_refused(content: bytes, defect: str) -> None:
    with pytest.raises(DataError, match=defect):
        decoded(content)
