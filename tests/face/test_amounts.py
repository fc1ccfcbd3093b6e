"""Numbers as people write them in the cells of a table, the largest double, and grades that are words."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import ranktune
from ranktune.solvers import RidgeRanker
from ranktune.solvers.core.errors import DataError, RankTuneWarning

untyped: Any = ranktune
GENERATOR = np.random.default_rng(0)
N = 240
VALUES = np.round(GENERATOR.lognormal(7.0, 2.0, N), 2)
TABLE = pl.DataFrame({
    "qid": np.arange(N) // 8, "grade": GENERATOR.integers(0, 3, N), "bm25": GENERATOR.random(N)
})  # fmt: skip
SWAPPED = str.maketrans(",.", ".,")


def european(value: float, sign: str = ".") -> str:
    return f"{value:,.2f}".translate(SWAPPED).replace(".", sign)


WRITTEN: dict[str, Callable[[float], str]] = {
    "dollars": lambda value: f"${value:,.2f}",
    "euros": lambda value: f"{european(value)} \u20ac",
    "decimal commas": european,
    "per cent": lambda value: f"{value} %",
    "spaces": lambda value: european(value, " "),
    "narrow spaces": lambda value: f"EUR {european(value, chr(0x202F))}",
    "Swiss": lambda value: f"CHF {value:,.2f}".replace(",", "'"),
    "losses": lambda value: f"(${value:,.2f})" if value < 500.0 else f"-${value:,.2f}",
    "Hive": lambda value: r"\N" if value < 500.0 else f"\u00a3{value:,.2f}",
}
"""How a column may be written."""
EXPECTED = {"losses": -VALUES, "Hive": np.where(VALUES < 500.0, np.nan, VALUES)}


def ways_in(frame: pl.DataFrame, folder: Path) -> Iterator[Any]:
    frame.write_csv(folder / "table.csv")
    frame.write_parquet(folder / "table.parquet")
    yield from (frame, frame.to_pandas(), folder / "table.csv", folder / "table.parquet")


@pytest.mark.parametrize("name", WRITTEN)
def test_a_column_is_read_as_numbers_in_every_way_in(name: str, tmp_path: Path) -> None:
    frame = TABLE.with_columns(price=pl.Series(map(WRITTEN[name], VALUES)))
    for source in ways_in(frame, tmp_path):
        with pytest.warns(RankTuneWarning, match="the column 'price' holds text, and is read as numbers: "):
            queries = untyped.read(source)
        assert queries.feature_names == ("bm25", "price")
        np.testing.assert_array_equal(queries.features[:, 1], EXPECTED.get(name, VALUES))


@pytest.mark.parametrize("name", ["dollars", "decimal commas", "per cent"])
def test_a_model_reads_other_tables_as_its_own(name: str, tmp_path: Path) -> None:
    frame = TABLE.with_columns(price=pl.Series(map(WRITTEN[name], VALUES)))
    (tmp_path / "new").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        queries = untyped.read(frame)
    model = RidgeRanker().fit(queries).as_model(feature_names=queries.feature_names, encoding=queries.encoding)
    model.save(tmp_path / "model.json")
    model = ranktune.load_model(tmp_path / "model.json")
    few = frame[:8].with_columns(price=pl.Series(map(WRITTEN[name], np.arange(1000.0, 1008.0))))  # none tells its sign
    scores = model.predict(np.column_stack([few["bm25"], np.arange(1000.0, 1008.0)]))
    for source in ways_in(few, tmp_path / "new"):
        np.testing.assert_array_equal(np.ravel(untyped.predict(model, source)), scores)
    np.testing.assert_array_equal(model.predict(few.to_pandas()), scores)
    for wrong in ("1.2.3", "$5%", "about 5"):
        with pytest.raises(DataError, match=r"'price' holds .*, not numbers: "):
            untyped.predict(model, few.with_columns(price=pl.lit(wrong)))


@pytest.mark.parametrize(
    "cells",
    [["1,234", "950"], ["1.000 kr", "5 kr"], ["$5", "7"], ["$5", "\u20ac5"], ["12%", "0.12"], ["1,50", "1,234.50"]],
    ids=" and ".join,
)
def test_what_can_be_read_in_two_ways_or_in_none_is_refused(cells: list[str], tmp_path: Path) -> None:
    frame = TABLE.with_columns(price=pl.Series([cells[k % 2] for k in range(N)]))
    for source in ways_in(frame, tmp_path):
        with pytest.raises(DataError, match=r"of 'price' \(numbers such as .*: write them as 1234.5\)"):
            untyped.read(source)


def test_other_cells_settle_what_a_comma_is() -> None:
    for settled, value in (("1,234,567", 1234.0), ("0,125", 1.234)):
        frame = TABLE.with_columns(price=pl.Series(["1,234", settled] * (N // 2)))
        with pytest.warns(RankTuneWarning, match="read as numbers"):
            assert untyped.read(frame).features[0, 1] == value


DOUBLE, SINGLE = float(np.finfo(np.float64).max), float(np.finfo(np.float32).max)


@pytest.mark.filterwarnings("default:.*holds the largest number")
@pytest.mark.parametrize(
    "text", [f"{int(DOUBLE)}", "-1.79769e+308", "3.40282e38", repr(DOUBLE), repr(SINGLE), f"{int(DOUBLE)}"[:-3]]
)
def test_the_largest_number_is_a_missing_value_in_text_and_tables(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"1 qid:1 1:0.5 2:{text}\n0 qid:1 1:1.5 2:2\n")
    pd.DataFrame({"qid": [1, 1], "grade": [1, 0], "a": [0.5, 1.5], "b": [float(text), 2.0]}).to_csv(tmp_path / "a.csv")
    for name, options in (("a.txt", {}), ("a.txt", {"dtype": "float64"}), ("a.csv", {"features": "a,b"})):
        for missing, value in (("keep", np.nan), ("zero", 0.0)):
            with pytest.warns(RankTuneWarning, match="holds the largest number"):
                queries = untyped.read(tmp_path / name, missing=missing, **options)
            np.testing.assert_array_equal(queries.features, [[0.5, value], [1.5, 2.0]])
        with pytest.raises(DataError, match="missing"):
            untyped.read(tmp_path / name, missing="error", **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [SINGLE, -SINGLE, DOUBLE])
def test_the_largest_number_is_a_missing_value_in_arrays(dtype: type, value: float, tmp_path: Path) -> None:
    X: Any = np.array([[0.5, min(value, float(np.finfo(dtype).max))], [1.5, 2.0]], dtype=dtype)
    given = X.copy()
    np.savez(tmp_path / "a.npz", X=X, y=[1, 0], qid=[1, 1])
    frame = pl.DataFrame({"qid": [1, 1], "grade": [1, 0], "a": X[:, 0], "b": X[:, 1]})
    for source in (tmp_path / "a.npz", (X, [1, 0], [1, 1]), (sparse.csr_array(X), [1, 0], [1, 1]), frame):
        with pytest.warns(RankTuneWarning, match="holds the largest number"):
            queries = untyped.read(source)
        features: Any = queries.features
        dense = features.toarray() if queries.is_sparse else features
        np.testing.assert_array_equal(dense, [[0.5, np.nan], [1.5, 2.0]])
        assert queries.has_missing
    np.testing.assert_array_equal(X, given)
