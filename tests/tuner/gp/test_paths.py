from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp.paths import (
    FRONT_SOFTNESS,
    MOST_EXACT,
    SOFTNESS,
    PathMixture,
    Paths,
    PathwiseImprovement,
    smoothed_improvement,
    smoothed_indicator,
)
from tests.support.gp_samples import check_gradient, embedded, posterior
from tests.support.gp_samples import covariance as covariance_of


def test_paths_have_the_mean_and_covariance_of_the_posterior() -> None:
    """Over many paths, each with its own frequencies, the moments are exact: only the sample size blurs them."""
    some, _, _y = posterior()
    asked, generator, count = embedded(6, 1), np.random.default_rng(0), 4000
    drawn = np.array([Paths.drawn(some, generator, 1, count=64).values(asked)[:, 0] for _ in range(count)])
    mean, covariance = some.mean(asked), covariance_of(some, asked)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean) / sd, 4.5 / np.sqrt(count))
    # the standard error of a sample covariance of normals is at most sqrt(2 / count) sd_i sd_j; features add a little
    blur = 6 * np.sqrt(2 / count) * np.outer(sd, sd)
    np.testing.assert_array_less(np.abs(np.cov(drawn.T) - covariance), blur)


def test_paths_with_shared_frequencies_are_independent_given_them() -> None:
    some, _, _y = posterior()
    asked = embedded(6, 1)
    drawn = Paths.drawn(some, np.random.default_rng(0), 3000, count=512).values(asked)
    sd = np.sqrt(np.diag(covariance_of(some, asked)))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=1) - some.mean(asked)) / sd, 0.15)
    np.testing.assert_allclose(drawn.std(axis=1), sd, rtol=0.15)


def test_paths_at_trials_are_their_values_there() -> None:
    some, E, _y = posterior()
    first, second = (Paths.drawn(some, np.random.default_rng(seed), 16) for seed in (0, 1))
    mixture = PathMixture((first, second.averaged()))
    np.testing.assert_allclose(mixture.at_trials, mixture.values(E), atol=1e-9)


def test_values_of_many_rows_are_those_of_few() -> None:
    some, _, _y = posterior()
    wild = replace(some, root=100.0 * some.root, points=100.0 * some.points)  # of the shortest length scales
    for known in (some, wild):
        paths = Paths.drawn(known, np.random.default_rng(0), 3)
        rows = embedded(MOST_EXACT + 36, 5)
        few = np.concatenate([paths.values(rows[:50]), paths.values(rows[50:])])
        np.testing.assert_allclose(paths.values(rows), few, atol=2e-5)


def test_the_mean_of_paths_is_one_path_that_varies_less() -> None:
    some, _, _y = posterior()
    rows = embedded(8, 3)
    paths = Paths.drawn(some, np.random.default_rng(0), 16)
    assert paths.averaged().draws == 1
    np.testing.assert_allclose(paths.averaged().values(rows)[:, 0], paths.values(rows).mean(axis=1), rtol=1e-9)


def test_gradients_are_of_the_weighted_sum() -> None:
    some, _, _y = posterior()
    first, second = (Paths.drawn(some, np.random.default_rng(seed), 2) for seed in (0, 1))
    paths = PathMixture((first, second))
    E, u = embedded(5, 2), np.random.default_rng(1).normal(size=(5, 4))
    values, gradients = paths.with_gradients(E)
    np.testing.assert_allclose(values, np.hstack([first.values(E), second.values(E)]), atol=1e-10)
    np.testing.assert_allclose(values, paths.values(E), atol=1e-10)
    check_gradient(lambda rows: (paths.values(rows) * u).sum(axis=1), gradients(u), E, 1e-6, atol=1e-6)


def improvement(draws: int, constrained: bool = False) -> tuple[PathwiseImprovement, Paths, Paths, Floats]:
    some, E, _y = posterior(noise=0.3)
    generator = np.random.default_rng(0)
    objective, constraint = (Paths.drawn(some, generator, draws) for _ in range(2))
    over = [constraint] if constrained else []
    unit = np.ones(1)
    return PathwiseImprovement.over([objective], over, E, 0 * unit, unit, generator), objective, constraint, E


def test_improvement_is_the_mean_over_draws() -> None:
    acquisition_function, objective, _, E = improvement(512)
    asked = embedded(50, 3)
    expected = np.maximum(objective.values(asked) - objective.values(E).max(axis=0), 0).mean(axis=1)
    width = SOFTNESS * np.sqrt(1.2)
    np.testing.assert_allclose(width * np.exp(acquisition_function.values(asked)), expected, atol=2 * width)


def increasing(smoothed: Callable[[Floats], tuple[Floats, Floats]], end: float) -> tuple[Floats, Floats]:
    """Return z and the values there, which are positive and rise by the slope."""
    z = np.linspace(-end, end, 200_001)
    value, slope = smoothed(z)
    assert (value > 0).all() and (np.diff(value) > 0).all() and (slope > 0).all()
    np.testing.assert_allclose(np.trapezoid(slope, z), value[-1] - value[0], rtol=1e-4)
    return z, value


def test_the_smoothed_improvement_is_increasing_and_close_to_the_improvement() -> None:
    z, value = increasing(smoothed_improvement, 1e4)
    np.testing.assert_allclose(value, np.maximum(z, 0.0), atol=0.8)


def test_the_smoothed_indicator_is_increasing_and_close_to_the_indicator() -> None:
    z, value = increasing(smoothed_indicator, 1e3)
    far = np.abs(z) > 30
    np.testing.assert_allclose(value[far], z[far] > 0, atol=1e-3)
    assert (smoothed_improvement(-z)[0] * value < 1.0)[z < -30].all()  # larger improvements do not make up for it


def test_equal_to_the_best_in_every_draw_scores_less_than_slightly_better_in_one() -> None:
    """Of several objectives: around a front there are many of the first."""
    rises = np.array([np.zeros(64), np.where(np.arange(64) == 0, 0.02, -1.0)])
    equal, better = smoothed_improvement(rises / FRONT_SOFTNESS)[0].mean(axis=1)
    assert equal < better


def test_what_breaks_a_constraint_is_no_improvement() -> None:
    acquisition_function, objective, constraint, E = improvement(256, constrained=True)
    asked = embedded(50, 3)
    allowed = constraint.values(E) >= 0
    best = np.where(allowed, objective.values(E), objective.values(E).min(axis=0)).max(axis=0)
    gained = np.maximum(objective.values(asked) - best, 0) * (constraint.values(asked) >= 0)
    result = SOFTNESS * np.sqrt(1.2) * np.exp(acquisition_function.values(asked))
    np.testing.assert_allclose(result, gained.mean(axis=1), atol=4 * SOFTNESS)


def dominated(points: Floats) -> float:
    """The volume that points, (n, o), dominate above 0: the cells of the grid of their coordinates."""
    edges = [np.unique(np.append(0.0, points[:, k])) for k in range(points.shape[1])]
    corners = np.stack([each.ravel() for each in np.meshgrid(*(edge[1:] for edge in edges), indexing="ij")], axis=1)
    sizes = np.prod([each.ravel() for each in np.meshgrid(*map(np.diff, edges), indexing="ij")], axis=0)
    inside = np.any(np.all(corners[:, None, :] <= points[None, :, :] + 1e-12, axis=2), axis=1)
    return float(sizes[inside].sum())


def of_several(directions: Floats) -> PathwiseImprovement:
    some, _, _y = posterior()
    paths = Paths.drawn(some, np.random.default_rng(0), 1)
    count = len(directions)
    return PathwiseImprovement((paths,) * count, (), np.zeros(count), directions, np.zeros(1))


@pytest.mark.parametrize("count", [2, 3])
def test_scores_of_several_objectives_measure_the_hypervolume(count: int) -> None:
    """The mean over directions of the highest score, times the volume of the unit ball in one orthant."""
    points = np.random.default_rng(1).uniform(0.1, 1.0, (5, count))
    directions = np.abs(np.random.default_rng(0).standard_normal((count, 200_000)))
    directions /= np.sqrt((directions**2).sum(axis=0))
    acquisition_function = of_several(directions)

    def scores(rows: Floats) -> Floats:
        return acquisition_function._scored(
            [np.repeat(rows[:, [k]], directions.shape[1], axis=1) for k in range(count)]
        )

    ball = {2: np.pi / 4.0, 3: np.pi / 6.0}[count]
    assert ball * scores(points).max(axis=0).mean() == pytest.approx(dominated(points), rel=0.01)
    assert (scores(points - 2.0) < 0.0).all()  # below the reference point


@pytest.mark.parametrize("count", [2, 3])
def test_derivatives_of_scores_are_those_of_finite_differences(count: int) -> None:
    generator = np.random.default_rng(2)
    directions, gains = generator.uniform(0.2, 1.0, (count, 6)), generator.standard_normal((count, 4, 6))
    acquisition_function = of_several(directions)
    rises = acquisition_function._rises(list(gains))
    for k in range(count):
        up, down = (gains + sign * 1e-6 * (np.arange(count) == k)[:, None, None] for sign in (1.0, -1.0))
        slope = (acquisition_function._scored(list(up)) - acquisition_function._scored(list(down))) / 2e-6
        np.testing.assert_allclose(rises[k], slope, atol=1e-6)
