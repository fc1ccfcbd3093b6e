"""Grades that are not whole numbers, or large: click rates, counts of clicks, revenue. Nothing needs an option."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune import api
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.grades import shared_levels
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import SOLVERS, make

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(400, 6))
ATTRACTION = 1.0 / (1.0 + np.exp(-(X[:, 0] + 0.5 * X[:, 1])))
QID = np.repeat(np.arange(40), 10)
GRADES = {
    "rates": np.round(0.4 * ATTRACTION * (GENERATOR.random(400) > 0.3), 3),
    "counts": np.floor(np.exp(4.0 * ATTRACTION + GENERATOR.normal(size=400))),
    "revenue": np.exp(9.0 * ATTRACTION) * (GENERATOR.random(400) > 0.5),
}


RECALL = {"pair_weight": "recall", "at": 3, "optimizer": "fobos", "l1": 1e-4}
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SOLVERS), *(("ListNet", {"gain": gain}) for gain in ("linear", "exp2")),
    ("Ranker", RECALL),
]  # fmt: skip


@pytest.mark.parametrize("kind", GRADES)
@pytest.mark.parametrize(("name", "parameters"), CASES, ids=str)
def test_every_solver_learns_from_them(name: str, parameters: dict[str, Any], kind: str) -> None:
    if parameters is RECALL and kind != "rates":
        pytest.skip("what is relevant to recall is a share of rates")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that stop before they converge
        ranker = make(name, parameters, 0).fit(X, GRADES[kind], qid=QID)
    assert np.corrcoef(ranker.predict(X), ATTRACTION)[0, 1] > 0.3


def test_a_study_has_no_failed_trial_and_keeps_one_gain(tmp_path: Path) -> None:
    solvers = ["RidgeRanker", "SVRRanker", "ListNet", "ElasticRank", "LambdaMART", "GBDTRanker"]
    data = (X, GRADES["rates"], QID)
    common: dict[str, Any] = {"solvers": solvers, "jobs": 1, "home": tmp_path, "name": "mine"}
    result = api.tune(data, trials=8, **common)
    assert result.metric == "ndcg@10:gain=linear"
    assert not result.failures and result.trials == 8
    assert api.tune(data, trials=9, **common).trials == 9  # the same command continues the study


def brute_force(grades: Floats, scores: Floats, k: int) -> float:
    """NDCG@k of one query without tied scores, with the grade as gain."""
    gained = sum(grades[i] / np.log2(r + 2) for r, i in enumerate(np.argsort(-scores)[:k]))
    ideal = max(
        sum(grades[i] / np.log2(r + 2) for r, i in enumerate(order))
        for order in itertools.permutations(range(len(grades)), min(k, len(grades)))
    )
    return float(gained / ideal)


@pytest.mark.parametrize("kind", GRADES)
def test_ndcg_is_its_definition(kind: str) -> None:
    scores, chosen = np.random.default_rng(1).normal(size=60), np.arange(60)
    queries = Queries.from_arrays(X[chosen], GRADES[kind][chosen], qid=np.repeat(np.arange(10), 6))
    values = parse_metric("ndcg@3").per_query(scores, queries)
    for q, value in enumerate(values):
        grades = queries.grades[6 * q : 6 * q + 6]
        expected = brute_force(grades, scores[6 * q : 6 * q + 6], 3) if grades.max() > 0.0 else np.nan
        assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert not np.isnan(values).all()


def test_expected_reciprocal_rank_is_its_definition() -> None:
    queries, scores = Queries.from_arrays(X[:5], GRADES["rates"][:5]), np.arange(5.0)
    goes_on, expected = 1.0, 0.0
    for rank, grade in enumerate(queries.grades[::-1], start=1):
        stops = (2.0**grade - 1.0) / 2.0**4
        expected += goes_on * stops / rank
        goes_on *= 1.0 - stops
    assert parse_metric("err").per_query(scores, queries)[0] == pytest.approx(expected, rel=1e-12)


def test_a_binary_metric_names_the_grade_that_would_be_relevant() -> None:
    queries = Queries.from_arrays(X, GRADES["rates"], qid=QID)
    with pytest.raises(ValueError, match=r"highest is 0\.\d+: write map:relevant=0\.\d+"):
        parse_metric("map").mean(X[:, 0], queries)


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_levels_are_shared_by_neighbours(most: int) -> None:
    values = np.random.default_rng(2).exponential(size=60).round(2)
    levels, number = shared_levels(values, most)
    assert len(levels) == min(most, len(np.unique(values))) and (np.diff(levels) > 0.0).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(number[order]) >= 0).all()
    for level, at in zip(levels, range(len(levels)), strict=True):
        assert level == pytest.approx(np.unique(values[number == at]).mean())
