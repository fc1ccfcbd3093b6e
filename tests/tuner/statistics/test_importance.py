"""Importances: known answers, parameters that do not matter, inactive parameters, laws."""

from typing import Any

import numpy as np
import pytest

from ranktune.tuner.statistics.importance import MAX_TRIALS, MIN_TRIALS, ParameterImportance, exchanged, importance


def rows_of(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, d))


def known(rows: np.ndarray, values: np.ndarray, seed: int = 0, **options: Any) -> ParameterImportance:
    result = importance(rows, values, np.random.default_rng(seed), **options)
    assert result is not None
    return result


def noise(n: int, seed: int = 1) -> np.ndarray:
    return 0.02 * np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_only_parameter_with_an_effect_ranks_first_and_a_dummy_has_none(n: int, seed: int) -> None:
    rows = rows_of(n, 5, seed)
    result = known(rows, np.sin(3 * rows[:, 2]) + noise(n, seed), seed)
    assert int(np.argmax(result.mean)) == 2
    assert result.mean[2] > 0.3
    assert result.low[2] > 0.05
    for dummy in (0, 1, 3, 4):
        assert result.low[dummy] <= 0.0
        assert result.mean[dummy] < 0.1
    assert (result.low <= result.mean).all()
    assert (result.mean <= result.high).all()


def test_shares_are_those_of_an_additive_function() -> None:
    rows = rows_of(MAX_TRIALS, 3)
    values = 3 * rows[:, 0] + rows[:, 1]  # variances 9 : 1
    result = known(rows, values)
    assert result.mean[0] == pytest.approx(0.9, abs=0.25)
    assert result.mean[1] == pytest.approx(0.1, abs=0.08)
    assert abs(result.mean[2]) < 0.03


def test_the_unit_of_the_values_does_not_matter() -> None:
    rows = rows_of(60, 3)
    values = rows[:, 0] + noise(60)
    a = known(rows, values)
    b = known(rows, 1024.0 * values)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-6, atol=1e-9)


def test_a_parameter_that_is_active_sometimes_matters_only_there() -> None:
    rows = rows_of(150, 3)
    switch = (rows[:, 0] > 0.5).astype(float)
    rows[:, 0] = switch
    values = np.where(switch > 0, 5 * rows[:, 1], 2.5) + noise(150)
    rows[switch == 0, 1] = np.nan
    result = known(rows, values)
    assert int(np.argmax(result.mean)) == 1
    assert result.low[1] > 0.1
    assert result.low[2] <= 0.0


def conditional(rows: np.ndarray) -> np.ndarray:
    """Column 1 is active where column 0 is 0, column 2 where it is 1."""
    masked = rows.copy()
    masked[rows[:, 0] != 0, 1] = np.nan
    masked[rows[:, 0] != 1, 2] = np.nan
    return masked


def test_what_depends_on_a_parameter_goes_with_it() -> None:
    rows = conditional(np.array([[0, 0.1, 9, 5], [1, 9, 0.2, 6], [0, 0.3, 9, 7]]))
    donors = conditional(np.array([[1, 9, 0.4, 8], [1, 9, 0.5, 8], [0, 0.6, 9, 8]]))
    nan = np.nan
    expected = [[1, nan, 0.4, 5], [1, nan, 0.2, 6], [0, 0.3, nan, 7]]
    np.testing.assert_array_equal(exchanged(rows, donors, 0, conditional), expected)
    expected = [[0, 0.1, nan, 8], [1, nan, 0.2, 8], [0, 0.3, nan, 8]]
    np.testing.assert_array_equal(exchanged(rows, donors, 3, conditional), expected)


def test_a_choice_counts_with_the_parameters_below_it() -> None:
    """One branch is 3 above the other, and each has a parameter of its own."""
    generator = np.random.default_rng(0)
    full = np.column_stack([generator.integers(0, 2, 150), *generator.random((3, 150))])
    rows = conditional(full)
    values = np.where(full[:, 0] == 0, full[:, 1], full[:, 2]) + 3.0 * (full[:, 0] == 1) + noise(150)
    result = known(rows, values, masked=conditional)
    exact = np.array([2.25 + 1 / 24, 1 / 24, 1 / 24, 0.0]) / values.var()  # half the mean squared differences
    np.testing.assert_allclose(result.mean, exact, atol=0.12)
    chosen = known(rows, values, columns=np.array([3, 0]), masked=conditional)
    assert chosen.mean.shape == (2,) and chosen.mean[1] > 0.8 and abs(chosen.mean[0]) < 0.05


def test_the_answer_depends_on_the_generator_alone() -> None:
    rows = rows_of(3 * MAX_TRIALS, 4)
    values = rows[:, 1] + noise(len(rows))
    a, b = (known(rows, values, 7) for _ in range(2))
    assert a.mean.tolist() == b.mean.tolist()
    assert a.n == MAX_TRIALS


def test_failed_trials_are_left_out() -> None:
    rows = rows_of(40, 2)
    values = rows[:, 0] + noise(40)
    values[::4] = np.nan
    finite = np.isfinite(values)
    a = known(rows, values)
    b = known(rows[finite], values[finite])
    assert a.mean.tolist() == b.mean.tolist()
    assert a.n == 30


def test_nothing_is_said_of_too_few_trials_or_equal_values() -> None:
    generator = np.random.default_rng(0)
    assert importance(rows_of(MIN_TRIALS - 1, 2), rows_of(MIN_TRIALS - 1, 2)[:, 0], generator) is None
    assert importance(rows_of(50, 2), np.full(50, 0.3), generator) is None
    assert importance(rows_of(50, 0), rows_of(50, 1)[:, 0], generator) is None
    assert importance(rows_of(0, 3), np.zeros(0), generator) is None
