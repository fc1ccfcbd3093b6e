"""Verdicts on what papers say: cases counted by hand, and counts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.papers.claims import ByPart, ClaimVerdict, Finding, below_zero, counted, verdict_from, verdict_on
from ranktune.studies.papers.published import Claim

OURS = {
    ("a", "A", "ndcg"): 0.5, ("a", "B", "ndcg"): 0.4, ("a", "C", "ndcg"): 0.49,
    ("b", "A", "ndcg"): 0.3, ("b", "B", "ndcg"): 0.31, ("b", "C", "ndcg"): None,
}  # fmt: skip
CLAIM = Claim("A is best", "A", ("B",), ("ndcg",))


def test_a_claim_holds_where_all_of_its_cases_do() -> None:
    verdict = verdict_on("Table 1", replace(CLAIM, dataset="a"), OURS, ["a", "b"], {})
    assert verdict.finding is Finding.CONFIRMED and "1 of 1 cases; the least is +0.1 (a, ndcg, B)" in verdict.reason
    both = verdict_on("Table 1", replace(CLAIM, reason="Noise."), OURS, ["a", "b"], {})
    assert both.finding is Finding.NOT_SHOWN
    assert "1 of 2 cases; the least is -0.01 (b, ndcg, B). Significantly the other way: 0. Noise." in both.reason


@pytest.mark.parametrize(
    ("of_b", "finding"),
    [
        ([-0.011, -0.009, -0.01, -0.0095, -0.0105], Finding.REFUTED),
        ([-0.09, 0.05, -0.06, 0.08, -0.03], Finding.NOT_SHOWN),  # the same mean
        ([-0.01], Finding.NOT_SHOWN),
    ],
)
def test_a_claim_is_refuted_where_it_is_significantly_the_other_way(of_b: list[float], finding: Finding) -> None:
    by_part: ByPart = {("b", "A", "ndcg"): 0.3 + np.array(of_b), ("b", "B", "ndcg"): np.full(len(of_b), 0.3)}
    verdict = verdict_on("Table 1", CLAIM, OURS, ["a", "b"], by_part)
    assert verdict.finding is finding
    assert f"Significantly the other way: {int(finding is Finding.REFUTED)}." in verdict.reason
    some = verdict_on("Table 1", replace(CLAIM, share=0.5), OURS, ["a", "b"], by_part)
    assert some.finding is Finding.CONFIRMED
    room = verdict_on("Table 1", replace(CLAIM, by=0.2, share=0.5), OURS, ["a", "b"], by_part)
    assert room.finding is Finding.NOT_SHOWN  # the case of a may hold, for all that is known


@pytest.mark.parametrize(
    ("differences", "below"),
    [
        ([-1.0], False),
        ([-1.0, -1.0], True),
        ([0.0, 0.0], False),
        ([-1.0, np.nan, -1.1, -0.9], True),
        ([1.0, 1.1], False),
    ],
)
def test_differences_below_zero(differences: list[float], below: bool) -> None:
    assert below_zero(np.array(differences)) is below


@pytest.mark.parametrize(
    ("holds", "contrary", "finding"),
    [
        (True, True, "confirmed"),
        (False, True, "refuted"),
        (False, False, "not shown"),
        (False, np.array([-1.0, -1.1]), "refuted"),
        (False, np.array([-1.0, 1.1]), "not shown"),
        (None, False, "cannot be checked"),
    ],
)
def test_findings(holds: bool | None, contrary: bool | Floats, finding: str) -> None:
    assert verdict_from("Table 1", "A is best", holds, "By 0.1.", contrary=contrary).finding == finding


@pytest.mark.parametrize(("change", "holds"), [({"share": 0.5}, True), ({"by": -0.02}, True), ({"by": 0.2}, False)])
def test_a_claim_may_leave_room(change: dict[str, Any], holds: bool) -> None:
    result = verdict_on("Table 1", replace(CLAIM, **change), OURS, ["a", "b"], {})
    assert (result.finding is Finding.CONFIRMED) is holds
    words = {-0.02: "A is at most 0.02 behind in 2 of 2", 0.2: "A is ahead by at least 0.2 in 0 of 2"}
    assert words.get(change.get("by", 0.0), "A is ahead in 1 of 2") in result.reason


def test_less_is_better_of_mean_ranks() -> None:
    ranks = {("mean rank", "A", "rank by ndcg"): 1.5, ("mean rank", "B", "rank by ndcg"): 2.0}
    claim = Claim("A leads", "A", ("B",), ("rank by ndcg",), dataset="mean rank")
    assert verdict_on("Table 1", claim, ranks, ["a"], {}).finding is Finding.CONFIRMED
    other = verdict_on("Table 1", replace(claim, higher="B", lower=("A",)), ranks, ["a"], {})
    assert other.finding is Finding.NOT_SHOWN


def test_a_claim_that_cannot_be_checked_says_why() -> None:
    absent = verdict_on("Table 1", replace(CLAIM, dataset="c"), OURS, ["a", "b"], {})
    assert (absent.finding, absent.reason) == ("cannot be checked", "c was not given.")
    failed = verdict_on("Table 1", replace(CLAIM, lower=("C",)), OURS, ["b"], {})
    assert (failed.finding, failed.reason) == ("cannot be checked", "A or C could not run on b.")
    private = verdict_on("Table 1", Claim("on images", reason="Never published."), OURS, ["a"], {})
    assert (private.finding, private.reason) == ("cannot be checked", "Never published.")


def test_no_system_is_best_everywhere() -> None:
    claim = Claim("no winner", lower=("A", "B"), measures=("ndcg",))
    assert verdict_on("Table 1", claim, OURS, ["a", "b"], {}).finding is Finding.CONFIRMED
    alone = verdict_on("Table 1", claim, OURS, ["a"], {})
    assert (alone.finding, alone.reason) == ("not shown", "Best: a, ndcg: A.")
    nobody = verdict_on("Table 1", replace(claim, lower=("C",)), OURS, ["b"], {})
    assert (nobody.finding, nobody.reason) == ("cannot be checked", "None of the systems could run.")


def test_verdicts_are_counted() -> None:
    every = [ClaimVerdict("s", "c", finding, "r") for finding in (Finding.CONFIRMED, *Finding)]
    assert counted(every) == ("5 printed figures and claims: 2 confirmed, 1 refuted, 1 not shown, 1 cannot be checked.")
    assert counted(every[:3]) == "3 printed figures and claims: 2 confirmed, 1 refuted."
