"""Expected clicks of rankings by a log: laws, an estimate impression by impression, and simulated truth."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.clicks.counterfactual import ratio
from ranktune.solvers.clicks.counts import ClickCounts, Impressions
from ranktune.solvers.clicks.examination import CLIP, Examination
from ranktune.solvers.clicks.judging.gains import ClickGains, by_searches
from ranktune.solvers.clicks.judging.values import values_of
from ranktune.solvers.core.arrays import Floats, Ints, as_ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.metrics.presets import CLICK_METRICS
from tests.support.click_counts import graded_queries
from tests.support.click_simulation import Users, simulated

CURVE = Examination.given({place: 1.0 / place for place in range(1, 11)})


def logged(
    sessions: int = 4000, *, page: int = 10, spread: float = 0.7, seed: int = 0
) -> tuple[Impressions, Queries, Floats]:
    """A log of 8 queries of 10 documents, the queries with ids, and the scores that were shown with noise."""
    generator = np.random.default_rng(seed)
    queries, scores = graded_queries(generator, 8, 10)
    queries = replace(queries, document_ids=np.arange(queries.n_documents))
    return simulated(queries, Users(), sessions, generator, scores=scores, spread=spread, page=page), queries, scores


def believed(batch: Impressions, attraction: float) -> ClickGains:
    counts = ClickCounts.of([batch])
    return ClickGains.by(counts, CURVE, np.full(len(counts.firsts), attraction))


def mean(metric: str, scores: Floats, queries: Queries) -> float:
    return parse_metric(metric).mean(scores, queries)


def test_the_ranking_of_the_log_is_worth_its_clicks() -> None:
    batch, queries, scores = logged(spread=0.0)
    rate = batch.click.sum() / 4000
    clicked = believed(batch, 0.3).on(queries)
    for metric in CLICK_METRICS:
        assert mean(metric, scores, clicked) == pytest.approx(rate, rel=1e-12)
    by_rank = np.bincount(batch.position, batch.click)
    assert mean("ips@3", scores, clicked) == pytest.approx(by_rank[1:4].sum() / 4000, rel=1e-12)


def test_metrics_are_the_estimates_of_impressions() -> None:
    batch, queries, _ = logged()
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    order = np.lexsort((-scores, queries.query_of_document))
    rank = np.empty(queries.n_documents, dtype=np.int64)
    rank[order] = np.arange(80) % 10 + 1
    weight, a = CURVE.at(rank[batch.document]) / CURVE.at(batch.position), 0.2
    predicted, target = a * CURVE.at(batch.position), a * CURVE.at(rank[batch.document])
    gains = believed(batch, a)
    clicked, found = gains.on(queries), values_of([batch], gains, queries, [scores])[0]
    one = np.ones(len(weight))
    by_hand = {
        "ips": ratio(weight * batch.click, one, batch.session),
        "dr": ratio(target + weight * (batch.click - predicted), one, batch.session),
    }
    for metric, estimate in by_hand.items():
        ends = [10 * end for end in (estimate.value, estimate.low, estimate.high)]  # 10 impressions a session
        np.testing.assert_allclose([found[metric].value, found[metric].low, found[metric].high], ends, rtol=1e-12)
    shown = np.bincount(batch.document, CURVE.at(batch.position))
    assert found["snips"].value == pytest.approx(
        np.bincount(batch.document, batch.click) / shown @ (np.bincount(batch.query)[np.arange(80) // 10] / rank) / 4e4,
        rel=1e-12,
    )
    for metric in CLICK_METRICS:
        assert mean(metric, scores, clicked) == pytest.approx(found[metric].value, rel=1e-12)
    nothing = believed(batch, 0.0)
    np.testing.assert_array_equal(nothing.gains[0], nothing.gains[2])


def test_equal_scores_count_as_the_mean_of_their_orders() -> None:
    batch, queries, _ = logged(400)
    gains, tied = believed(batch, 0.2), np.random.default_rng(2).integers(0, 3, 80).astype(float)
    ours, _, difference = values_of([batch], gains, queries, [tied, np.zeros(80)])
    for metric in CLICK_METRICS:
        assert ours[metric].value == pytest.approx(mean(metric, tied, gains.on(queries)), rel=1e-12)
        plain = mean(metric, np.zeros(80), gains.on(queries))
        assert difference[metric].value == pytest.approx(ours[metric].value - plain, rel=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("page", [10, 5])
def test_estimates_are_unbiased(page: int) -> None:
    """Where a search shows 5 of 10 documents, ips takes the others to be bad; dr is off by what its model is off."""
    truths, found = [], dict[str, list[float]]({metric: [] for metric in CLICK_METRICS})
    for seed in range(30):
        batch, queries, _ = logged(2000, page=page, spread=3.0, seed=seed)
        scores = queries.grades + 1e-3 * np.random.default_rng(seed).normal(size=80)
        gains = ClickGains.of([batch], CURVE)
        clicked = gains.on(queries)
        order = np.lexsort((-scores, queries.query_of_document)).reshape(8, 10)[:, :page]
        clicks = Users().attraction(queries.grades)[order] @ (1.0 / np.arange(1, page + 1))
        truths.append(float(np.average(clicks, weights=gains.searches)))
        for metric in CLICK_METRICS:
            found[metric].append(mean(metric, scores, clicked))
    off = {metric: np.array(values) / truths - 1.0 for metric, values in found.items()}
    for metric, errors in off.items():
        error = errors.std(ddof=1) / np.sqrt(len(errors))
        room = 3 * error if page == 10 else {"snips": 0.01, "dr": 0.05, "ips": 0.5}[metric]
        assert abs(errors.mean()) < room and (errors.mean() < -0.1) == (page == 5 and metric == "ips"), metric


def test_what_the_log_does_not_tell() -> None:
    batch, queries, scores = logged(400)
    known = Examination.given({place: 1.0 / place for place in range(1, 11)})
    curve = replace(known, value=known.value / np.where(known.position > 5, 10.0, 1.0), known=known.position < 9)
    gains = ClickGains.by(ClickCounts.of([batch]), curve, np.zeros(80))
    assert gains.examined(12).tolist() == [*curve.value[:8], 0.0, 0.0, 0.0, 0.0]
    clicks = np.bincount(batch.position, batch.click)
    assert gains.clipped[0] == pytest.approx(clicks[6:9].sum() / clicks.sum()) and gains.weights.max() == CLIP
    other = Queries.from_arrays(np.zeros((6, 1)), np.zeros(6), qid=list("0099aa"), document_ids=[0, 1, 90, 91, 92, 93])
    about = gains.about([queries, other])
    assert (about["queries"], about["queries_in_log"], about["documents"], about["never_shown"]) == (11, 9, 82, 0)
    assert about["unknown"] == 800 and about["searches_of_data"] == about["searches"] == 400
    per_query = parse_metric("dr").per_query(np.arange(6.0), gains.on(other))
    assert per_query[0] > 0.0 and np.isnan(per_query[1:]).all()
    gains.check(about, other, "log.csv")
    strange = other.select([1, 2])
    with pytest.raises(DataError, match=r"log.csv has shown none .* document 0 of query 0 first.* 90 of query 9"):
        gains.check(gains.about([strange]), strange, "log.csv")
    with pytest.raises(DataError, match="no column of document ids"):
        gains.on(replace(queries, document_ids=None))
    with pytest.raises(DataError, match=r"come without a click log\. Give clicks=LOG"):
        parse_metric("dr").per_query(scores, queries)
    part = gains.on(queries).select([1, 4])
    exact = by_searches(part)
    weights = np.bincount(batch.query)[[1, 4]] / 10
    plain = parse_metric("ips").per_query(scores[part_rows(queries)], exact) / (weights / weights.mean())
    assert mean("ips", scores[part_rows(queries)], exact) == pytest.approx(np.average(plain, weights=weights))
    weighed = gains.on(queries.weighted_by(np.arange(1.0, 9.0)))
    assert mean("ips", scores, weighed) == pytest.approx(
        np.average(parse_metric("ips").per_query(scores, weighed), weights=np.arange(1.0, 9.0))
    )


def part_rows(queries: Queries) -> Ints | slice:
    return queries.documents_of(as_ints([1, 4]))
