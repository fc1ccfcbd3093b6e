"""Planned tests: their power by enumeration, and in simulations that judge lists and clicks of users."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.interleaving import plan
from ranktune.tuner.interleaving.judging import judged, sizes
from ranktune.tuner.interleaving.searches import Searches
from tests.tuner.interleaving.test_judging import searches


def exact_power(n: int, wins: float, losses: float) -> float:
    """The probability that A is found in n searches: the sum over all numbers of wins and losses."""
    won, lost = np.mgrid[: n + 1, : n + 1]
    possible = (won + lost <= n) & (2 * binom.cdf(lost, won + lost, 0.5) <= 0.05)
    won, lost = won[possible], lost[possible]
    return float(
        multinomial.pmf(np.stack([won, lost, n - won - lost], axis=1), n, [wins, losses, 1 - wins - losses]).sum()
    )


@pytest.mark.parametrize(("effect", "ties", "power"), [(0.4, 0.1, 0.8), (0.4, 0.5, 0.8), (0.45, 0.0, 0.9)])
def test_the_power_is_exact_and_no_smaller_test_will_do(effect: float, ties: float, power: float) -> None:
    planned = plan(effect, ties=ties, power=power)
    wins, losses = (1 - ties + effect) / 2, (1 - ties - effect) / 2
    assert planned.power == pytest.approx(exact_power(planned.searches, wins, losses), abs=1e-6)
    assert planned.power >= power > exact_power(planned.searches - 1, wins, losses)


def test_large_tests_follow_the_normal_distribution() -> None:
    for effect, ties in ((0.01, 0.8), (0.002, 0.9), (0.03, 0.0)):
        normal = ((1.959964 + 0.841621) / effect) ** 2 * (1 - ties - effect**2)
        assert plan(effect, ties=ties).searches == pytest.approx(normal, rel=0.02)
    table = sizes(plan(0.2, ties=0.7))
    assert [effect for effect, _ in table] == [0.1, 0.2]  # 0.4 cannot be
    assert table[1][1][1] == plan(0.2, ties=0.7).searches < (table[0][1][1] or 0)


def found_in(outcomes: list[Searches], wanted: str) -> float:
    """The share of logs whose verdict is right."""
    generator = np.random.default_rng(0)
    return float(np.mean([judged(log, generator, 1000).verdict == wanted for log in outcomes]))


@pytest.mark.thorough
@pytest.mark.parametrize(("effect", "ties"), [(0.1, 0.6), (0.3, 0.3), (0.2, 0.7), (0.05, 0.0)])
def test_verdicts_have_the_planned_power(effect: float, ties: float) -> None:
    generator, planned = np.random.default_rng(2), plan(effect, ties=ties)
    p = [(1 - ties - effect) / 2, ties, (1 - ties + effect) / 2]
    logs = [searches(generator.choice([-1, 0, 1], planned.searches, p=p)) for _ in range(1500)]
    assert abs(found_in(logs, "A") - planned.power) < 0.03


def test_plans_of_a_log_so_far_know_that_searches_of_a_user_are_alike() -> None:
    generator = np.random.default_rng(3)
    taste, drawn = np.repeat(generator.choice([0.02, 0.42], 20_000), 8), generator.random(160_000)
    outcome = np.where(drawn < taste, 1, np.where(drawn > 0.85, -1, 0))
    seen = judged(searches(outcome, np.repeat(np.arange(20_000), 8)), generator, 100)
    naive = plan(0.07, ties=seen.ties)
    assert plan(0.07, seen=seen).searches == pytest.approx(seen.design_effect * naive.searches, rel=1e-3)
    assert seen.design_effect > 1.5


def test_what_cannot_be_planned() -> None:
    seen = judged(searches(np.repeat([0, 1, -1], [80, 12, 8])), np.random.default_rng(0), 100)
    assert plan(0.03, seen=seen) == plan(0.03, ties=0.8) == plan(0.03, seen=replace(seen, design_effect=0.9))
    for options, words in (
        ({}, "the noise must be known"),
        ({"ties": 0.8, "seen": seen}, "the noise must be known"),
        ({"ties": 1.0}, "below 1"),
        ({"ties": 0.98}, "at most 0.02"),
        ({"ties": 0.5, "power": 0.01}, "power=0.01"),
        ({"ties": 0.5, "effect": 1e-7}, "more than 1,000,000,000 searches"),
        ({"ties": 0.5, "effect": float("nan")}, "effect=nan"),
    ):
        with pytest.raises(ParameterError, match=words):
            plan(**{"effect": 0.03} | options)
