"""Files of LightGBM and XGBoost score as these libraries do, whatever their splits; other kinds are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.models.other_libraries import base
from ranktune.solvers.models.other_libraries.lightgbm import read_lightgbm
from ranktune.solvers.models.other_libraries.ubjson import decoded
from ranktune.solvers.models.other_libraries.xgboost import read_xgboost

generator = np.random.default_rng(0)
X: Floats = np.round(generator.normal(size=(1000, 4)), 1)
X[:, 3] = generator.integers(0, 40, 1000)
y = (X[:, 0] + (X[:, 3] % 3 == 1) > 0.5).astype(float)
X[generator.random(X.shape) < 0.1] = np.nan
ROWS = np.concatenate([X, X + 0.25, -X, np.full((1, 4), 1e-36), np.full((1, 4), -0.5), np.full((1, 4), 3e7)])
CATEGORIES = {"max_cat_to_onehot": 1}


def lightgbm_file(folder: Path, options: dict[str, Any]) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    small = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "min_data_in_leaf": 5}
    data = lightgbm.Dataset(X, y, categorical_feature=[3] if CATEGORIES.keys() <= options.keys() else [])
    return lightgbm.train(small | options, data, 10).save_model(folder / "model")


def xgboost_file(folder: Path, kind: str, options: dict[str, Any]) -> Any:
    xgboost = pytest.importorskip("xgboost")
    types = {"feature_types": ["q", "q", "q", "c"]} if CATEGORIES.keys() <= options.keys() else {}
    data = xgboost.DMatrix(X, y, **types, enable_categorical=bool(types))
    booster = xgboost.train({"nthread": 1} | options, data, 10)
    booster.save_model(folder / f"model.{kind}")
    return booster, xgboost.DMatrix(ROWS)


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
    monkeypatch.setattr(base, "MAX_BYTES", 1)
    with pytest.raises(ModelFormatError, match=f"is larger than 0 MB: {not_read}"):
        read_xgboost(tmp_path / "model.json")


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
