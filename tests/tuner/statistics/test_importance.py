"""Importances: known answers, parameters that do not matter, inactive parameters, laws."""

from __future__ import annotations

import numpy as np
import pytest

from ranktune.tuner.statistics.importance import MAX_TRIALS, MIN_TRIALS, importance


def rows_of(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, d))


def noise(n: int, seed: int = 1) -> np.ndarray:
    return 0.02 * np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_only_parameter_that_matters_is_found_and_a_dummy_may_not_matter(n: int, seed: int) -> None:
    rows = rows_of(n, 5, seed)
    found = importance(rows, np.sin(3 * rows[:, 2]) + noise(n, seed), np.random.default_rng(seed))
    assert found is not None
    assert int(np.argmax(found.mean)) == 2
    assert found.mean[2] > 0.3
    assert found.low[2] > 0.05
    for dummy in (0, 1, 3, 4):
        assert found.low[dummy] <= 0.0
        assert found.mean[dummy] < 0.1
    assert (found.low <= found.mean).all()
    assert (found.mean <= found.high).all()


def test_shares_are_those_of_an_additive_function() -> None:
    rows = rows_of(MAX_TRIALS, 3)
    values = 3 * rows[:, 0] + rows[:, 1]  # variances 9 : 1
    found = importance(rows, values, np.random.default_rng(0))
    assert found is not None
    assert found.mean[0] == pytest.approx(0.9, abs=0.25)
    assert found.mean[1] == pytest.approx(0.1, abs=0.08)
    assert abs(found.mean[2]) < 0.03


def test_the_unit_of_the_values_does_not_matter() -> None:
    rows = rows_of(60, 3)
    values = rows[:, 0] + noise(60)
    a = importance(rows, values, np.random.default_rng(0))
    b = importance(rows, 1024.0 * values, np.random.default_rng(0))
    assert a is not None
    assert b is not None
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-6, atol=1e-9)


def test_a_parameter_that_is_active_sometimes_matters_only_there() -> None:
    rows = rows_of(150, 3)
    switch = (rows[:, 0] > 0.5).astype(float)
    rows[:, 0] = switch
    values = np.where(switch > 0, 5 * rows[:, 1], 2.5) + noise(150)
    rows[switch == 0, 1] = np.nan
    found = importance(rows, values, np.random.default_rng(0))
    assert found is not None
    assert int(np.argmax(found.mean)) == 1
    assert found.low[1] > 0.1
    assert found.low[2] <= 0.0


def test_the_answer_depends_on_the_generator_alone() -> None:
    rows = rows_of(3 * MAX_TRIALS, 4)
    values = rows[:, 1] + noise(len(rows))
    a, b = (importance(rows, values, np.random.default_rng(7)) for _ in range(2))
    assert a is not None
    assert b is not None
    assert a.mean.tolist() == b.mean.tolist()
    assert a.n == MAX_TRIALS


def test_failed_trials_are_left_out() -> None:
    rows = rows_of(40, 2)
    values = rows[:, 0] + noise(40)
    values[::4] = np.nan
    known = np.isfinite(values)
    a = importance(rows, values, np.random.default_rng(0))
    b = importance(rows[known], values[known], np.random.default_rng(0))
    assert a is not None
    assert b is not None
    assert a.mean.tolist() == b.mean.tolist()
    assert a.n == 30


def test_nothing_is_said_of_too_few_trials_or_equal_values() -> None:
    generator = np.random.default_rng(0)
    assert importance(rows_of(MIN_TRIALS - 1, 2), rows_of(MIN_TRIALS - 1, 2)[:, 0], generator) is None
    assert importance(rows_of(50, 2), np.full(50, 0.3), generator) is None
    assert importance(rows_of(50, 0), rows_of(50, 1)[:, 0], generator) is None
    assert importance(rows_of(0, 3), np.zeros(0), generator) is None
