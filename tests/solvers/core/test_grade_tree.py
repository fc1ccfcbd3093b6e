"""The tree of prefix sums, and the sums over active partners by all three structures, against plain loops."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.losses import window_sums
from ranktune.solvers.losses.window_sums import WIDTH, add, below, offsets


@pytest.mark.parametrize("n_grades", [1, 2, WIDTH - 1, WIDTH, WIDTH + 1, WIDTH**2 - 1, WIDTH**2, 40_000])
def test_below_is_the_sum_of_what_was_added_to_lower_grades(n_grades: int) -> None:
    generator = np.random.default_rng(n_grades)
    ends = offsets(n_grades)
    tree, plain = np.zeros(ends[-1]), np.zeros(n_grades)
    for grade in [*generator.integers(0, n_grades, 200).tolist(), 0, n_grades - 1]:
        value = float(generator.integers(-9, 10))
        add(tree, ends, grade, value)
        plain[grade] += value
    asked = [*generator.integers(0, n_grades + 1, 100).tolist(), 0, n_grades]
    assert [below(tree, ends, grade) for grade in asked] == [plain[:grade].sum() for grade in asked]


def random_windows(seed: int, n: int, k: int) -> Any:
    generator = np.random.default_rng(seed)
    low = np.sort(np.minimum(generator.integers(0, n, n), np.arange(n))).astype(np.uint32)
    high = np.sort(np.maximum(generator.integers(0, n + 1, n), np.arange(n) + 1)).astype(np.uint32)
    low = np.minimum(low, np.arange(n)).astype(np.uint32)
    high = np.maximum(high, np.arange(n) + 1).astype(np.uint32)
    return generator.normal(size=n), generator.integers(0, k, n).astype(np.uint32), low, high


@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize(("n", "k"), [(2, 2), (30, 3), (40, 7), (60, 8), (50, 200), (300, 2000)])
def test_every_structure_gives_the_sums_over_active_partners(n: int, k: int, adjacent: bool) -> None:
    v, codes, low, high = random_windows(n, n, k)
    c, position = codes.astype(int), np.arange(n)
    lower = (c[None] == c[:, None] - 1) if adjacent else (c[None] < c[:, None])
    worse = lower & (position[None] >= low[:, None])
    better = lower.T & (position[None] < high[:, None])
    x = np.random.default_rng(k).integers(1, 4, n).astype(float)
    expected = worse @ (x * v) + better @ (x * v)
    counts = better @ x + worse @ x, better @ x - worse @ x
    out, total, degree, excess = (np.full(n, np.nan) for _ in range(4))
    room = np.full(max(offsets(k)[-1], k + 2), np.nan)
    counting = window_sums.Counting(x, room.copy(), degree, excess)
    if adjacent:
        window_sums.sum_adjacent(x * v, codes, k, low, high, room, out)
        window_sums.sum_adjacent(x * v, codes, k, low, high, room, total, counting)
    else:
        window_sums.sum_many(x * v, codes, k, low, high, room, out)
        window_sums.sum_many(x * v, codes, k, low, high, room, total, counting)
    for result in (out, total):
        np.testing.assert_allclose(result, expected, atol=1e-12 * n)
    np.testing.assert_array_equal([degree, excess], counts)
