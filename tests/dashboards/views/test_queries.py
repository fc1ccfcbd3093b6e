"""The queries' view: differences, counts, and the documents of the worst queries."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.dashboards.views.queries import MAX_OTHERS, panels
from ranktune.tuner.selection.evidence import QueryDocuments
from ranktune.tuner.selection.rows import BASELINE
from ranktune.tuner.statistics.measured import Interval
from tests.support.study_samples import (
    concluded,
    evidence_of,
    keyed,
    named,
    numbers,
    row_of,
    study_data,
    study_of_splits,
    traces,
)

LABELS = ("RankSVM", "LambdaRank", "ListNet")


def test_differences_are_sorted_and_counts_add_up() -> None:
    evidence = evidence_of(LABELS)
    rows = tuple(row_of(label, k, difference=None) for k, label in enumerate(LABELS))
    result = panels(study_data(evidence=evidence, solvers=LABELS, result=concluded(leaderboard=rows)))
    wins = keyed(result, "wins")
    differences = named(result, "difference")
    assert [panel.group for panel in differences] == [row[0] for row in wins.table.rows] == list(LABELS[1:])
    values = evidence.values["ndcg@10"]
    for panel, row in zip(differences, wins.table.rows, strict=True):
        gap = values[0] - values[LABELS.index(panel.group)]
        counted = gap[~np.isnan(gap)]
        shown = numbers(line[4] for line in panel.table.rows).tolist()
        np.testing.assert_allclose(shown, np.sort(counted)[::-1], atol=1e-6)
        assert row[1] == sum(x > 0 for x in shown)
        assert numbers(row[1:4]).sum() == len(counted) == 39
        assert row[4] == pytest.approx(counted.mean(), rel=1e-4)
        bars = [y for trace in traces(panel) for y in trace["y"]]
        np.testing.assert_allclose(bars, shown)
        assert f"{row[2]} queries are tied" in panel.note


def test_the_baseline_is_compared_first() -> None:
    labels = (*LABELS, BASELINE)
    shown = panels(study_data(evidence=evidence_of(labels), solvers=LABELS, result=concluded(labels=labels)))
    assert [row[0] for row in shown[0].table.rows] == [BASELINE, *LABELS[1:]]
    assert keyed(shown, "distribution").table.columns[3] == BASELINE


def test_the_leaderboard_s_comparisons_are_repeated() -> None:
    result = concluded(labels=LABELS)
    second = replace(result.leaderboard[1], difference=Interval(-0.02, -0.05, 0.01), p_value=0.125)
    result = replace(result, leaderboard=(result.best, second, *result.leaderboard[2:]))
    shown = panels(study_data(evidence=evidence_of(LABELS), solvers=LABELS, result=result))
    assert list(shown[0].table.rows[0][4:]) == [0.02, -0.01, 0.05, 0.125]


def test_folds_are_pooled_each_with_its_own_chosen_model() -> None:
    a, b = evidence_of(("RankSVM", "LambdaRank"), 20, 0), evidence_of(("LambdaRank", "RankSVM"), 30, 1)
    result = panels(study_of_splits([("Fold1", (), a), ("Fold2", (), b)], solvers=LABELS))
    shown = next(panel for panel in result if panel.group == "RankSVM")
    by_split = {s: numbers(row[4] for row in shown.table.rows if row[1] == s) for s in ("Fold1", "Fold2")}
    assert set(by_split["Fold1"]) == {0.0}
    gap = b.values["ndcg@10"][0] - b.values["ndcg@10"][1]
    np.testing.assert_allclose(np.sort(by_split["Fold2"]), np.sort(gap[~np.isnan(gap)]), atol=1e-6)
    assert "each split" in shown.title


def test_at_most_so_many_others_in_the_order_of_the_leaderboard() -> None:
    labels = tuple(f"model {k}" for k in range(12))
    board = (labels[0], *reversed(labels[1:]))
    shown = panels(study_data(evidence=evidence_of(labels), result=concluded(labels=board)))
    groups = [panel.group for panel in named(shown, "difference")]
    assert groups == list(board[1 : MAX_OTHERS + 1])


def test_the_worst_queries_come_with_documents_as_the_chosen_model_ranks_them() -> None:
    evidence = evidence_of(LABELS)
    shown = panels(study_data(evidence=evidence, solvers=LABELS, result=concluded(labels=LABELS)))
    worst = named(shown, "worst")
    ndcg = dict(zip(evidence.queries, evidence.values["ndcg@10"][0], strict=True))
    expected = sorted(
        (entry.query for entry in evidence.closely if not np.isnan(ndcg[entry.query])), key=lambda q: ndcg[q]
    )
    assert [panel.title.split(":")[0] for panel in worst] == [f"Query {query}" for query in expected]
    for panel, query in zip(worst, expected, strict=True):
        entry = next(entry for entry in evidence.closely if entry.query == query)
        assert [row[0] for row in panel.table.rows] == list(range(1, len(entry.documents) + 1))
        scores = numbers(row[3] for row in panel.table.rows).tolist()
        assert scores == sorted(scores, reverse=True)
        for row in panel.table.rows:
            i = entry.documents.index(str(row[1]))
            assert row[2] == entry.grades[i]
            assert row[3] == pytest.approx(entry.scores["RankSVM"][i], rel=1e-4)


def test_long_queries_keep_what_is_ranked_first_and_what_is_best() -> None:
    n = 150
    scores = tuple(float(-i) for i in range(n))
    grades = tuple(2.0 if i == n - 1 else 0.0 for i in range(n))
    long = QueryDocuments("q1", tuple(f"d{i}" for i in range(n)), grades, {label: scores for label in LABELS})
    evidence = replace(evidence_of(LABELS), closely=(long,))
    result = panels(study_data(evidence=evidence, solvers=LABELS))
    shown = keyed(result, "worst-0")
    assert [row[0] for row in shown.table.rows] == [*range(1, 21), n]
    assert "129 others" in shown.note


def test_the_distribution_counts_every_query_once() -> None:
    result = panels(study_data(evidence=evidence_of(LABELS), solvers=LABELS))
    shown = keyed(result, "distribution")
    assert numbers(row[2] for row in shown.table.rows).sum() == 39
    assert traces(shown)[0]["y"] == [row[2] for row in shown.table.rows]
