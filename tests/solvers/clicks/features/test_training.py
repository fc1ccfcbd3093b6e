"""The table to learn from: its rows are the impressions of the log, and a reader of tables takes them as they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.features import training as training_table
from ranktune.solvers.clicks.features.history import FEATURES, ClickHistory
from ranktune.solvers.clicks.features.training import DocumentTable, Training
from ranktune.solvers.clicks.position_based import PositionBased
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from tests.support.click_simulation import Users
from tests.support.frames import from_frame
from tests.support.leaky_logs import DAY, HONEST, LEAKS, leaky_log

LOG = leaky_log(0, Users(), sessions=2000)
HALVING = Examination.given({1: 1.0, 2: 0.5, 4: 0.25, 8: 0.125, 10: 0.1})


def whole(training: Training) -> polars.DataFrame:
    return polars.concat(polars.DataFrame(table) for table in training.tables())


def queries_of(training: Training) -> Queries:
    return from_frame(whole(training), document_weight="document_weight", position="position")


def test_rows_are_impressions_with_weights_by_inverse_propensity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_table, "CLIP", 5.0)
    training = Training([LOG], HALVING)
    (known,) = ClickHistory([LOG])
    kept = np.isin(known.rows["position"], [1, 2, 4, 8, 10])
    rows, frame = known.rows[kept], whole(training)
    propensity = dict(zip(HALVING.position.tolist(), HALVING.value.tolist(), strict=True))
    weight = [
        min(1 / propensity[p], 5.0) if c else 1.0 for p, c in zip(rows["position"].tolist(), rows["click"], strict=True)
    ]
    np.testing.assert_allclose(frame["document_weight"], weight)
    np.testing.assert_array_equal(frame["grade"], rows["click"])
    np.testing.assert_array_equal(frame["position"], rows["position"])
    np.testing.assert_array_equal(frame["document"].cast(polars.Int64), rows["document"])
    np.testing.assert_array_equal(frame.select(FEATURES).to_numpy(), known.features[kept])
    names = LOG.further_names
    for name in HONEST:
        np.testing.assert_array_equal(frame[name].fill_null(np.nan), rows["further"][:, names.index(name)])
    clicked = rows["click"] > 0
    assert training.clipped == pytest.approx((rows["position"][clicked] >= 8).mean())
    assert training.left_out == (~kept).sum()
    assert {leak.name for leak in training.leaks} == set(LEAKS)
    assert training.feature_names == [*FEATURES, *HONEST]
    assert sum(remark.startswith("Left out: ") for remark in training.remarks) == len(LEAKS)
    assert [remark for remark in training.remarks if "clipped to 5" in remark or f"{(~kept).sum():,} imp" in remark][1:]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_written_table_is_read_as_the_queries_in_memory(suffix: str, tmp_path: Path) -> None:
    rows = polars.DataFrame(
        {
            "query": LOG.query, "session": LOG.session, "document": LOG.document, "rank": LOG.position,
            "click": LOG.click.astype(int), "time": LOG.time, "name": "x",
        }
    ).with_columns(polars.col("time") + 3_000 * DAY)  # fmt: skip
    rows.write_csv(tmp_path / "log.csv")
    brands, ids = ["ash", "oak", "elm", "yew"], np.arange(0, 250, 2)
    documents = polars.DataFrame({"doc_id": ids, "price": ids / 8.0, "brand": [brands[k % 4] for k in ids // 2]})
    documents = documents.with_columns(title=polars.format("the title of {}", "doc_id"))
    documents.write_csv(tmp_path / "documents.csv")
    log = ClickLog.open(tmp_path / "log.csv", further=True)
    fitted = PositionBased().fit(ClickCounts.of(log))
    training = Training(log, fitted.examination, gap="2h", documents=DocumentTable.read(tmp_path / "documents.csv"))
    assert training.feature_names == [*FEATURES, "price", "brand", "title"]
    assert any(remark.startswith("Left out: name is the same") for remark in training.remarks)
    training.write(tmp_path / f"table.{suffix}")
    read = getattr(polars, f"read_{suffix}")(tmp_path / f"table.{suffix}")
    with pytest.warns(RankTuneWarning, match=r"document '?\d+'? is in query \d+ twice"):  # as the log has it
        queries = from_frame(read, document_weight="document_weight", position="position")
    with pytest.warns(RankTuneWarning, match="twice"):
        expected = queries_of(training)
    category = {"brand:missing", *(f"brand={name}" for name in brands)}
    assert {name for name in queries.feature_names or () if name.startswith("brand")} == category
    with pytest.raises(DataError, match='role: document_weight="document_weight"'):
        from_frame(read)
    with pytest.raises(DataError, match="'position' would become a feature, and it tells the old ranking"):
        from_frame(read, document_weight="document_weight")
    assert queries.feature_names == expected.feature_names and queries.n_documents == len(LOG.query) - training.left_out
    np.testing.assert_allclose(queries.features, expected.features)
    for name in ("grades", "document_weights", "positions", "starts"):
        np.testing.assert_allclose(getattr(queries, name), getattr(expected, name))
    ids = np.asarray(expected.document_ids).astype(int)
    features = dict(zip(expected.feature_names or (), np.asarray(expected.features).T, strict=True))
    np.testing.assert_array_equal(features["brand=oak"], (ids % 8 == 2).astype(float))
    prices = features["price"]
    np.testing.assert_array_equal(prices, np.where(ids % 2, np.nan, ids / 8.0))
    by_query = documents.rename({"doc_id": "document"}).join(polars.DataFrame({"query": [0, 1]}), how="cross")
    by_query.with_columns(polars.col("price") + polars.col("query")).write_parquet(tmp_path / "pairs.parquet")
    pairs = Training(log, fitted.examination, documents=DocumentTable.read(tmp_path / "pairs.parquet"), gap="2h")
    with pytest.warns(RankTuneWarning, match="twice"):
        queries = queries_of(pairs)
    (known,) = pairs.history
    names = np.array([int(name) for name in pairs.history.counts.queries])[known.rows["query"]]
    expected_price = np.where((names < 2) & (ids % 2 == 0), ids / 8.0 + names, np.nan)
    price = list(queries.feature_names or ()).index("price")
    np.testing.assert_array_equal(np.asarray(queries.features)[:, price], expected_price)


def test_text_is_a_category_or_is_left_out_by_the_reason(tmp_path: Path) -> None:
    """Buckets of the rank, what a click sets, rates that later clicks make, and texts that are ids are left out."""
    generator, n = np.random.default_rng(0), len(LOG.query)
    rates = np.asarray(LOG.further)[:, list(LOG.further_names).index("document_rate")]
    columns: dict[str, Array] = {
        "colour": generator.choice(["red", "green", "blue"], 250)[LOG.document],
        "shelf": generator.choice(["new", "old"], n),
        "place": np.array(["above", "middle", "low"])[np.searchsorted([3, 6], LOG.position - 0.5) % 3],
        "state": np.where(LOG.click > 0, "bought", "seen"),
        "mostly": np.where((LOG.click > 0) & (generator.random(n) < 0.5), "opened", "none"),
        "rate": np.array([f"{rate:.4f} a view" for rate in rates]),
        "token": np.array([f"t{number}" for number in range(n)]),
    }
    texts = {name: np.unique(column, return_inverse=True) for name, column in columns.items()}
    log = replace(
        LOG, further=np.column_stack([code.astype(float) for _, code in texts.values()]), further_names=tuple(texts),
        further_texts={name: names.tolist() for name, (names, _) in texts.items()},
    )  # fmt: skip
    training = Training([log], HALVING)
    assert {leak.name: leak.kind for leak in training.leaks} == {
        "place": "position", "state": "outcome", "mostly": "outcome", "rate": "future", "token": "text",
    }  # fmt: skip
    frame = whole(training)
    (known,) = ClickHistory([log])
    kept = np.isin(known.rows["position"], [1, 2, 4, 8, 10])
    assert frame["colour"].to_list() == texts["colour"][0][known.rows["further"][kept, 0].astype(int)].tolist()
    assert all((f"{leak.seemed:.3f}" in str(leak)) == (leak.kind != "text") for leak in training.leaks)


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"two columns .* 'grade'"):
        Training([replace(LOG, further_names=("grade", *LOG.further_names[1:]))], HALVING)
    path = tmp_path / "documents.csv"
    for text, message in (
        ("name,price\na,1\n", "no column of the document id"),
        ("doc_id,price\na,1\na,2\n", "'a' twice"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            Training([LOG], HALVING, documents=DocumentTable.read(path))
    with pytest.raises(ParameterError, match="written as"):
        Training([replace(LOG, further=None, further_names=())], HALVING).write("table.txt")
