"""Verdicts on what papers say: cases counted by hand, and counts."""

from dataclasses import replace
from typing import Any

import pytest

from ranktune.studies.papers.claims import ClaimVerdict, counted, verdict_on
from ranktune.studies.papers.published import Claim

OURS = {
    ("a", "A", "ndcg"): 0.5, ("a", "B", "ndcg"): 0.4, ("a", "C", "ndcg"): 0.49,
    ("b", "A", "ndcg"): 0.3, ("b", "B", "ndcg"): 0.31, ("b", "C", "ndcg"): None,
}  # fmt: skip
CLAIM = Claim("A is best", "A", ("B",), ("ndcg",))


def test_a_claim_holds_where_all_of_its_cases_do() -> None:
    verdict = verdict_on("Table 1", replace(CLAIM, dataset="a"), OURS, ["a", "b"])
    assert verdict.holds is True and "1 of 1 cases; the least is +0.1 (a, ndcg, B)" in verdict.reason
    both = verdict_on("Table 1", replace(CLAIM, reason="Noise."), OURS, ["a", "b"])
    assert both.holds is False and both.word == "refuted"
    assert "1 of 2 cases; the least is -0.01 (b, ndcg, B). Noise." in both.reason


@pytest.mark.parametrize(("change", "holds"), [({"share": 0.5}, True), ({"by": -0.02}, True), ({"by": 0.2}, False)])
def test_a_claim_may_leave_room(change: dict[str, Any], holds: bool) -> None:
    result = verdict_on("Table 1", replace(CLAIM, **change), OURS, ["a", "b"])
    assert result.holds is holds
    words = {-0.02: "A is at most 0.02 behind in 2 of 2", 0.2: "A is ahead by at least 0.2 in 0 of 2"}
    assert words.get(change.get("by", 0.0), "A is ahead in 1 of 2") in result.reason


def test_less_is_better_of_mean_ranks() -> None:
    ranks = {("mean rank", "A", "rank by ndcg"): 1.5, ("mean rank", "B", "rank by ndcg"): 2.0}
    claim = Claim("A leads", "A", ("B",), ("rank by ndcg",), dataset="mean rank")
    assert verdict_on("Table 1", claim, ranks, ["a"]).holds is True
    assert verdict_on("Table 1", replace(claim, higher="B", lower=("A",)), ranks, ["a"]).holds is False


def test_a_claim_that_cannot_be_checked_says_why() -> None:
    absent = verdict_on("Table 1", replace(CLAIM, dataset="c"), OURS, ["a", "b"])
    assert absent.holds is None and absent.word == "cannot be checked" and absent.reason == "c was not given."
    failed = verdict_on("Table 1", replace(CLAIM, lower=("C",)), OURS, ["b"])
    assert failed.holds is None and failed.reason == "A or C could not run on b."
    private = verdict_on("Table 1", Claim("on images", reason="Never published."), OURS, ["a"])
    assert (private.holds, private.reason) == (None, "Never published.")


def test_no_system_is_best_everywhere() -> None:
    claim = Claim("no winner", lower=("A", "B"), measures=("ndcg",))
    assert verdict_on("Table 1", claim, OURS, ["a", "b"]).holds is True
    alone = verdict_on("Table 1", claim, OURS, ["a"])
    assert alone.holds is False and alone.reason == "Best: a, ndcg: A."
    nobody = verdict_on("Table 1", replace(claim, lower=("C",)), OURS, ["b"])
    assert nobody.holds is None and nobody.reason == "None of the systems could run."


def test_verdicts_are_counted() -> None:
    every = [ClaimVerdict("s", "c", holds, "r") for holds in (True, True, False, None)]
    assert counted(every) == "4 printed figures and claims: 2 yes, 1 refuted, 1 cannot be checked."
    assert counted(every[:3]) == "3 printed figures and claims: 2 yes, 1 refuted."
