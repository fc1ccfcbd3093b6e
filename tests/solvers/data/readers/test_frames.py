from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.arrow import is_frame
from tests.support.frames import from_frame

COLUMNS: dict[str, list[Any]] = {
    "qid": ["b", "a", "b"],
    "grade": [1, 0, 2],
    "bm25": [0.5, 1.5, 2.5],
    "clicks": [3, 4, 5],
    "docid": ["x", "y", "z"],
}

frames = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


@frames
def test_columns_can_be_named(library: Any) -> None:
    queries = from_frame(library.DataFrame(COLUMNS), features=["clicks"], grade="bm25", qid="docid", document="qid")
    assert queries.feature_names == ("clicks",)
    assert queries.grades.tolist() == [0.5, 1.5, 2.5] and queries.query_ids.tolist() == ["x", "y", "z"]
    assert queries.document_ids is not None and queries.document_ids.tolist() == ["b", "a", "b"]


@frames
def test_single_precision_stays_single(library: Any) -> None:
    columns = {"qid": [1, 1], "grade": [0, 1], "f": np.array([0.1, 0.2], dtype=np.float32)}
    assert from_frame(library.DataFrame(columns)).features.dtype == np.float32


@frames
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"bm25": ["a", "b", "c"]}, "no feature can be made of 'bm25' \\(text, 3 different values\\).*drop=\"bm25\""),
        ({"clicks": [1.0, 2.0, float("inf")]}, "'clicks'.*row 2"),
        ({"grade": ["good", "bad", "good"]}, "grade column 'grade' holds"),
        ({"grade": [None, 1.0, 2.0]}, "'grade'.*row 0"),
        ({"qid": ["a", None, "b"]}, "'qid' has no id in row 1"),
    ],
)
def test_bad_columns_are_named(library: Any, change: dict[str, list[Any]], word: str) -> None:
    with pytest.raises(DataError, match=word):
        from_frame(library.DataFrame({**COLUMNS, **change}))


@frames
def test_all_columns_that_cannot_be_features_are_named_with_the_option_that_drops_them(library: Any) -> None:
    more = {
        "sku": ["x-1", "x-2", "x-3"], "added": [date(2026, 1, k) for k in (1, 2, 3)], "sold": [True, False, True],
        "shelf": [timedelta(1)] * 3,
    }  # fmt: skip
    frame = library.DataFrame({**COLUMNS, **more})
    with pytest.raises(DataError, match=r"'sku' \(text, 3 .*\) and 'shelf' \(.*drop=\"sku,shelf\""):
        from_frame(frame)
    assert from_frame(frame, drop="sku,shelf").feature_names == ("bm25", "clicks", "added:age_days", "sold")


@frames
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bm25", [0.5, None, 1.0]),
        ("bm25", [0.5, float("nan"), 1.0]),
        ("clicks", [3, None, 1]),
        ("clicks", [None, None, None]),
    ],
)
def test_missing_values_stay_missing(library: Any, name: str, values: list[Any]) -> None:
    frame = library.DataFrame({**COLUMNS, name: values})
    queries = from_frame(frame)
    assert queries.has_missing and queries.feature_names is not None
    result = queries.in_caller_order(queries.features[:, queries.feature_names.index(name)])
    np.testing.assert_array_equal(result, np.array(values, dtype=np.float64))
    with pytest.raises(DataError, match=rf"'{name}'.*missing values: .*, the first in row"):
        from_frame(frame, missing="error")
    zeros = from_frame(frame, missing="zero")
    assert not zeros.has_missing and np.isfinite(zeros.features).all()


def test_frames_of_other_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="cannot be used"):
        from_frame(pl.LazyFrame(COLUMNS).select("none"))
    with pytest.raises(DataError, match="no rows"):
        from_frame(pl.DataFrame({"qid": [], "grade": [], "f": []}))
    with pytest.raises(DataError, match="expected a data frame"):
        from_frame([1, 2])
    twice = pd.DataFrame([[1, 0, 0.5, 0.5]], columns=["qid", "grade", "f", "f"])
    with pytest.raises(DataError, match="same name"):
        from_frame(twice)


def test_pandas_extension_types_are_read() -> None:
    frame = pd.DataFrame(
        {
            "qid": pd.Categorical(["a", "a", "b"]),
            "grade": pd.array([1, 0, 2], dtype="Int64"),
            "f": pd.array([1, None, 3], dtype="Int32"),
            "g": pd.array([0.5, 1, None], dtype="Float64"),
            "h": pd.array([None, True, False], dtype="boolean"),
        },
        index=[7, 7, 9],
    )
    queries = from_frame(frame)
    np.testing.assert_array_equal(queries.features, [[1, 0.5, np.nan], [np.nan, 1, 1], [3, np.nan, 0]])
    assert queries.query_ids.tolist() == ["a", "b"]


def test_frames_are_told_from_other_things() -> None:
    assert is_frame(pd.DataFrame(COLUMNS)) and is_frame(pl.DataFrame(COLUMNS)) and is_frame(pl.LazyFrame(COLUMNS))
    assert not is_frame(np.zeros((2, 2))) and not is_frame("frame") and not is_frame(pd.Series([1]))
