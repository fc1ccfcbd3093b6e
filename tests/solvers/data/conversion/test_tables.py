"""Tables that are converted in batches hold what reading them as a whole gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.conversion import tables
from ranktune.solvers.data.readers.tables import delimited
from tests.support.query_samples import assert_same


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH", 40)


@pytest.fixture
def as_a_whole(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was read as a whole by convert."""
    result: list[object] = []
    write = tables.write_table

    def noted(*arguments: Any, **options: Any) -> bool:
        in_batches = write(*arguments, **options)
        if not in_batches:
            result.append(arguments[0])
        return in_batches

    monkeypatch.setattr(tables, "write_table", noted)
    return result


def frame(seed: int = 0, n_rows: int = 120) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    return pl.DataFrame({
        "qid": np.repeat(np.arange(n_rows // 6), 6) + 7,
        "grade": generator.integers(0, 3, n_rows),
        "docid": [f"{k:03}" for k in range(n_rows)],
        "bm25": np.round(generator.normal(size=n_rows), 3),
        "clicks": generator.integers(0, 1000, n_rows),
        "is_new": generator.random(n_rows) < 0.5,
    })  # fmt: skip


def text_queries(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(qid=pl.format("0{}", "qid"))


def shuffled(table: pl.DataFrame) -> pl.DataFrame:
    return table.sample(fraction=1.0, shuffle=True, seed=1)


def with_kinds(table: pl.DataFrame) -> pl.DataFrame:
    colour = pl.Series(["red", "blue", "green", None] * (len(table) // 4))
    return table.with_columns(colour=colour, added=pl.Series(["2024-05-01", "2025-01-31"] * (len(table) // 2)))


def with_missing(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(
        bm25=pl.when(pl.col("clicks") < 300).then(None).otherwise("bm25"), empty=pl.lit(None, dtype=pl.Float64)
    )


def single(table: pl.DataFrame) -> pl.DataFrame:
    return table.select("qid", "grade", bm25=pl.col("bm25").cast(pl.Float32), other=pl.lit(0.5, dtype=pl.Float32))


def weighted(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(w=pl.col("qid") / 4 + 1, dw=pl.col("clicks") + 0.5, day=1000 - pl.col("qid") % 7)


CHANGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "plain": lambda table: table,
    "text-queries": text_queries,
    "not-adjacent": shuffled,
    "kinds": with_kinds,
    "kinds-not-adjacent": lambda table: shuffled(with_kinds(table)),
    "missing": with_missing,
    "single": single,
}


def written(table: pl.DataFrame, ending: str, folder: Path) -> Path:
    path = folder / f"data.{ending}"
    if ending == "tsv":
        table.write_csv(path, separator="\t")
    else:
        writers: dict[str, Any] = {"csv": table.write_csv, "feather": table.write_ipc, "parquet": table.write_parquet}
        writers[ending](path)
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
@pytest.mark.parametrize("change", CHANGES)
def test_every_format(change: str, ending: str, tmp_path: Path, as_a_whole: list[object]) -> None:
    path = written(CHANGES[change](frame()), ending, tmp_path)
    assert_same(ranktune.convert(path, tmp_path / "made"), ranktune.read(path))
    assert as_a_whole == []
    assert not list((tmp_path / "made").glob("*.draft"))


def test_a_text_file_that_memory_does_not_hold(tmp_path: Path, as_a_whole: list[object], monkeypatch: Any) -> None:
    path = written(shuffled(with_kinds(frame())), "csv", tmp_path)
    held = ranktune.convert(path, tmp_path / "held")
    monkeypatch.setattr(tables, "free_memory", lambda: 0)
    assert_same(ranktune.convert(path, tmp_path / "made"), held)
    assert as_a_whole == []


def test_options_of_columns(tmp_path: Path, as_a_whole: list[object]) -> None:
    path = written(shuffled(weighted(frame())), "parquet", tmp_path)
    options: dict[str, Any] = {
        "weight": "w", "document_weight": "dw", "group_by_time": "day", "position": "clicks", "drop": "is_*",
        "features": "bm2*,day",
    }  # fmt: skip
    assert_same(ranktune.convert(path, tmp_path / "made", **options), ranktune.read(path, **options))
    assert as_a_whole == []


@pytest.mark.parametrize("missing", ["keep", "zero"])
def test_missing_values(missing: Any, tmp_path: Path) -> None:
    path = written(with_missing(with_kinds(frame())), "csv", tmp_path)
    assert_same(ranktune.convert(path, tmp_path / "made", missing=missing), ranktune.read(path, missing=missing))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_invalid_value_is_detected_in_any_batch(ending: str, tmp_path: Path) -> None:
    table = frame().with_columns(clicks=pl.when(pl.col("docid") == "100").then(float("inf")).otherwise("clicks"))
    path = written(table, ending, tmp_path)
    row = table["docid"].to_list().index("100") + 1
    with pytest.raises(DataError, match=rf"column 'clicks' is inf in row {row}[ .]"):
        ranktune.convert(path, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_fraction_after_the_first_rows(tmp_path: Path, as_a_whole: list[object], monkeypatch: Any) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 200)
    table = frame().with_columns(clicks=pl.when(pl.col("docid") < "090").then("clicks").otherwise(pl.lit(0.5)))
    whole = table.with_columns(pl.col("clicks").round().alias("clicks"))
    path = written(whole, "csv", tmp_path)
    path.write_text(path.read_text().replace(".0,", ","))  # whole numbers first, fractions later
    assert_same(ranktune.convert(path, tmp_path / "whole"), ranktune.read(whole))
    path = written(table, "csv", tmp_path)
    path.write_text(path.read_text().replace(".0,", ","))
    assert_same(ranktune.convert(path, tmp_path / "made"), ranktune.read(table))
    assert as_a_whole == []


def test_columns_that_are_no_features_are_named(tmp_path: Path) -> None:
    path = written(frame().with_columns(url=pl.format("http://{}", "docid")), "parquet", tmp_path)
    with pytest.raises(DataError) as result:
        ranktune.convert(path, tmp_path / "made")
    with pytest.raises(DataError) as expected:
        ranktune.read(path)
    assert str(result.value) == str(expected.value)
