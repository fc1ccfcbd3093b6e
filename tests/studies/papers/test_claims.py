"""Verdicts on what papers say: cases counted by hand, counts, and a lattice that samplers search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.studies.papers.claims import Verdict, counted, judged
from ranktune.studies.papers.lattice import coarse, search
from ranktune.studies.papers.protocols import PartResult
from ranktune.studies.papers.published import Claim, Entry
from ranktune.studies.papers.tuner_runs import figures, sampler_runs, verdicts

OURS = {
    ("a", "A", "ndcg"): 0.5, ("a", "B", "ndcg"): 0.4, ("a", "C", "ndcg"): 0.49,
    ("b", "A", "ndcg"): 0.3, ("b", "B", "ndcg"): 0.31, ("b", "C", "ndcg"): None,
}  # fmt: skip
CLAIM = Claim("A is best", "A", ("B",), ("ndcg",))


def test_a_claim_holds_where_all_of_its_cases_do() -> None:
    one = judged("Table 1", replace(CLAIM, dataset="a"), OURS, ["a", "b"])
    assert one.holds is True and "1 of 1 cases; the least is +0.1 (a, ndcg, B)" in one.reason
    both = judged("Table 1", replace(CLAIM, reason="Noise."), OURS, ["a", "b"])
    assert both.holds is False and both.word == "NO"
    assert "1 of 2 cases; the least is -0.01 (b, ndcg, B). Noise." in both.reason


@pytest.mark.parametrize(("change", "holds"), [({"share": 0.5}, True), ({"by": -0.02}, True), ({"by": 0.2}, False)])
def test_a_claim_may_leave_room(change: dict[str, Any], holds: bool) -> None:
    found = judged("Table 1", replace(CLAIM, **change), OURS, ["a", "b"])
    assert found.holds is holds
    words = {-0.02: "A is at most 0.02 behind in 2 of 2", 0.2: "A is ahead by at least 0.2 in 0 of 2"}
    assert words.get(change.get("by", 0.0), "A is ahead in 1 of 2") in found.reason


def test_less_is_better_of_mean_ranks() -> None:
    ranks = {("mean rank", "A", "rank by ndcg"): 1.5, ("mean rank", "B", "rank by ndcg"): 2.0}
    claim = Claim("A leads", "A", ("B",), ("rank by ndcg",), dataset="mean rank")
    assert judged("Table 1", claim, ranks, ["a"]).holds is True
    assert judged("Table 1", replace(claim, higher="B", lower=("A",)), ranks, ["a"]).holds is False


def test_a_claim_that_cannot_be_checked_says_why() -> None:
    absent = judged("Table 1", replace(CLAIM, dataset="c"), OURS, ["a", "b"])
    assert absent.holds is None and absent.word == "not checked" and absent.reason == "c was not given."
    failed = judged("Table 1", replace(CLAIM, lower=("C",)), OURS, ["b"])
    assert failed.holds is False and failed.reason == "A or C could not run on b."
    private = judged("Table 1", Claim("on images", reason="Never published."), OURS, ["a"])
    assert (private.holds, private.reason) == (False, "Never published.")


def test_no_system_is_best_everywhere() -> None:
    claim = Claim("no winner", lower=("A", "B"), measures=("ndcg",))
    assert judged("Table 1", claim, OURS, ["a", "b"]).holds is True
    alone = judged("Table 1", claim, OURS, ["a"])
    assert alone.holds is False and alone.reason == "Best: a, ndcg: A."


def test_verdicts_are_counted() -> None:
    every = [Verdict("s", "c", holds, "r") for holds in (True, True, False, None)]
    assert counted(every) == "4 printed figures and claims: 2 yes, 1 NO, 1 not checked."
    assert counted(every[:3]) == "3 printed figures and claims: 2 yes, 1 NO."


LATTICE = {"loss": ("hinge", "logistic"), "l1": tuple(10.0**k for k in range(-4, 1)), "fixed": (3,)}


def height(point: Any) -> float:
    return float(point["loss"] == "logistic") - abs(float(np.log10(point["l1"])) + 1.0)


@pytest.mark.parametrize("sampler", ["thompson", "random", "tpe", "grid"])
def test_samplers_search_points_of_the_lattice_alone(sampler: str) -> None:
    found = search(LATTICE, height, sampler=sampler, seed=3, evaluations=12)
    assert found == search(LATTICE, height, sampler=sampler, seed=3, evaluations=12)
    assert len(found) == (4 if sampler == "grid" else 12)
    for point, value in found:
        assert all(point[name] in values for name, values in LATTICE.items()) and value == height(point)


def test_thompson_finds_the_best_point() -> None:
    best = max(search(LATTICE, height, sampler="thompson", seed=0, evaluations=15), key=lambda one: one[1])
    assert best[0] == {"loss": "logistic", "l1": 0.1, "fixed": 3}


def test_the_coarse_grid_has_two_values_of_a_number_and_all_categories() -> None:
    points = coarse(LATTICE, 0)
    assert {(point["loss"], point["l1"]) for point in points} == {
        (loss, l1) for loss in ("hinge", "logistic") for l1 in (1e-3, 1e-1)
    }
    assert points != coarse(LATTICE, 1) and len(points) == 4


def entry(sampler: str, evaluations: int = 6) -> Entry:
    return Entry(sampler, "ElasticRank", (), grid=LATTICE, evaluations=evaluations, sampler=sampler, choose="ndcg@10")


def runs(sampler: str, evaluations: int = 6) -> PartResult:
    values = np.array([height(point) for point in entry(sampler).points])
    folds = [PartResult(curves={"vali": values + k, "test": -values}) for k in (-1.0, 1.0)]
    return sampler_runs(entry(sampler, evaluations), folds, range(4))


def test_regret_is_counted_from_the_best_point_of_the_lattice() -> None:
    found = runs("random", evaluations=10)
    regret = found.curves["regret"]
    assert regret.shape == (4, 10)
    assert (np.diff(regret, axis=1) <= 0.0).all() and (regret >= 0.0).all()
    np.testing.assert_allclose(found.curves["test"], regret[:, -1] - 1.0)  # the best point is worth 1
    assert (runs("grid").curves["regret"][:, -1] == 0.0).all()  # the coarse grid holds the best point
    assert figures([found], "ndcg@10")["regret@10"] == np.median(regret[:, 9])


def test_a_fold_that_failed_fails_the_runs() -> None:
    assert sampler_runs(entry("random"), [PartResult(error="too few queries")], range(2)).error == "too few queries"


def test_samplers_are_compared_by_their_final_regrets() -> None:
    first, second = entry("thompson"), entry("random")
    good = (PartResult(curves={"regret": np.full((10, 6), 0.001), "test": np.zeros(10)}),)
    bad = (PartResult(curves={"regret": np.linspace(0.02, 0.03, 60).reshape(10, 6), "test": np.zeros(10)}),)
    enough, better = verdicts("Section 6", [first, second], {("thompson", "a"): good, ("random", "a"): bad}, ["a"])
    assert enough.holds and "within 0.005 of the best in 100% of 10 runs" in enough.reason
    assert better.holds and "p = " in better.reason
    little, worse = verdicts("Section 6", [first, second], {("thompson", "a"): bad, ("random", "a"): good}, ["a"])
    assert little.holds is False and worse.holds is False
    _, same = verdicts("Section 6", [first, second], {("thompson", "a"): good, ("random", "a"): good}, ["a"])
    assert same.holds is False and "No difference that these runs can show" in same.reason
