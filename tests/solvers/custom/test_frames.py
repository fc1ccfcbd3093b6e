"""Solvers of the user's that choose columns by name are given the table, as data frames."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ranktune import register_solver
from ranktune.solvers import Float, Int, Queries, load_model
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.sources.catalogue import read
from ranktune.solvers.models.blend import blended
from ranktune.solvers.registry import make


def shop() -> pd.DataFrame:
    """A table of 30 queries with a category, text, a date and missing values."""
    generator = np.random.default_rng(3)
    brand = pd.Categorical(generator.choice(["Elm", "Birch", "Fir"], 240))
    price = np.where(generator.random(240) < 0.2, np.nan, generator.random(240))
    days = pd.to_datetime("2026-01-01") - pd.to_timedelta(generator.integers(0, 90, 240), "D")
    table = pd.DataFrame({"qid": np.arange(240) // 8, "brand": brand, "price": price, "listed": days})
    return table.assign(grade=(brand == "Elm") * 1.0 + (np.nan_to_num(price) > 0.6))


def by_names(columns: Any) -> Any:
    """A pipeline that chooses the columns of a table by name, or by a function of the frame."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(make_column_transformer((encoder, columns), (numbers, ["price"])), Ridge())


@pytest.mark.parametrize("columns", [["brand"], make_column_selector(dtype_include="category")], ids=["names", "type"])
def test_a_pipeline_that_chooses_columns_by_name_gets_the_table(columns: Any, tmp_path: Path) -> None:
    table = shop()
    pipeline = by_names(columns)
    register_solver("Piped", pipeline, [Float("ridge__alpha", 0.1, 10.0, 1.0)], load=pickled, save=pickle_to)
    data = read(table)
    assert data.feature_names is not None and "brand=Elm" in data.feature_names
    ranker = make("Piped", {}, seed=0).fit(data)
    expected = by_names(columns).fit(table[["brand", "price"]], table["grade"]).predict(table)
    np.testing.assert_allclose(ranker.predict(data), expected, rtol=1e-12, atol=1e-12)
    ranker.as_model(feature_names=data.feature_names, encoding=data.encoding).save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    for given in (table, data, np.asarray(data.features)):
        np.testing.assert_allclose(model.predict(given), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        blended([model, model], [0.5, 0.5], "Blend", {}).predict(table), expected, rtol=1e-12, atol=1e-12
    )
    with pytest.raises(DataError, match="the features have none"):
        make("Piped", {}, seed=0).fit(Queries.from_arrays(data.features, data.grades, group=data.lengths))


def test_an_estimator_that_says_so_gets_categories_and_missing_values() -> None:
    class Native(LGBMRegressor):
        takes_frame = True

    table = shop()
    native = Native(n_estimators=5, min_child_samples=5, verbosity=-1)
    with pytest.raises(ParameterError, match="could not be delivered"):  # trees of columns are not those of features
        register_solver("Native", native, [Int("num_leaves", 3, 9, 7)])
    register_solver("Native", native, [Int("num_leaves", 3, 9, 7)], save=pickle_to, load=pickled)
    ranker = make("Native", {}, seed=0).fit(read(table))
    inputs = table[["brand", "price"]].assign(listed=(table["listed"].max() - table["listed"]).dt.days)
    alone = LGBMRegressor(n_estimators=5, min_child_samples=5, verbosity=-1, num_leaves=7, seed=0)
    np.testing.assert_allclose(ranker.predict(read(table)), alone.fit(inputs, table["grade"]).predict(inputs))


def pickle_to(estimator: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(estimator))


def pickled(path: Path) -> Any:
    return pickle.loads(path.read_bytes())
