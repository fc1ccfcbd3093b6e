"""The queries that a model was fitted to are known again, by content, wherever they are read from."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.retuning.portfolio import FittedQueryIds
from ranktune.tuner.splits.digests import query_digests


def table(n_queries: int) -> pl.DataFrame:
    generator = np.random.default_rng(0)
    n = 5 * n_queries
    days = [f"2026-{1 + k // 140:02d}-{1 + k // 5 % 28:02d}" for k in range(n)]
    return pl.DataFrame({
        "qid": np.arange(n) // 5, "grade": np.tile([0, 1, 2, 0, 1], n_queries), "day": days,
        "price": generator.normal(size=n).astype(np.float32), "stock": generator.integers(0, 9, n),
        "brand": [f"b{k}" for k in generator.zipf(1.3, n) % (5 + np.arange(n) // 5)],
        "colour": [(None, "red", "blue")[k] for k in generator.integers(0, 3, n)],
    })  # fmt: skip


@pytest.mark.parametrize("drop", [(), ("brand", "colour", "day"), ("price", "stock", "day")])
def test_a_query_is_the_same_in_every_table_that_has_it(drop: tuple[str, ...], tmp_path: Path) -> None:
    """Of 200 queries the first 120 were learnt from: then there are other levels, more than 64, and later dates."""
    whole = table(200).drop(drop)
    fitted = FittedQueryIds.of(ranktune.read(whole.head(600)))
    order = whole.select(reversed(whole.columns)).with_columns(c=pl.col("qid") % 7, d=pl.Series(["x", "y"] * 500))
    order.write_csv(tmp_path / "d.csv")
    order.write_parquet(tmp_path / "d.parquet")
    ranktune.convert(tmp_path / "d.csv", tmp_path / "stored")
    sources: list[Any] = [whole, order.to_pandas(), *(tmp_path / name for name in ("d.csv", "d.parquet", "stored"))]
    for source in sources:
        queries = ranktune.read(source)
        assert fitted.comparable(queries)
        assert fitted.judge(queries).tolist() == [False] * 120 + [True] * 80, source
    other = whole.with_columns(grade=3 - pl.col("grade"))
    assert fitted.judge(ranktune.read(other)).all()


def test_one_other_cell_makes_another_query() -> None:
    whole = table(40)
    fitted = FittedQueryIds.of(ranktune.read(whole))
    for name, value in {"colour": "green", "day": "2025-01-01", "price": 9.0, "brand": "b1234"}.items():
        other = whole.with_columns(pl.when(pl.col("qid") == 7).then(pl.lit(value)).otherwise(name).alias(name))
        assert np.flatnonzero(fitted.judge(ranktune.read(other))).tolist() == [7], name


def test_files_of_earlier_releases_know_queries_of_numbers_and_no_others() -> None:
    whole = table(40)
    numbers = ranktune.read(whole.drop("day", "brand", "colour"))
    unnamed = Queries.from_arrays(numbers.features, numbers.grades, qid=whole["qid"].to_numpy())
    earlier = FittedQueryIds.from_arrays({"fitted": np.array(query_digests(numbers), np.uint64)})
    assert not earlier.judge(numbers).any() and not earlier.judge(unnamed).any()
    assert earlier.comparable(numbers) and not earlier.comparable(ranktune.read(whole))
    assert not FittedQueryIds().comparable(numbers), "one that kept nothing"
    both = earlier.with_more(FittedQueryIds.of(ranktune.read(whole)))
    kept = FittedQueryIds.from_arrays(both.arrays())
    assert not kept.judge(ranktune.read(whole)).any() and not kept.judge(unnamed).any()
