"""Which trials replace the first configuration: those ahead by more than their noise, the highest first."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.reserve import AVERAGED, ahead, close

GENERATOR = np.random.default_rng(0)


def test_those_ahead_by_more_than_their_noise_come_highest_first() -> None:
    first = GENERATOR.random(100)
    noise = GENERATOR.normal(size=100)
    noise = (noise - noise.mean()) / noise.std() / 10.0  # of a mean over queries: 0.01
    others = [first + noise + shift for shift in (0.005, 0.02, -0.02, 0.03, 0.0101)]
    assert ahead(first, others) == [3, 1, 4]
    assert ahead(first, [first]) == []


def test_queries_count_by_their_weights_and_skipped_ones_do_not() -> None:
    first = np.array([0.5, 0.5, 0.5, 0.5, np.nan])
    other = np.array([0.9, 0.9, 0.0, 0.0, 0.9])
    assert ahead(first, [other]) == []
    assert ahead(first, [other], np.array([1.0, 1.0, 0.01, 0.01, 9.0])) == [0]


@pytest.mark.parametrize(("errors", "expected"), [(0.0, [2, 1]), (1.0, [2]), (5.0, []), (float("inf"), [])])
def test_more_standard_errors_let_fewer_trials_replace_the_first(errors: float, expected: list[int]) -> None:
    noise = GENERATOR.normal(size=100)
    noise = (noise - noise.mean()) / noise.std() / 10.0
    first = np.full(100, 0.5)
    policy = replace(POLICY, choice=replace(POLICY.choice, ahead=errors))
    assert ahead(first, [first + noise + shift for shift in (-0.1, 0.005, 0.02)], policy=policy) == expected


def test_those_close_to_the_best_are_averaged_each_once() -> None:
    generator = np.random.default_rng(3)
    base = generator.random(60)
    noise = generator.normal(size=60)
    noise = 0.1 * (noise - noise.mean()) / noise.std(ddof=1)
    error = 0.1 / 60**0.5
    near, far = base - noise - 0.9 * error, base - noise - 1.1 * error
    assert close([far, near, base, base.copy()]) == [2, 1]
    assert close([near, far], policy=replace(POLICY, choice=replace(POLICY.choice, close=0.0))) == [0]
    lucky = [base + 0.001 * generator.normal(size=60) for _ in range(20)]
    assert len(close(lucky)) <= AVERAGED
    weighted = close([base, np.where(np.arange(60) < 30, base + 0.1, base - 0.1)], np.repeat([0.0, 1.0], 30))
    assert weighted == [0]
