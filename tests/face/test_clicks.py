"""ranktune.clicks and `ranktune clicks`: the judgments, how models are compared, and what bad logs end in."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from polars import col, lit
from scipy.stats import kendalltau, t

import ranktune
from ranktune.command_line.app import _readable
from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.judging.models import MODELS
from ranktune.solvers.clicks.position_based import PositionBased
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from tests.support.click_counts import graded_queries, log_loss
from tests.support.click_simulation import Users, simulated
from tests.support.commands import called


@cache
def logged(seed: int = 0) -> tuple[polars.DataFrame, Queries]:
    """A log of 2,000 sessions, one a minute, over 10 queries, and the queries with their true grades."""
    generator = np.random.default_rng(seed)
    queries, scores = graded_queries(generator, 10)
    batch = simulated(queries, Users(), 2000, generator, scores=scores, spread=0.7)
    columns = {
        "query": [f"q {batch.queries[number]}" for number in batch.query],
        "doc_id": [batch.documents[number] for number in batch.document],
        "rank": batch.position,
        "click": batch.click.astype(int),
        "session": batch.session,
        "time": 1_700_000_000_000 + 60_000 * batch.session,
    }
    return polars.DataFrame(columns), queries


def written(path: Path, log: polars.DataFrame | None = None) -> str:
    """The path of a log as csv."""
    (logged()[0] if log is None else log).write_csv(path)
    return str(path)


def run(*words: object) -> Any:
    return called("clicks", *words, env={"COLUMNS": "80"})


def test_judgments_are_those_of_the_model_and_losses_those_of_later_sessions(tmp_path: Path) -> None:
    path, said = written(tmp_path / "log.csv"), list[str]()
    result = ranktune.clicks(path, output=tmp_path / "judged.parquet", judge_share=0.3, progress=said.append)
    log = ClickLog.open(path)
    expected = PositionBased().fit(ClickCounts.of(log)).judgments()
    frame = polars.read_parquet(tmp_path / "judged.parquet")
    np.testing.assert_array_equal(frame["relevance"].to_numpy(), expected.relevance)
    assert sum(result.pairs.values()) == frame.height and result.account.counted == 20_001
    assert said[0] == "reading the log" and "fitting coec" in said
    later = result.later
    assert later is not None and (later.sessions, later.impressions) == (600, 6000)
    earlier, latest = log.parts(0.3)
    first = 1_700_000_000_000 + 60_000 * 1400
    assert all(max(batch.time) < first for batch in earlier if batch.time is not None)
    fitted = {name: MODELS[name].make().fit(ClickCounts.of(earlier)) for name in later.losses}
    assert list(fitted) == sorted(fitted, key=lambda name: later.losses[name].loss) and not later.unfitted
    for name, model in fitted.items():
        assert later.losses[name].loss == pytest.approx(log_loss(model, ClickCounts.of(latest)), rel=1e-12)
    assert later.best in ("position-based", "joint") and later.losses["ctr"].behind_low > 0.0
    assert {*later.ties, later.best} >= {"position-based", "joint"} and "ctr" not in later.ties
    assert not any("predicts later clicks better" in remark for remark in result.remarks)
    assert "coec predicts later clicks better than ctr" in ranktune.clicks(path, model="CTR").remarks[-1]


def test_intervals_are_those_of_means_over_sessions_of_equal_size(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv")
    later = ranktune.clicks(path, judge_share=0.2).later
    assert later is not None
    log, losses = logged()[0].filter(col("session") >= 1600).sort("session"), dict[str, Floats]()
    click = log["click"].to_numpy()
    for name in ("ctr", later.best):
        fitted = MODELS[name].make().fit(ClickCounts.of(ClickLog.open(path).parts(0.2)[0]))
        counts = ClickCounts.of(ClickLog.open(path).parts(0.2)[1])
        p = dict(zip(zip(counts.document, counts.position, strict=True), fitted.click_probability(counts), strict=True))
        number = {document: place for place, document in enumerate(counts.documents)}
        rows = log.select(col("doc_id").cast(str), "rank").iter_rows()
        of_row = np.array([p[number[document], rank] for document, rank in rows])
        losses[name] = -np.where(click == 1, np.log(of_row), np.log1p(-of_row)).reshape(400, 10).mean(axis=1)
    row = later.losses["ctr"]
    for values, found in (
        (losses["ctr"], (row.loss, row.low, row.high)),
        (losses["ctr"] - losses[later.best], (row.behind, row.behind_low, row.behind_high)),
    ):
        half = t.ppf(0.975, 399) * values.std(ddof=1) / np.sqrt(400)
        assert found[0] == pytest.approx(values.mean(), rel=1e-9)
        ends = values.mean() - half, values.mean() + half  # which are then corrected for skewness, little here
        assert found[1:] == pytest.approx(ends, abs=0.1 * half) and found[1:] != pytest.approx(ends, abs=1e-9)


def test_the_command_says_what_the_function_returns(tmp_path: Path) -> None:
    path, output = written(tmp_path / "log.csv"), tmp_path / "judged.csv"
    judged, queries = tmp_path / "true.qrels", logged()[1]
    pairs = zip(queries.query_of_document, queries.grades, strict=True)
    judged.write_text("".join(f"q{q} 0 {document} {grade:g}\n" for document, (q, grade) in enumerate(pairs)))
    log = logged()[0].with_columns(col("query").str.replace(" ", ""))
    path = written(tmp_path / "log.csv", log)
    ended = run(path, "-o", output, "--qrels", judged, "--report", tmp_path / "page.html")
    assert "<title>judged.csv - RankTune" in (tmp_path / "page.html").read_text()
    assert ended.exit_code == 0, ended.output
    assert max(map(len, ended.stdout.replace(str(tmp_path), "").splitlines())) <= 80
    for text in (
        "Later clicks: 5,000 impressions of 500 sessions",
        "best: ",
        "Agreement with judgments of ",
        " known, ",
    ):
        assert text in ended.stdout, text
    printed = json.loads(run(path, "-o", output, "--qrels", judged, "--json").stdout)
    result = ranktune.clicks(path, qrels=judged)
    assert printed == {**result.as_dict(), "output": str(output)}
    assert result.agreement is not None and result.agreement.queries == 10
    relevance = {pair[1]: pair[2] for pair in polars.read_csv(output).select("query", "document", "relevance").rows()}
    by_query = [
        [(relevance[d], queries.grades[d]) for d in np.flatnonzero(queries.query_of_document == q) if d in relevance]
        for q in range(10)
    ]
    taus = [kendalltau(*np.array(pairs).T).statistic for pairs in by_query]
    assert result.agreement.kendall["position-based"].value == pytest.approx(np.mean(taus), rel=1e-9)
    assert result.agreement.ndcg["position-based"].value > result.agreement.ndcg["ctr"].value


def test_a_study_learns_from_the_judgments_and_is_resumed(tmp_path: Path) -> None:
    log, queries = logged()
    judged, home, data = tmp_path / "judged.csv", tmp_path / "home", tmp_path / "data.csv"
    assert run(written(tmp_path / "log.csv", log), "-o", judged).exit_code == 0
    features = {f"f{k}": column for k, column in enumerate(queries.features.T)}
    ids = {"qid": [f"q {q}" for q in queries.query_of_document], "docid": np.arange(queries.n_documents)}
    polars.DataFrame(ids | features).write_csv(data)
    n_judged = len(polars.read_csv(judged))
    common: dict[str, Any] = {"solvers": ["RankSVM", "SymmetricGBDT"], "name": "a", "home": home}
    with pytest.warns(RankTuneWarning, match=f"judges {n_judged} of {queries.n_documents} documents.* left out"):
        result = ranktune.tune(data, qrels=str(judged), trials=2, **common)
        assert ranktune.resume("a", trials=3, home=home).trials == 3
    assert result.metric == "ndcg@10:gain=linear" and not result.failures
    informed = ranktune.RankSVM().fit(queries)
    best, ours = (
        parse_metric("ndcg@10").mean(each.predict(queries), queries) for each in (informed, result.best_model)
    )
    assert ours > best - 0.05
    with pytest.warns(RankTuneWarning, match="left out"):
        assert ranktune.evaluate(result.best_model, data, qrels=judged, against="column:f3")["queries"] == 10


LOG = logged()[0]
REMARKS = {
    "duplicates": (polars.concat([LOG, LOG.head(70)]), "a duplicate 70"),
    "few": (
        LOG.filter(col("session") == LOG.filter(col("click") == 1)["session"][0]),
        "not compared on later clicks: sessions cannot be divided",
    ),
}


@pytest.mark.parametrize("name", REMARKS)
def test_what_is_wrong_with_a_log_is_counted(name: str, tmp_path: Path) -> None:
    log, text = REMARKS[name]
    ended = run(written(tmp_path / "log.csv", log), "-o", tmp_path / "judged.csv")
    assert ended.exit_code == 0, ended.output
    assert text in " ".join(ended.stdout.split())


REFUSED = {
    "one bot": (LOG.with_columns(session=lit(1)), [], "bots (20,000)"),
    "pair": (LOG, ["--column", "document"], "--column document: write pairs of ROLE=NAME"),
    "weight": (LOG, ["--kind-weight", "cart=two"], "--kind-weight cart=two: write KIND=WEIGHT"),
    "model": (LOG, ["--model", "pbm"], "no click model 'pbm'"),
    "ending": (LOG, ["-o", "judged.txt"], ".csv or .parquet"),
    "propensities": (LOG, ["--model", "ctr", "--propensities", "p.csv"], "--model ctr does not use propensities"),
    "no propensities": (LOG, ["--propensities", "absent.csv"], "absent.csv: there is no such file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, options, text = REFUSED[name]
    ended = run(written(tmp_path / "log.csv", log), "-o", tmp_path / "judged.csv", *options)
    assert isinstance(ended.exception, DataError | ParameterError)
    monkeypatch.setattr(sys, "argv", ["ranktune", "clicks"])
    assert text in _readable(ended.exception)
    assert not (tmp_path / "judged.csv").exists()


def test_a_training_table_has_what_was_known_before_each_search(tmp_path: Path) -> None:
    """The place on the page and the rate over the whole log would look good, and are left out by name."""
    rate = col("click").mean().over("doc_id").alias("rate")
    price = (col("doc_id").cast(polars.Float64) * 0.37).sin().alias("price")
    log = logged()[0].with_columns(rate, price, (col("rank") - 1).alias("place"))
    path, table = written(tmp_path / "log.csv", log), tmp_path / "searches.parquet"
    ended = run(path, "-o", tmp_path / "judged.csv", "--training", table, "--gap", "10m")
    assert ended.exit_code == 0, ended.output
    said = " ".join(ended.stdout.split())
    assert "Left out: place" in said and "Left out: rate" in said and "Left out: price" not in said
    frame = polars.read_parquet(table)
    assert frame.height == 20_000 and {"place", "rate", "rank"}.isdisjoint(frame.columns) and "price" in frame.columns
    result = ranktune.tune(
        str(table), qid="qid", document="document", document_weight="document_weight", drop=["position"],
        solvers=["RidgeRanker"], trials=1, home=str(tmp_path),
    )  # fmt: skip
    assert 0.0 < result.estimate.mean < 1.0
    for option in ("--training", "--report"):
        refused = run(path, "-o", tmp_path / "judged.csv", option, tmp_path / "table.txt")
        assert f"table.txt: the {'table' if option == '--training' else 'report'} is written as" in str(
            refused.exception
        )
    with pytest.raises(ParameterError, match=r"judge_share=1\.0: the share"):
        ranktune.clicks(path, judge_share=1.0)
    with pytest.raises(ParameterError, match="give training=FILE too"):
        ranktune.clicks(path, documents="documents.csv")


def test_a_table_of_documents_has_the_names_of_the_log(tmp_path: Path) -> None:
    log = polars.read_csv(written(tmp_path / "log.csv"))
    own = next(name for name in log.columns if name.startswith("doc"))
    log.rename({own: "sku"}).write_csv(tmp_path / "skus.csv")
    skus = log.select(polars.col(own).unique(maintain_order=True).alias("sku"))
    skus.with_columns(price=np.random.default_rng(1).random(skus.height)).write_csv(tmp_path / "documents.csv")
    ranktune.clicks(
        tmp_path / "skus.csv", columns={"document": "sku"}, training=tmp_path / "table.csv",
        documents=tmp_path / "documents.csv",
    )  # fmt: skip
    table = polars.read_csv(tmp_path / "table.csv").join(
        polars.read_csv(tmp_path / "documents.csv"), left_on="document", right_on="sku", suffix=" of document"
    )
    assert table.height > 0 and table["price"].equals(table["price of document"])


def test_propensities_of_the_log_are_used_and_said(tmp_path: Path) -> None:
    """Examination of the log itself gives what the same curve given apart does; the true chances of being shown too."""
    curve, log = {place: float(place) ** -1.0 for place in range(1, 11)}, logged()[0]
    right = ranktune.clicks(written(tmp_path / "log.csv"), propensities=curve)
    true = log.with_columns(p=col("rank").cast(float) ** -1.0)
    path, output = written(tmp_path / "true.csv", true), tmp_path / "judged.csv"
    said = " ".join(run(path, "-o", output, "--column", "propensity=p").stdout.split())
    assert "Examination is that of the column p, which follows the position alone" in said
    np.testing.assert_allclose(polars.read_csv(output)["relevance"], right.judgments.relevance, rtol=1e-9)
    given = ranktune.clicks(path, columns={"propensity": "p"}, propensities={1: 1.0, 2: 0.6})
    assert given.examination.value[1] == pytest.approx(0.6, rel=1e-9)
    assert "The column p is not used: propensities are given." in given.remarks
    for useless, text in ((lit(1), "p is 1 everywhere"), (lit("x"), r"Most lines are left out: a propensity that")):
        path = written(tmp_path / "useless.csv", log.with_columns(p=useless))
        if text.startswith("p"):
            result = ranktune.clicks(path, columns={"propensity": "p"})
            assert any(text in remark for remark in result.remarks) and result.examination.standard_error.any()
        else:
            with pytest.raises(DataError, match=text):
                ranktune.clicks(path, columns={"propensity": "p"})
