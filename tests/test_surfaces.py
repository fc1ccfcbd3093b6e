from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from ranktune.solvers.arrays import Floats
from ranktune.tuner.gaussian_process import Hyperparameters, Posterior
from ranktune.tuner.surfaces import ExpectedImprovement, Path, Surface, log_improvement

OWNER = np.array([0, 1, 2, 2, 2])


def embedded(n: int, seed: int) -> Floats:
    generator = np.random.default_rng(seed)
    corner = np.eye(3)[generator.integers(0, 3, n)] * np.sqrt(0.5)
    return np.hstack([generator.random((n, 2)), corner])


def posterior(scale: float = 1.2, noise: float = 0.02) -> tuple[Posterior, Floats, Floats]:
    E = embedded(14, 0)
    y = np.sin(5 * E[:, 0]) + E[:, 2]
    hyperparameters = Hyperparameters(np.array([3.0, 0.5, 1.0]), scale, noise)
    return Posterior.of(E, y, np.linspace(0.5, 2, 14), hyperparameters, OWNER), E, y


def surfaces() -> list[Surface]:
    first, E, y = posterior()
    second, _, _ = posterior(0.7, 0.1)
    return [Path.drawn(first, y, np.random.default_rng(0)), ExpectedImprovement.over((first, second), E)]


@pytest.mark.parametrize("surface", surfaces(), ids=["path", "improvement"])
class TestEverySurface:
    def test_value_at_one_row_is_the_value_at_rows(self, surface: Surface) -> None:
        E = embedded(6, 1)
        np.testing.assert_allclose([surface.value_and_gradient(e)[0] for e in E], surface.values(E), rtol=1e-8)

    def test_gradient_matches_central_differences(self, surface: Surface) -> None:
        h = 1e-5
        for e in embedded(6, 2):
            steps = h * np.eye(len(e))
            expected = (surface.values(e + steps) - surface.values(e - steps)) / (2 * h)
            np.testing.assert_allclose(surface.value_and_gradient(e)[1], expected, rtol=1e-4, atol=1e-6)


def test_paths_have_the_mean_and_covariance_of_the_posterior() -> None:
    """Over many paths, each with its own frequencies, the moments are exact: only the sample size blurs them."""
    some, _, y = posterior()
    asked, generator, count = embedded(6, 1), np.random.default_rng(0), 4000
    drawn = np.array([Path.drawn(some, y, generator, count=64).values(asked) for _ in range(count)])
    mean, covariance = some.mean(asked), some.covariance(asked)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean) / sd, 4.5 / np.sqrt(count))
    # the standard error of a sample covariance of normals is at most sqrt(2 / count) sd_i sd_j; features add a little
    blur = 6 * np.sqrt(2 / count) * np.outer(sd, sd)
    np.testing.assert_array_less(np.abs(np.cov(drawn.T) - covariance), blur)


def test_a_path_without_noise_goes_through_the_trials() -> None:
    some, E, y = posterior(noise=1e-9)
    np.testing.assert_allclose(Path.drawn(some, y, np.random.default_rng(3)).values(E), y, atol=1e-3)


def test_log_improvement_near_and_far() -> None:
    z = np.linspace(-6, 5, 200)
    np.testing.assert_allclose(log_improvement(z), np.log(norm.pdf(z) + z * norm.cdf(z)), rtol=1e-6)
    far = np.array([-20.0, -100.0, -900.0, -1100.0, -1e5])
    # h(z) = pdf(z) (1 / z^2 - 3 / z^4 + 15 / z^6 - ...)
    expected = norm.logpdf(far) + np.log(1 / far**2 - 3 / far**4 + 15 / far**6)
    np.testing.assert_allclose(log_improvement(far), expected, rtol=1e-6)


def test_log_improvement_is_smooth_where_its_formulas_meet() -> None:
    for z in (-1.0, -1e3):
        low, high = log_improvement(np.array([z - 1e-9, z + 1e-9]))
        assert low == pytest.approx(high, rel=1e-8)


def test_improvement_is_the_mean_over_draws() -> None:
    some, E, _ = posterior()
    asked = embedded(5, 1)
    surface = ExpectedImprovement.over((some,), E)
    mean, variance = some.mean_and_variance(asked)
    draws = mean + np.sqrt(variance) * np.random.default_rng(0).standard_normal((400_000, 1))
    expected = np.maximum(draws - some.mean(E).max(), 0)
    tolerance = 5 * expected.std(axis=0) / np.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(np.exp(surface.values(asked)) - expected.mean(axis=0)), tolerance + 1e-12)


def test_improvement_of_several_posteriors_is_their_mean() -> None:
    first, E, _ = posterior()
    second, _, _ = posterior(0.7, 0.1)
    asked = embedded(5, 1)
    single = [np.exp(ExpectedImprovement.over((p,), E).values(asked)) for p in (first, second)]
    both = np.exp(ExpectedImprovement.over((first, second), E).values(asked))
    np.testing.assert_allclose(both, np.mean(single, axis=0), rtol=1e-10)
