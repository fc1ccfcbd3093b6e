"""The table to learn from: its rows are the impressions of the log, and a reader of tables takes them as they are.
What was made of positions, outcomes or later clicks is named on every log; what was known before is not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from ranktune.solvers.clicks.counts import ClickCounts, Impressions
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.features import training as training_table
from ranktune.solvers.clicks.features.future import Future
from ranktune.solvers.clicks.features.history import FEATURES, ClickHistory, SearchEvents
from ranktune.solvers.clicks.features.leaks import Leak, leaks
from ranktune.solvers.clicks.features.training import DocumentTable, Training
from ranktune.solvers.clicks.position_based import PositionBased
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Array, Floats
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from tests.support.click_simulation import Users
from tests.support.frames import from_frame
from tests.support.leaky_logs import DAY, HONEST, LEAKS, leaky_log, rate

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
        ("name,price\na,1\n", r"documents\.csv: has no column of the document id\. Call it document"),
        ("doc_id,price\na,1\na,2\n", "'a' twice"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            Training([LOG], HALVING, documents=DocumentTable.read(path))
    with pytest.raises(ParameterError, match="written as"):
        Training([replace(LOG, further=None, further_names=())], HALVING).write("table.txt")


def further(known: SearchEvents) -> Floats:
    return np.asarray(known.rows["further"])


def found(log: Impressions) -> list[Leak]:
    return leaks(ClickHistory([log]), log.further_names, further, float(len(log.query)), {})


USERS = [(seed, Users()) for seed in range(20)]
USERS += [(seed, users) for seed in range(3) for users in (Users("cascade"), Users("trust", noise=0.02))]
FAST = USERS[0], USERS[20], USERS[21]
"""One of each kind; the others are further draws."""


@pytest.mark.parametrize(
    ("seed", "users"), [pytest.param(*each, marks=() if each in FAST else pytest.mark.thorough) for each in USERS]
)
def test_leaks_are_named_and_nothing_else_is(seed: int, users: Users) -> None:
    listed = found(leaky_log(seed, users))
    assert {leak.name: leak.kind for leak in listed} == LEAKS
    seemed = {leak.name: leak.seemed for leak in listed}
    assert seemed["dwell"] > 0.99
    assert min(seemed[name] for name in ("place", "score", "pair_rate")) > listed[0].known
    assert all(leak.known == listed[0].known and f"{leak.seemed:.3f}" in str(leak) for leak in listed)


@pytest.mark.parametrize("count", [12, pytest.param(130, marks=pytest.mark.thorough)])
def test_columns_of_chance_are_named_no_more_often_than_promised(count: int) -> None:
    """So many columns of each kind that are known before: by document, by query and document, and by impression."""
    log = leaky_log(0, Users(), sessions=1000)
    generator = np.random.default_rng(1)
    pair = log.query * len(log.documents) + log.document
    drawn = [
        generator.normal(size=int(key.max()) + 1)[key]
        for _ in range(count)
        for key in (log.document, pair, np.arange(len(pair)))
    ]
    columns = np.column_stack(drawn)
    assert found(replace(log, further=columns, further_names=[str(k) for k in range(columns.shape[1])])) == []


def test_where_all_documents_are_always_shown_impressions_tell_nothing_and_clicks_still_do() -> None:
    """Four queries of 20 documents each, each in 300 searches, in any order: totals of impressions are all the same."""
    generator, n = np.random.default_rng(2), 1200
    query = np.tile(np.arange(4), n // 4)
    document = np.concatenate([20 * q + generator.permutation(20) for q in query])
    click = (generator.random(len(document)) < 0.1 + 0.3 * generator.random(80)[document]).astype(float)
    columns = np.column_stack([generator.normal(size=80)[document], rate(document, click)])
    log = Impressions(
        np.repeat(query, 20), document, np.tile(np.arange(1, 21), n), click, np.repeat(np.arange(n), 20),
        np.repeat(np.arange(n) * 60_000, 20), None, [str(k) for k in range(4)], [str(k) for k in range(80)],
        [str(k) for k in range(n)], further=columns, further_names=("honest", "rate"),
    )  # fmt: skip
    assert {leak.name: leak.kind for leak in found(log)} == {"rate": "future"}


def test_clicks_that_were_drawn_anew_are_not_known() -> None:
    """A rate of clicks is a leak in its own log only: in a log with the same chances and other clicks it is not."""
    log, rate = leaky_log(3, Users()), list(LEAKS).index("document_rate") + len(HONEST)
    assert log.further is not None
    other = leaky_log(3, Users())
    generator = np.random.default_rng(7)
    chance = np.bincount(log.document, log.click) / np.maximum(np.bincount(log.document), 1)
    clicks = (generator.random(len(log.click)) < chance[log.document]).astype(float)
    for click, named in ((log.click, True), (clicks, False)):
        rows = next(iter(ClickHistory([replace(other, click=click)]))).rows
        time = np.sort(log.time)  # type: ignore[arg-type]
        assert bool(Future(rows, time[: len(rows)]).reason(rows["further"][:, rate], 1)) == named


def test_columns_without_values_and_of_one_value_are_named_too() -> None:
    log = leaky_log(0, Users(), sessions=100)
    columns = np.column_stack([np.full(len(log.query), value) for value in (np.nan, 3.0)])
    listed = found(replace(log, further=columns, further_names=("empty", "same")))
    assert [str(leak) for leak in listed] == [f"{name} is the same in all impressions." for name in ("empty", "same")]


def test_few_rows_name_nothing() -> None:
    log = leaky_log(0, Users(), sessions=8)
    assert [leak.name for leak in found(log) if leak.kind == "future"] == []
