from itertools import islice

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp import hyperparameters
from ranktune.tuner.gp.hyperparameters import (
    MAX_FITTED_TRIALS,
    SAMPLES,
    FittedTrials,
    HyperparameterDensity,
    chain,
    maximum_a_posteriori,
)
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior, standardise
from tests.support.gp_samples import OWNER, check_gradient


def taken(some: HyperparameterDensity, centre: Floats, count: int) -> Floats:
    """That many steps of a chain from its centre."""
    return np.array(list(islice(chain(some, centre, np.random.default_rng(0)), count)))


def evidence(n: int = 25, seed: int = 0, extra: float = 0.0) -> HyperparameterDensity:
    """Gains that depend on the first of two numbers and, less, on a category of three."""
    generator = np.random.default_rng(seed)
    numbers, category = generator.random((n, 2)), generator.integers(0, 3, n)
    gains = np.sin(6 * numbers[:, 0]) + 0.2 * category + 0.01 * generator.normal(size=n)
    E = np.hstack([numbers, np.eye(3)[category] * np.sqrt(0.5)])
    e = generator.exponential(0.2, n) * extra
    return HyperparameterDensity(E, standardise(gains), generator.uniform(0.5, 2, n), OWNER, e)


def prior(theta: Floats) -> float:
    w, scale, noise = np.exp(theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
    return float(sum(-0.1 / w - 0.1 * w) + np.log(scale) - scale + 0.1 * np.log(noise) - 30 * noise)


@pytest.mark.parametrize("extra", [0.0, 1.0])
def test_value_is_the_normal_density_times_the_prior(extra: float) -> None:
    some = evidence(extra=extra)
    theta = np.array([0.3, -1.0, 0.7, 0.2, -3.0])
    posterior = Posterior.of(some.E, some.y, some.v, Hyperparameters.from_log(theta), some.axis_of_column, some.e)
    K = posterior.L @ posterior.L.T
    expected = multivariate_normal(np.zeros(len(K)), K).logpdf(some.y) + len(K) / 2 * np.log(2 * np.pi) + prior(theta)
    assert some.value(theta) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("seed", "extra"),
    [(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0), (4, 5.0)],
)
def test_gradient_matches_central_differences(seed: int, extra: float) -> None:
    some = evidence(seed=seed, extra=extra)
    theta = np.random.default_rng(seed).normal(size=5) * 0.8 - np.array([0, 0, 0, 0, 3.0])
    value, gradient = some.value_and_gradient(theta)
    assert value == pytest.approx(some.value(theta), rel=1e-12)
    check_gradient(
        lambda rows: np.array([some.value(rows[0])]), gradient[None], theta[None], 1e-5, rtol=1e-6, atol=1e-6
    )


def test_most_probable_is_a_maximum() -> None:
    some = evidence()
    theta = maximum_a_posteriori(some)
    _, gradient = some.value_and_gradient(theta)
    inside = (theta > some.bounds()[:, 0] + 1e-6) & (theta < some.bounds()[:, 1] - 1e-6)
    assert np.abs(gradient[inside]).max() < 0.1
    trials = np.random.default_rng(0).normal(size=(100, 5)) * 0.5 + theta
    assert max(some.value(np.clip(t, *some.bounds().T)) for t in trials) <= some.value(theta) + 1e-2


def test_the_axis_that_matters_gets_the_short_length_scale() -> None:
    theta = maximum_a_posteriori(evidence(60))
    assert theta[0] > theta[1] + 1


@pytest.mark.parametrize("gains", [[0.3], [0.5, 0.5, 0.5], [1.0, 2.0]])
def test_few_or_equal_gains_give_finite_hyperparameters(gains: list[float]) -> None:
    E = np.random.default_rng(0).random((len(gains), 2))
    assert np.isfinite(FittedTrials(E, np.array(gains), np.ones(len(gains)), np.arange(2)).fit()).all()


def test_samples_are_distributed_as_the_density() -> None:
    """After one trial with gain 0, whose density is 1 / sqrt(scale + noise), sums over a grid give the moments."""
    some = HyperparameterDensity(np.zeros((1, 1)), np.zeros(1), np.ones(1), np.array([0]))
    drawn = taken(some, np.array([0.0, 0.0, -3.0]), 6000)
    grids = [np.linspace(low, high, 301) for low, high in some.bounds()]
    scale, noise = np.meshgrid(np.exp(grids[1]), np.exp(grids[2]), indexing="ij")
    both = scale * np.exp(-scale) * noise**0.1 * np.exp(-30 * noise) / np.sqrt(scale + noise)
    densities = [np.exp(-0.1 * (np.exp(-grids[0]) + np.exp(grids[0]))), both.sum(axis=1), both.sum(axis=0)]
    for k, (grid, density) in enumerate(zip(grids, densities, strict=True)):
        density = density / density.sum()
        mean = density @ grid
        sd = np.sqrt(density @ (grid - mean) ** 2)
        # draws are correlated: 300 independent ones among 6000 is a low guess; five standard errors
        assert drawn[:, k].mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(300))
        assert drawn[:, k].std() == pytest.approx(sd, rel=5 / np.sqrt(2 * 300))


def test_samples_of_a_fit_are_spread_and_the_same_after_the_cache_is_empty() -> None:
    generator = np.random.default_rng(0)
    E, axes = generator.random((30, 6)), np.arange(6)
    gains = -((E[:, :2] - 0.4) ** 2).sum(axis=1)
    known = FittedTrials(E, gains, np.ones(30), axes).samples()
    assert known.shape == (SAMPLES, 8) and len(np.unique(known, axis=0)) == SAMPLES
    whole = taken(HyperparameterDensity(E, standardise(gains), np.ones(30), axes), known[0], 3000)
    assert 0.5 < np.median(known.std(axis=0) / whole.std(axis=0)) < 1.5
    hyperparameters._samples.cache_clear()
    hyperparameters._maximum.cache_clear()
    assert np.array_equal(FittedTrials(E, gains, np.ones(30), axes).samples(), known)


def test_samples_stay_in_the_box_and_leave_their_start_alone() -> None:
    some, start = evidence(8), np.zeros(5)
    drawn = taken(some, start, 20)
    assert (drawn >= some.bounds()[:, 0]).all() and (drawn <= some.bounds()[:, 1]).all()
    assert (start == 0).all() and len(np.unique(drawn, axis=0)) == 20


@pytest.mark.parametrize(
    ("first", "last", "fewest", "most"),
    [(MAX_FITTED_TRIALS, MAX_FITTED_TRIALS + 40, 2, 4), (5, 60, 20, 29)],  # each of the first twelve, then by a tenth
)
def test_fit_depends_on_the_trials_alone_and_is_renewed_every_few(
    first: int, last: int, fewest: int, most: int
) -> None:
    E = np.random.default_rng(0).random((last, 2))
    gains, v, axis_of_column = -((E - 0.4) ** 2).sum(axis=1), np.ones(last), np.arange(2)
    thetas = [FittedTrials(E[:k], gains[:k], v[:k], axis_of_column).fit().tolist() for k in range(first, last + 1)]
    assert fewest <= len({tuple(theta) for theta in thetas}) <= most
    hyperparameters._maximum.cache_clear()
    assert FittedTrials(E, gains, v, axis_of_column).fit().tolist() == thetas[-1]


def test_extra_noise_is_absolute_in_units_of_the_gains() -> None:
    generator = np.random.default_rng(0)
    E, axis_of_column = generator.random((30, 2)), np.arange(2)
    gains = np.sin(6 * E[:, 0])
    extra = np.where(np.arange(30) % 3 == 0, 0.04, 0.0)
    gains = gains + np.sqrt(extra) * generator.standard_normal(30)
    fitted = FittedTrials(E, gains, np.ones(30), axis_of_column, extra=extra).fit()
    scaled = FittedTrials(E, 1000 * gains, np.ones(30), axis_of_column, extra=1e6 * extra).fit()
    np.testing.assert_allclose(fitted, scaled, atol=1e-3)
    unknown = FittedTrials(E, gains, np.ones(30), axis_of_column).fit()
    assert fitted[-1] < unknown[-1] - 1  # what is known of some is not blamed on all
    assert FittedTrials(E, gains, np.ones(30), axis_of_column, extra=0.0 * extra).fit().tolist() == unknown.tolist()
