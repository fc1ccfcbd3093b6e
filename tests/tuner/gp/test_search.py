from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy
from scipy.stats import qmc

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.encoding import Axis, AxisRule, AxisRules, SpaceEncoding, covered
from ranktune.tuner.gp.search import BITS, DIMENSIONS, ascend, maximise, quasi_random, sobol_points
from tests.support.gp_samples import Bowl


def mixed_cube() -> SpaceEncoding:
    whole, few = Axis("whole", 0, 200, step=1), Axis("few", 1, 5, step=1)
    axes = (Axis("kind", choices=3), Axis("x"), whole, Axis("c", choices=4), few)
    return SpaceEncoding(axes, AxisRules((AxisRule(1, 0, (0.0, 2.0)), AxisRule(3, 0, (1.0,)))))


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_top_of_a_bowl(seed: int) -> None:
    encoding = mixed_cube()
    top = encoding.masked(encoding.snap(np.array([[seed % 3, 0.123, 0.777, 2, 0.5]])))
    generator = np.random.default_rng(seed)
    centres = encoding.filled(np.full((1, 5), np.nan), generator)
    row = maximise(Bowl(encoding.embed(top)[0]), encoding, centres, None, generator)
    np.testing.assert_allclose(encoding.masked(row[None]), top, atol=1e-5)


def test_what_is_taken_is_not_returned() -> None:
    encoding = mixed_cube()
    top = encoding.masked(encoding.snap(np.array([[1, 0.1, 0.777, 2, 0.5]])))
    generator = np.random.default_rng(0)
    centres = encoding.filled(top, generator)
    row = maximise(Bowl(encoding.embed(top)[0]), encoding, centres, top, generator)
    second = [abs(row[2] - top[0, 2]) > 0, row[0] != top[0, 0], row[3] != top[0, 3], row[4] != top[0, 4]]
    assert sum(second) == 1 and second[0]  # a step of the whole number costs least


def test_a_small_space_is_used_up_best_first_and_then_repeats() -> None:
    encoding = SpaceEncoding((Axis("a", choices=3), Axis("b", 0, 3, step=1)))
    acquisition_function = Bowl(encoding.embed(np.array([[1.0, 0.375]]))[0])
    taken = np.empty((0, 2))
    values = []
    for seed in range(12):
        row = maximise(acquisition_function, encoding, np.zeros((1, 2)), taken, np.random.default_rng(seed))
        assert not covered(row[None], taken)[0]
        taken = np.vstack([taken, row])
        values.append(acquisition_function.values(encoding.embed(row[None]))[0])
    assert values == sorted(values, reverse=True) and len(np.unique(taken, axis=0)) == 12
    repeated = maximise(acquisition_function, encoding, np.zeros((1, 2)), taken, np.random.default_rng(0))
    np.testing.assert_allclose(repeated, [1.0, 0.375])


def test_quasi_random_points_go_on_where_they_were_left() -> None:
    for dimensions in (3, 60):
        whole = quasi_random(64, dimensions, np.random.default_rng(0))
        assert (whole >= 0.0).all() and (whole < 1.0).all()
        for k in (0, 1, 17, 63):
            point = quasi_random(1, dimensions, np.random.default_rng(0), skip=k)[0]
            np.testing.assert_allclose(point, whole[k], atol=1e-12)


def test_quasi_random_points_from_many_threads() -> None:
    expected = quasi_random(8, 60, np.random.default_rng(0))
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: quasi_random(8, 60, np.random.default_rng(0)), range(32)))
    for points in drawn:
        np.testing.assert_array_equal(points, expected)


TOP = np.array([0.3, 1.4, 0.8, 0.5])  # the second beyond the box
CURVATURE = np.array([[2.0, 0.5, 0.0, 0.3], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 40.0, 0.0], [0.3, 0.0, 0.0, 0.5]])


def bowl(rows: Floats) -> tuple[Floats, Floats]:
    away = rows - TOP
    return -0.5 * np.einsum("ij,jk,ik->i", away, CURVATURE, away), -away @ CURVATURE


def hills(rows: Floats) -> tuple[Floats, Floats]:
    return np.sin(9 * rows).sum(axis=1) + rows[:, 0], 9 * np.cos(9 * rows) + np.eye(rows.shape[1])[0]


STARTS = np.random.default_rng(0).random((5, 4))
ALL = np.ones((5, 4), dtype=bool)


@pytest.mark.parametrize(
    ("low", "high"),
    [(np.zeros(4), np.ones(4)), (np.array([0.35, 0.0, 0.1, 0.2]), np.array([0.9, 0.4, 0.6, 0.3]))],
)
def test_reaches_the_top_of_a_bowl_within_bounds(low: Floats, high: Floats) -> None:
    reached = ascend(bowl, low + STARTS * (high - low), ALL, calls=60, tolerance=1e-12, low=low, high=high)
    bounds = list(zip(low, high, strict=True))
    negated = scipy.optimize.minimize(
        lambda x: -bowl(x[None])[0][0], low, jac=lambda x: -bowl(x[None])[1][0], bounds=bounds
    )
    np.testing.assert_allclose(reached, np.tile(negated.x, (5, 1)), atol=1e-4)


def test_columns_that_are_not_free_stay() -> None:
    free = np.random.default_rng(1).random((5, 4)) < 0.5
    free[0] = False
    reached = ascend(bowl, STARTS, free, calls=60, tolerance=1e-12)
    np.testing.assert_array_equal(reached[~free], STARTS[~free])
    assert (bowl(reached)[0] >= bowl(STARTS)[0]).all()
    gradient = bowl(reached)[1]
    inside = free & (reached > 0) & (reached < 1)
    assert inside.any() and np.abs(gradient[inside]).max() < 1e-3


@pytest.mark.parametrize("calls", [1, 2, 5, 40])
def test_nobody_ends_lower_than_where_it_began(calls: int) -> None:
    reached = ascend(hills, STARTS, ALL, calls=calls, tolerance=1e-9)
    assert (hills(reached)[0] >= hills(STARTS)[0]).all() and reached.min() >= 0 and reached.max() <= 1


def test_climbers_do_not_disturb_each_other() -> None:
    together = ascend(hills, STARTS, ALL, calls=40, tolerance=1e-9)
    alone = [ascend(hills, STARTS[i : i + 1], ALL[:1], calls=40, tolerance=1e-9)[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, atol=1e-9)
    gradient = hills(together)[1]
    assert np.abs(gradient[(together > 0) & (together < 1)]).max() < 1e-2


def test_a_flat_function_is_left_alone() -> None:
    reached = ascend(lambda rows: (np.zeros(len(rows)), np.zeros(rows.shape)), STARTS, ALL, calls=10, tolerance=0.0)
    np.testing.assert_array_equal(reached, STARTS)


@pytest.mark.parametrize("dimensions", [1, 7, DIMENSIONS])
@pytest.mark.parametrize("skip", [0, 1, 6, 1001])
def test_the_points_are_those_of_scipy(dimensions: int, skip: int) -> None:
    ours, theirs = (np.random.default_rng(skip) for _ in range(2))
    engine = qmc.Sobol(dimensions, bits=BITS, seed=theirs)
    if skip:
        engine.fast_forward(skip)
    assert np.array_equal(sobol_points(64, dimensions, ours, skip), engine.random(64))
    assert ours.random() == theirs.random()  # what follows is the same too
