"""Models of other libraries, in files and in memory.

Files of LightGBM, XGBoost and CatBoost are read as trees, without these libraries: their loaders do not check what they
read, so that a damaged file would end the process. Models in memory and ONNX are scored by their libraries; where one
is not installed, an error says what to install. A file is never unpickled.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Floats, Matrix, dense
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.columns.encoding import Category, TableEncoding
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.custom import inputs_of, takes_frame
from ranktune.solvers.models.other_libraries.base import LibraryModel, UnsupportedModelError
from ranktune.solvers.models.other_libraries.lightgbm import levels_in
from ranktune.solvers.models.other_libraries.xgboost import model_of
from ranktune.solvers.rankings.base import FeatureRanking, WantedFeatures

BLOCK_ROWS = 65_536
"""Documents that are made dense at a time."""


def of_trees(model: LibraryModel, name: str, missing: float = np.nan) -> FeatureRanking:
    """Return the ranking of a model of LightGBM, XGBoost or CatBoost that was read; missing is a missing value too."""
    wanted = WantedFeatures(model.names, model.n_features, solver=model.library, used=model.used_features)
    return _by_levels(name, wanted, model.levels, lambda X: model.scores(np.where(X == missing, np.nan, X)))


def of_lightgbm(booster: Any, name: str) -> FeatureRanking:
    """Return the ranking of a lightgbm.Booster, by its scores before the transformation of its objective."""
    wanted = _wanted(booster.feature_name(), "Column_", "LightGBM")
    try:
        levels = levels_in(booster.model_to_string(num_iteration=1))
    except UnsupportedModelError as error:
        raise DataError(f"{name} {error}. Score the documents with LightGBM, and give the scores.") from None
    return _by_levels(name, wanted, levels, lambda X: booster.predict(X, raw_score=True))


def of_catboost(model: object, name: str) -> FeatureRanking:
    """Return the ranking of a model of CatBoost, by its raw values, of which a classifier makes classes."""
    raw = partial(libraries.load("catboost").CatBoost.predict, model, prediction_type="RawFormulaVal")
    return FeatureRanking(name, _wanted(getattr(model, "feature_names_", ()), "", "CatBoost"), _in_blocks(raw))


def _wanted(names: Sequence[str], numbered: str, solver: str) -> WantedFeatures:
    """Return the features of a model, which have names unless these are numbers, from 0, after a text."""
    are_names = list(names) != [f"{numbered}{number}" for number in range(len(names))]
    return WantedFeatures(tuple(names) if are_names else None, len(names), solver=solver)


def of_xgboost(model: Any, name: str) -> FeatureRanking:
    """Return the ranking of an xgboost.Booster or of an estimator, whose predict stops at the best iteration."""
    booster, best, missing = model, None, getattr(model, "missing", np.nan)
    if hasattr(model, "get_booster"):
        booster, best = model.get_booster(), getattr(model, "best_iteration", None)
    try:
        return of_trees(model_of(bytes(booster.save_raw("json")), best), name, missing)
    except UnsupportedModelError:
        xgboost = libraries.load("xgboost")
    names = None if booster.feature_names is None else tuple(booster.feature_names)

    def score(queries: Queries) -> Floats:
        data = xgboost.DMatrix(queries.features, missing=missing, feature_names=booster.feature_names)
        return np.asarray(booster.predict(data, output_margin=True))

    return FeatureRanking(name, WantedFeatures(names, int(booster.num_features()), solver="XGBoost"), score)


def _by_levels(
    name: str, wanted: WantedFeatures, levels: Mapping[int, tuple[str, ...]], score: Callable[[Matrix], Floats]
) -> FeatureRanking:
    """Return the ranking of a model that takes categories as their numbers among levels, by place of the feature."""
    if not levels:
        return FeatureRanking(name, wanted, _in_blocks(score))
    if wanted.names is None:
        raise DataError(f"{name} has categories of features without names, which no table has. Give its scores.")
    encoding = TableEncoding(columns={wanted.names[place]: Category(values) for place, values in levels.items()})
    made = [encoding.features_of(feature) for feature in wanted.names]
    ends = np.cumsum(list(map(len, made)))[:-1]

    def numbered(X: Matrix) -> Floats:
        columns = np.split(X, ends, axis=1)
        for place in levels:
            marks = columns[place]
            columns[place] = np.where(marks.any(axis=1), marks.argmax(axis=1), np.nan)[:, None]
        return score(np.hstack(columns))

    return FeatureRanking(name, replace(wanted, names=sum(made, ()), encoding=encoding), _in_blocks(numbered))


def onnx_file(path: Path) -> FeatureRanking:
    """Return the ranking of an ONNX model with one input (n, n_features) of numbers; a feature_names entry is used."""
    onnxruntime = libraries.load("onnxruntime")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # it has a class of errors for each status
        raise ModelFormatError(
            f"onnxruntime cannot read {path}: {_last_line(error)}. Export the model again."
        ) from None
    inputs, outputs = session.get_inputs(), [output.name for output in session.get_outputs()]
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    if len(inputs) != 1 or inputs[0].type not in kinds or len(inputs[0].shape) != 2:
        raise ModelFormatError(f"{path}: its input must be one matrix of numbers, a row per document.")
    output = "score" if "score" in outputs else outputs[0]
    names = session.get_modelmeta().custom_metadata_map.get("feature_names")
    width = inputs[0].shape[1]
    wanted = WantedFeatures(_names(names), width if isinstance(width, int) else None)

    def score(X: Matrix) -> Floats:
        values = session.run([output], {inputs[0].name: X.astype(kinds[inputs[0].type])})[0]
        return np.asarray(values, dtype=np.float64).reshape(len(X), -1)[:, -1]

    return FeatureRanking(str(path), wanted, _in_blocks(score))


def of_object(model: Any, name: str) -> FeatureRanking | None:
    """Return the ranking of a model in memory: a booster, or an object with predict(X); None for other objects."""
    if isinstance(model, _types("xgboost", "Booster", "XGBModel")):
        return of_xgboost(model, name)
    if isinstance(model, _types("lightgbm", "Booster", "LGBMModel")):
        return of_lightgbm(getattr(model, "booster_", model), name)
    if isinstance(model, _types("catboost", "CatBoost")):
        return of_catboost(model, name)
    if not callable(getattr(model, "predict", None)):
        return None

    def predicted(X: object) -> Floats:
        try:
            return np.asarray(model.predict(X))
        except Exception as error:  # it is the user's
            cause = f"{type(error).__name__}: {_last_line(error)}"
            raise DataError(
                f"the predict of {name} failed on the data: {cause} "
                "Give a model that learned from features such as these, or the scores that it gives."
            ) from error

    if takes_frame(model):
        return FeatureRanking(name, WantedFeatures(), lambda queries: predicted(inputs_of(model, queries)))
    names = getattr(model, "feature_names_in_", None)
    count = getattr(model, "n_features_in_", None)
    wanted = WantedFeatures(None if names is None else tuple(map(str, names)), count)
    return FeatureRanking(name, wanted, _in_blocks(predicted))


def _types(library: str, *names: str) -> tuple[type, ...]:
    """Return types of a library, none where it was not imported, so that no object is of them."""
    module = sys.modules.get(library)
    return () if module is None else tuple(getattr(module, name) for name in names)


def _in_blocks(score: Callable[[Matrix], Floats]) -> Callable[[Queries], Floats]:
    """Return score for Queries, whose features are made dense block by block."""

    def of_queries(queries: Queries) -> Floats:
        rows = range(0, queries.n_documents, BLOCK_ROWS)
        return np.concatenate([score(dense(queries.features[first : first + BLOCK_ROWS])) for first in rows])

    return of_queries


def _names(text: str | None) -> tuple[str, ...] | None:
    """Return the feature names in the metadata of an ONNX model, None where there are none."""
    try:
        names = json.loads(text or "null")
    except ValueError:
        return None
    return tuple(map(str, names)) if isinstance(names, list) and names else None


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
