"""Categories, dates and truth values of tables become the same features whatever holds the table."""

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.decisions import Undecided, answered
from ranktune.solvers.data.columns.encoding import Age, Category
from ranktune.solvers.data.sources.catalogue import load, read
from ranktune.solvers.data.sources.inspection import suspects
from ranktune.solvers.models.linear import LinearModel
from tests.support.frames import from_frame

N_QUERIES, LENGTH = 30, 4
N = N_QUERIES * LENGTH
G = np.random.default_rng(5)
COLOURS = G.choice(["red", "dark blue", "007", ""], N, p=[0.5, 0.2, 0.2, 0.1]).tolist()
TIMES = [datetime(2025, 1, 1) + timedelta(minutes=int(k)) for k in G.integers(0, 10**6, N)]
PLAIN: dict[str, list[Any]] = {
    "qid": [f"q{k // LENGTH}" for k in range(N)],
    "grade": G.integers(0, 3, N).tolist(),
    "bm25": G.normal(size=N).tolist(),
    "colour": [colour or None for colour in COLOURS],
    "seen": [None if k % 7 == 0 else time for k, time in enumerate(TIMES)],
    "sold": [None if k % 11 == 0 else bool(k % 3) for k in range(N)],
}


def table() -> pl.DataFrame:
    return pl.DataFrame(PLAIN)


def written(folder: Path) -> Path:
    table().with_columns(pl.col("seen").dt.to_string("iso")).write_csv(folder / "a.csv")
    return folder / "a.csv"


def stored(folder: Path) -> Path:
    table().write_parquet(folder / "a.parquet")
    return folder / "a.parquet"


WAYS: dict[str, Callable[[Path], Any]] = {
    "csv": written,
    "parquet": stored,
    "polars": lambda folder: table(),
    "categories": lambda folder: table().with_columns(pl.col("colour").cast(pl.Categorical)),
    "enum": lambda folder: table().with_columns(pl.col("colour").cast(pl.Enum(["red", "007", "dark blue", "unused"]))),
    "zones": lambda folder: table().with_columns(
        pl.col("seen").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    ),
    "pandas-categories": lambda folder: pd.DataFrame(PLAIN).astype({"colour": "category"}),
    "pandas-types": lambda folder: pd.DataFrame(PLAIN).convert_dtypes(),
    "pandas-objects": lambda folder: pd.DataFrame(PLAIN, dtype=object),
}


def by_hand() -> np.ndarray[Any, Any]:
    counts = {
        level: len({q for q, c in zip(PLAIN["qid"], COLOURS, strict=True) if c == level}) for level in set(COLOURS)
    }
    levels = sorted(filter(None, counts), key=lambda level: (-counts[level], level))
    seen = [np.nan if time is None else np.datetime64(time, "us") for time in PLAIN["seen"]]
    latest = max(time for time in seen if isinstance(time, np.datetime64))
    ages = [(latest - time) / np.timedelta64(1, "D") if isinstance(time, np.datetime64) else np.nan for time in seen]
    columns = [
        PLAIN["bm25"],
        *[[colour == level for colour in COLOURS] for level in (*levels, "")],
        ages,
        [np.nan if sold is None else sold for sold in PLAIN["sold"]],
    ]
    return np.array(columns, dtype=np.float64).T


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_same_features_and_is_taken_as_the_training_table_was(way: str, tmp_path: Path) -> None:
    source = WAYS[way](tmp_path)
    queries = read(source)
    assert queries.feature_names is not None and queries.encoding is not None and queries.has_missing
    assert set(queries.feature_names[1:4]) == {"colour=red", "colour=dark blue", "colour=007"}
    assert queries.feature_names[4:] == ("colour:missing", "seen:age_days", "sold")
    np.testing.assert_allclose(queries.features, by_hand(), rtol=0.0, atol=1e-9)
    train = read(table().rename({"qid": "asked", "grade": "bought"}), qid="asked", grade="bought")
    assert train.encoding is not None and queries.encoding.columns == train.encoding.columns
    result = read(source, feature_names=train.feature_names, encoding=train.encoding)
    for each in (queries, result):
        assert np.array_equal(each.features, train.features, equal_nan=True)
        assert np.array_equal(each.grades, train.grades)
    if not isinstance(source, Path):
        model = LinearModel(
            np.arange(7.0), "mine", feature_names=train.feature_names, encoding=train.encoding, missing=np.ones(7)
        )
        assert np.array_equal(model.predict(source), model.predict(train))


def test_values_that_training_did_not_have_are_zeros_and_later_dates_younger() -> None:
    train = read(table().drop_nulls())
    few = pl.DataFrame(
        {"qid": [1, 1], "grade": [0, 1], "bm25": [0.5, 1.0], "colour": ["green", None], "sold": [True, None]}
    )
    later = few.with_columns(seen=pl.Series([date(2030, 1, 1), None]))
    assert train.encoding is not None
    age = train.encoding.columns["seen"]
    assert isinstance(age, Age)
    result = read(later, feature_names=train.feature_names, encoding=train.encoding).features
    expected = (datetime.fromisoformat(age.before) - datetime(2030, 1, 1, tzinfo=UTC)) / timedelta(days=1)
    np.testing.assert_array_equal(result[:, 1:], [[0, 0, 0, expected, 1], [0, 0, 0, np.nan, np.nan]])


def test_validation_and_test_tables_are_taken_as_the_training_table(tmp_path: Path) -> None:
    train = table().filter(pl.col("colour") != "007")
    vali = table().filter(pl.col("colour") == "007")  # the other levels do not occur
    vali.select(vali.columns[::-1]).with_columns(pl.col("seen").dt.to_string("iso")).write_csv(tmp_path / "vali.csv")
    split = load(train, vali=tmp_path / "vali.csv", test=(table().drop("qid", "grade"), PLAIN["grade"], PLAIN["qid"]))[
        0
    ]
    assert split.vali is not None and split.test is not None
    assert split.train.encoding == split.vali.encoding == split.test.encoding
    assert not np.asarray(split.vali.features)[:, 1:3].any()
    with pytest.raises(DataError, match=r"lacks the features colour and seen"):
        load(train, vali=vali.drop("colour", "seen"))
    with pytest.raises(DataError, match="does not have: shelf"):
        load(train, vali=vali.with_columns(shelf=pl.lit("a")))


def test_digits_in_a_csv_file_are_levels_where_the_model_knows_them_as_such(tmp_path: Path) -> None:
    train = read(table())
    table().filter(pl.col("colour") == "007").drop("seen").with_columns(seen=pl.lit(None)).write_csv(tmp_path / "a.csv")
    result = read(tmp_path / "a.csv", feature_names=train.feature_names, encoding=train.encoding)
    assert train.feature_names is not None
    assert np.asarray(result.features)[:, train.feature_names.index("colour=007")].all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": 1.5}, "'colour' held categories in the training data, such as 'red'.*double"),
        ({"seen": "soon"}, "'seen' held dates in the training data.*'soon' in row 0"),
        ({"seen": 7}, "'seen' held dates in the training data"),
        ({"bm25": "high"}, "'bm25' holds string, not numbers"),
    ],
)
def test_columns_of_another_kind_are_refused(change: dict[str, Any], words: str) -> None:
    train = read(table())
    other = table().with_columns(**{name: pl.lit(value) for name, value in change.items()})
    with pytest.raises(DataError, match=words):
        read(other, feature_names=train.feature_names, encoding=train.encoding)


def grown(**columns: Any) -> pl.DataFrame:
    return table().with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def test_ids_and_free_text_are_refused_together_and_with_what_else_looks_wrong() -> None:
    ids = [f"sku-{k}" for k in range(N)]
    frame = grown(sku=ids, title=[f"words {k}" for k in range(N)], place=[k % LENGTH for k in range(N)])
    with pytest.raises(
        Undecided, match=r"(?s)'sku' \(text, 120 .*'title' .*document=\"sku\"\. .*place counts "
    ) as info:
        read(frame)
    assert answered({}, info.value.decisions) == {"document": "sku", "drop": ["title", "place"]}
    assert read(frame, drop="sku,title,place").feature_names == read(table()).feature_names
    unpickled = pickle.loads(pickle.dumps(info.value))  # a worker process may raise it
    assert unpickled.decisions == info.value.decisions and str(unpickled) == str(info.value)


def catalogue(products: int, *, twice: bool) -> pl.DataFrame:
    """600 queries of ten of some products, of which a query may have one twice."""
    drawn = [G.choice(products, 10, replace=twice) for _ in range(600)]
    columns = {"qid": np.repeat(np.arange(600), 10), "grade": np.tile(np.arange(10) % 3, 600), "f": G.random(6000)}
    return pl.DataFrame({**columns, "sku": [f"p{k}" for k in np.concatenate(drawn)]})


@pytest.mark.parametrize("products", [100, 1000])
def test_ids_that_recur_in_other_queries_are_told_from_categories(products: int) -> None:
    ids, brands = catalogue(products, twice=False), catalogue(products, twice=True)
    with pytest.warns(RankTuneWarning, match=r"'sku' looks like the id .* category of 64 of [\d,]+ levels"):
        assert read(ids).n_features == 65
    assert read(ids, document="sku").n_features == 1 and read(brands).n_features == 65  # without a warning
    assert read(ids.with_columns(docid=pl.int_range(6000))).n_features == 65, "the document is known"


def test_numbers_that_look_like_ids_may_be_the_document() -> None:
    frame = grown(sku=G.permutation(10**6)[:N])
    sku = 'is another whole number in nearly every row, like an id. If it is the id of the document: document="sku".'
    assert [suspect.reason for suspect in suspects(read(frame))] == [sku]
    [suspect] = suspects(read(frame.with_columns(docid=pl.int_range(N))))
    assert suspect.reason == sku.partition(" If")[0]


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([f"p{k % 70}" for k in range(N)], None),  # many values, each in two queries
        ([f"p{k % 50}" for k in range(N)], 50),
        (["x"] * N, 1),
        (pl.Series([f"p{k}" for k in range(N)], dtype=pl.Categorical), None),
        (pl.Series([f"p{k % 64}" for k in range(N)], dtype=pl.Categorical), 64),
        ([timedelta(days=1)] * N, None),
        ([[1.0]] * N, None),
        ([f"{k % 7}" for k in range(N)], 7),
    ],
)
def test_values_of_categories_recur(values: Any, levels: int | None) -> None:
    frame = grown(own=values)
    if levels is None:
        with pytest.raises(DataError, match=r"no feature can be made of 'own' .*drop=\"own\""):
            read(frame)
    else:
        encoding = read(frame).encoding
        assert encoding is not None
        column = encoding.columns["own"]
        assert isinstance(column, Category)
        assert len(column.levels) == levels


def test_many_numbers_as_text_are_numbers() -> None:
    for values in (
        [f"{k % 66}.50" for k in range(N)],
        [f"{k % 66}.125" for k in range(N)],
        [f"{k}e3" for k in range(N)],
    ):
        with pytest.warns(RankTuneWarning, match="'own' holds text, and is read as numbers"):
            assert read(grown(own=values)).features[:, -1].tolist() == [float(value) for value in values]


@pytest.mark.parametrize(("options", "most"), [({}, 64), ({"levels": 5}, 5), ({"levels": 100}, 100)])
def test_of_many_levels_those_of_most_queries_are_kept(options: dict[str, Any], most: int) -> None:
    generator = np.random.default_rng(0)
    numbers = np.sort(generator.geometric(0.02, 8000))
    frame = pd.DataFrame({"qid": generator.integers(0, 1000, 8000), "grade": 1, "brand": [f"b{k}" for k in numbers]})
    queries = read(frame.assign(grade=generator.integers(0, 2, 8000)), **options)
    counts = frame.groupby("brand")["qid"].nunique()
    assert queries.encoding is not None
    brand = queries.encoding.columns["brand"]
    assert isinstance(brand, Category)
    assert len(brand.levels) == most < len(counts)
    assert min(counts[level] for level in brand.levels) >= max(counts.drop(list(brand.levels)))


def test_missing_values_may_be_zeros_or_errors_and_the_model_knows() -> None:
    zeros = read(table(), missing="zero")
    assert zeros.feature_names is not None and "colour:missing" not in zeros.feature_names and not zeros.has_missing
    reread = read(table(), feature_names=zeros.feature_names, encoding=zeros.encoding)
    assert np.array_equal(reread.features, zeros.features) and not reread.has_missing
    kept = read(table(), feature_names=zeros.feature_names, encoding=zeros.encoding, missing="keep")
    assert kept.has_missing
    for name in ("colour", "seen", "sold"):
        with pytest.raises(DataError, match=rf"'{name}' has missing values: \d+"):
            from_frame(table().select("qid", "grade", name), missing="error")


def test_names_that_meet_are_refused() -> None:
    with pytest.raises(DataError, match="two columns give a feature of the name 'colour=red'"):
        read(grown(**{"colour=red": [1.0] * N}))


def test_dates_may_be_as_late_as_there_are() -> None:
    frame = pl.DataFrame({"qid": [1, 1], "grade": [0, 1], "until": ["9999-12-31T23:59:59.999999", "9999-12-30"]})
    np.testing.assert_allclose(np.asarray(read(frame).features).ravel(), [0.0, 2.0], atol=1e-6)


def test_levels_may_be_numbers() -> None:
    numbered = pd.DataFrame({"qid": [1, 1, 2, 2], "grade": [0, 1, 0, 1], "shop": pd.Categorical([7.0, 8.0, None, 7.0])})
    train = read(numbered)
    assert train.feature_names == ("shop=7", "shop=8", "shop:missing")
    plain = numbered.assign(shop=[7, 8, 9, 7])
    result = read(plain, feature_names=train.feature_names, encoding=train.encoding)
    assert np.asarray(result.features).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]]
