"""Pair weights: what they say about grades and ranks, and what they refuse. Their sums: test_pairwise."""

from math import log2
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, PairWeight, Uniform


def test_uniform_has_no_ranks() -> None:
    assert len(Uniform().ranks(7)) == 0


def test_ndcg_counts_gains_and_discounts() -> None:
    np.testing.assert_allclose(DeltaNDCG(2).gains(np.array([0.0, 1.0, 3.0])), [0, 1, 7])
    np.testing.assert_allclose(DeltaNDCG(2).ranks(9), [1, 1 / log2(3)])
    assert len(DeltaNDCG(5).ranks(3)) == len(DeltaNDCG(None).ranks(3)) == 3


def test_recall_counts_relevant_documents_among_the_first() -> None:
    np.testing.assert_array_equal(DeltaRecall(4).gains(np.array([-1.0, 0.0, 0.5, 1.0, 4.0])), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(DeltaRecall(4).ranks(9), np.ones(4))


@pytest.mark.parametrize("weight", [DeltaNDCG(10), DeltaNDCG(None), DeltaRecall(10)], ids=repr)
def test_the_value_never_falls_with_the_grade_nor_rises_with_the_rank(weight: PairWeight) -> None:
    assert (np.diff(weight.gains(np.arange(31.0))) >= 0).all()
    assert (np.diff(weight.ranks(50)) <= 0).all()
    assert (weight.ranks(50) > 0).all()


@pytest.mark.parametrize(("grade", "rule"), [(-1.0, "at least 0"), (31.0, "at most 30.*Use gain=linear")])
def test_ndcg_refuses_grades_without_a_gain(grade: float, rule: str) -> None:
    with pytest.raises(DataError, match=rf"document 1 has grade {grade:g}.*{rule}.*weight='uniform' or 'recall'"):
        DeltaNDCG().gains(np.array([0.0, grade]))


def test_click_rates_are_relevant_above_the_lowest() -> None:
    assert DeltaRecall().gains(np.array([0.07, 0.0, 0.41, 0.0])).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert DeltaRecall().gains(np.array([0.07, 0.0, 1.0, 0.5])).tolist() == [0.0, 0.0, 1.0, 0.0]


def test_linear_gains_take_any_grade_of_at_least_zero() -> None:
    np.testing.assert_array_equal(DeltaNDCG(gain="linear").gains(np.array([0.0, 1.5, 900.0])), [0, 1.5, 900])
    with pytest.raises(DataError, match="at least 0"):
        DeltaNDCG(gain="linear").gains(np.array([0.0, -1.0]))
    with pytest.raises(ParameterError, match=r"gain='exp' is unknown. Did you mean 'exp2'"):
        DeltaNDCG(gain="exp")


def test_gains_chosen_by_the_grades() -> None:
    auto = DeltaNDCG(gain="auto")
    np.testing.assert_array_equal(auto.gains(np.array([0.0, 1.0, 30.0])), [0, 1, 2**30 - 1])
    for grades in ([-1.0, 0.0, 2.0], [0.5, 1.0, 2.0], [0.0, 3.0, 31.0]):
        np.testing.assert_array_equal(auto.gains(np.array(grades)), np.array(grades) - min(grades))


@pytest.mark.parametrize("at", [0, -1, 1.5, "10", True])
def test_cutoffs_that_cannot_be(at: Any) -> None:
    for weight in (DeltaNDCG, DeltaRecall):
        with pytest.raises(ParameterError, match=r"at=.*whole number of at least 1"):
            weight(at)
