"""Simulated days: what they hold, what a day takes over from the one before, and that the past alone decides."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.studies.papers import lattice, protocols
from ranktune.studies.papers.lattice import search
from ranktune.studies.papers.protocols import Passes, daily, lists_of, truth
from ranktune.studies.papers.published import PublishedMeasure, PublishedSystem, load_paper
from ranktune.studies.papers.reproduce import reproduce
from tests.support.small_papers import LATTICE, height, paper


def small(**options: Any) -> PublishedSystem:
    """The entry "Thompson sampling daily" of few evaluations."""
    table = next(table for table in load_paper("elasticrank").tables if table.protocol == "daily")
    return replace(table.entries[3], evaluations=7, **options)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "DAYS", 5)
    monkeypatch.setattr(protocols, "LISTS", (30, 40))


def test_the_truth_turns_a_quarter_and_keeps_its_length() -> None:
    first, middle, last = (truth(turn, 40, 10) for turn in (0.0, 0.5, 1.0))
    assert first @ last == pytest.approx(0.0) and middle @ first == pytest.approx(np.sqrt(0.5))
    assert np.linalg.norm([first, middle, last], axis=1) == pytest.approx(1.0)
    assert np.flatnonzero(first).tolist() == [0, 10, 20, 30]


def test_days_hold_what_is_said_of_them() -> None:
    several = [lists_of(day, np.random.default_rng(day)) for day in range(4)]
    assert [each.n_queries for each in several] == [30, 40, 30, 40]
    assert np.mean(np.concatenate([each.grades for each in several])) == pytest.approx(1 / 15, abs=0.015)
    assert several[0].n_features == protocols.FEATURES and several[0].n_documents == 30 * protocols.LENGTH


def test_a_value_is_the_metric_of_the_last_day_before_it_is_learned_from() -> None:
    entry, past = small(), [lists_of(day, np.random.default_rng(day)) for day in range(2)]
    passes, point = Passes(entry, past, 0), entry.points[5]
    values = passes.value(point)
    alone = make(entry.solver, entry.at(point))
    alone.progressive(past[0])  # type: ignore[attr-defined]
    first = parse_metric("ndcg@10").per_query(alone.predict(past[1]), past[1])
    assert values[0] == pytest.approx(first[0], nan_ok=True) and not np.allclose(values, first, equal_nan=True)
    assert passes.best.point == point and np.count_nonzero(passes.best.ranker.coef_ - alone.coef_)  # type: ignore[attr-defined]


def test_a_day_is_judged_by_what_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, original = daily(small(carries="trials"), 0).curves["days"], lists_of
    assert usual.shape == (4,) and (daily(small(carries="trials"), 0).curves["days"] == usual).all()

    def changed(day: int, generator: np.random.Generator) -> Any:
        lists = original(day, generator)
        return lists.with_features(-np.asarray(lists.features)) if day == 3 else lists

    monkeypatch.setattr(protocols, "lists_of", changed)
    other = daily(small(carries="trials"), 0).curves["days"]
    assert (other[:2] == usual[:2]).all() and other[2] != usual[2] and other[3] != usual[3]


def test_what_a_day_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    searched = lattice.search

    def counted(*given: Any, **options: Any) -> Any:
        calls.append(len(options["before"]))
        return searched(*given, **options)

    monkeypatch.setattr(protocols, "search", counted)
    for carries, before in (("", [0] * 4), ("trials", [0, 7, 7, 7]), ("choice", [0])):
        calls.clear()
        daily(small(carries=carries), 1)
        assert calls == before
    calls.clear()
    daily(replace(small(), grid={}, copies={}, evaluations=0), 1)
    assert not calls


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_points_of_other_data_are_evidence_where_their_ranking_carries(
    sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the first point that is not evaluated again is the best one, which the other data did not hold."""
    noise, added = np.random.default_rng(0).normal(0.0, 0.01, 50), list[Any]()
    entry = PublishedSystem("", "ElasticRank", (), grid=LATTICE)
    best, *others = sorted(entry.points, key=height, reverse=True)
    known = [(point, height(point) - 0.3 + noise) for point in others]
    moved = lattice._as_they_moved

    def noted(*given: Any) -> Any:
        added.extend(moved(*given))
        return added

    monkeypatch.setattr(lattice, "_as_they_moved", noted)
    found = search(
        LATTICE, lambda point: sign * height(point) + noise, sampler="thompson", seed=0, evaluations=6, before=known
    )
    assert [point for point, _ in found[:3]] == [others[round(share * 8)] for share in (0.0, 0.5, 0.9)]
    assert len(added) == (9 if sign > 0.0 else 0)
    if sign > 0.0:
        shifted = [height(point) + noise.mean() for point in others]
        assert [trial.value for trial in added] == pytest.approx(shifted) and found[5][0] == best


def test_the_protocol_needs_no_data() -> None:
    measure = PublishedMeasure("ndcg@10", parse_metric("ndcg@10"))
    entry = replace(small(), measures=(measure,), evaluations=3)
    (result,) = reproduce(paper(entry, protocol="daily", runs=2), [])
    assert [(row.dataset, row.metric) for row in result.rows] == [(protocols.NAME, "ndcg@10")]
    curves = [part.curves["days"] for part in result.results[entry.name, protocols.NAME]]
    assert result.rows[0].ours == pytest.approx(np.mean(curves)) and (curves[0] != curves[1]).all()
