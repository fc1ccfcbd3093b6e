import numpy as np
import pytest
from scipy.special import gamma, kv

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.gp.posterior import (
    MAX_COMPRESSED_LOSS,
    Hyperparameters,
    Posterior,
    cholesky,
    compress_losers,
    frequencies,
    matern52,
    matern52_with_slope,
    scale_signed,
    squared_distances,
    standard_deviation,
    standardise,
)
from tests.support.gp_samples import OWNER, check_gradient, embedded
from tests.support.gp_samples import covariance as covariance_of

WEIGHTS = np.array([0.5, 4.0, 1.5])
HYPERPARAMETERS = Hyperparameters(WEIGHTS, 1.7, 0.03)


def mixed(n: int, seed: int) -> tuple[Floats, Ints]:
    """Embedded rows, and the owners of the columns."""
    return embedded(n, seed), OWNER


def brute_force_kernel(A: Floats, B: Floats) -> Floats:
    """scale * Matern 5/2 with Hamming distance, pair by pair."""
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            differs = float(np.argmax(a[2:]) != np.argmax(b[2:]))
            r = np.sqrt(5 * (WEIGHTS[0] * (a[0] - b[0]) ** 2 + WEIGHTS[1] * (a[1] - b[1]) ** 2 + WEIGHTS[2] * differs))
            K[i, j] = 1.7 * (1 + r + r * r / 3) * np.exp(-r)
    return K


@pytest.mark.parametrize(("n", "extra"), [(15, 0.0), (15, 0.5), (1, 0.0)])
def test_posterior_is_the_dense_formula(n: int, extra: float) -> None:
    E, axis_of_column = mixed(n, 0)
    asked, _ = mixed(8, 1)
    generator = np.random.default_rng(2)
    y, v, e = generator.normal(size=n), generator.uniform(0.2, 5, n), extra * generator.exponential(1.0, n)
    posterior = Posterior.of(E, y, v, HYPERPARAMETERS, axis_of_column, e)
    inverse = np.linalg.inv(brute_force_kernel(E, E) + np.diag(0.03 * v + e))
    cross = brute_force_kernel(asked, E)
    covariance = brute_force_kernel(asked, asked) - cross @ inverse @ cross.T
    mean, variance = posterior.mean_and_variance(asked)
    np.testing.assert_allclose(mean, cross @ inverse @ y, atol=1e-10)
    np.testing.assert_allclose(posterior.mean(asked), mean, atol=1e-14)
    np.testing.assert_allclose(variance, np.diag(covariance), atol=1e-10)
    np.testing.assert_allclose(covariance_of(posterior, asked), covariance, atol=1e-10)


def test_believing_is_observing_what_is_expected() -> None:
    E, axis_of_column = mixed(10, 0)
    pending, asked = mixed(3, 1)[0], mixed(6, 2)[0]
    generator = np.random.default_rng(0)
    y, v, e = generator.normal(size=10), generator.uniform(0.5, 2, 10), generator.exponential(0.1, 10)
    before = Posterior.of(E, y, v, HYPERPARAMETERS, axis_of_column, e)
    rows, observed = np.vstack([E, pending]), np.concatenate([y, before.mean(pending)])
    after = Posterior.of(
        rows, observed, np.append(v, np.ones(3)), HYPERPARAMETERS, axis_of_column, np.append(e, np.zeros(3))
    )
    with_fantasies = before.with_fantasies(pending)
    np.testing.assert_allclose(with_fantasies.mean_and_variance(asked), after.mean_and_variance(asked), atol=1e-12)
    np.testing.assert_allclose(with_fantasies.y, observed)
    assert before.with_fantasies(pending[:0]) is before


def test_duplicates_and_almost_duplicates_without_noise() -> None:
    E = np.repeat(np.random.default_rng(0).random((5, 2)), 4, axis=0)
    E[1] += 1e-12
    posterior = Posterior.of(E, np.ones(20), np.ones(20), Hyperparameters(np.ones(2), 1.0, 0.0), np.arange(2))
    mean, variance = posterior.mean_and_variance(E)
    np.testing.assert_allclose(mean, 1.0, atol=1e-3)
    assert np.isfinite(variance).all()


def test_slope_of_the_covariance_matches_central_differences() -> None:
    E, axis_of_column = mixed(6, 0)
    posterior = Posterior.of(E, np.zeros(6), np.ones(6), HYPERPARAMETERS, axis_of_column)
    asked = mixed(3, 3)[0]
    value, slope = posterior.cross_and_slope(asked)
    np.testing.assert_allclose(value, posterior.cross(asked), atol=1e-14)
    u = np.random.default_rng(0).normal(size=(3, 6))
    gradients = posterior.gradients(asked, u * slope)
    check_gradient(lambda rows: (posterior.cross(rows) * u).sum(axis=1), gradients, asked, 1e-6, atol=1e-8)


def test_cholesky_adds_jitter_only_where_it_must() -> None:
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(cholesky(good) @ cholesky(good).T, good, rtol=1e-15)
    singular = np.ones((3, 3))
    np.testing.assert_allclose(np.tril(cholesky(singular)) @ np.tril(cholesky(singular)).T, singular, atol=1e-9)


class TestStandardised:
    def test_what_is_bad_is_pulled_in_and_stays_in_order(self) -> None:
        gains = np.array([0.0, 1.0, 2.0, 3.0, 4.0, -1e9, -5.0])
        median, unit = 1.0, 3.0
        pulled = compress_losers(gains)
        assert pulled[1:5].tolist() == gains[1:5].tolist()
        assert pulled[0] == pytest.approx(median - unit * np.log1p(1 / unit)) and pulled[0] > 0
        assert pulled[5] == pytest.approx(median - unit * MAX_COMPRESSED_LOSS) and pulled[5] < pulled[6] < pulled[0]
        y = standardise(gains)
        assert y.mean() == pytest.approx(0) and y.std() == pytest.approx(1)
        np.testing.assert_allclose(y * standard_deviation(gains), pulled - pulled.mean())

    def test_gains_about_zero_keep_their_sign(self) -> None:
        gains = np.array([-1e300, -2.0, 0.0, 1.0, 50.0])
        y = scale_signed(gains)
        assert np.sign(y).tolist() == np.sign(gains).tolist() and (np.diff(y) > 0).all() and np.isfinite(y).all()
        assert scale_signed(np.zeros(3)).tolist() == [0.0] * 3
        np.testing.assert_allclose(scale_signed(7 * gains[1:]), scale_signed(gains[1:]))

    @pytest.mark.parametrize("huge", [1e3, 1e300, np.inf])
    def test_a_huge_value_of_a_constraint_hides_no_others(self, huge: float) -> None:
        gains = np.array([-2.0, -1.0, 0.5, 1.0, 2.0])
        y = scale_signed(np.append(gains, [huge, -huge]))
        np.testing.assert_allclose(y[:-2], np.arcsinh(gains), rtol=1.0)
        assert y[:-2].max() < y[-2] <= 3.0 and -3.0 <= y[-1] < y[:-2].min()
        assert np.sign(scale_signed(np.array([huge, -huge]))).tolist() == [1.0, -1.0]

    @pytest.mark.parametrize("unit", [1e-300, 1e-14, 1e-3, 1e14, 1e300])
    def test_standard_gains_do_not_depend_on_their_unit(self, unit: float) -> None:
        gains = np.random.default_rng(0).standard_normal(20)
        np.testing.assert_allclose(standardise(unit * (gains - 30.0)), standardise(gains), rtol=1e-6)
        assert standard_deviation(unit * gains) == pytest.approx(unit * standard_deviation(gains), rel=1e-6)

    @pytest.mark.parametrize("constant", [0.0, 0.7, -1e12, 1e300])
    def test_equal_gains_are_zeros(self, constant: float) -> None:
        assert standardise(np.full(7, constant)).tolist() == [0.0] * 7

    def test_huge_gains_do_not_overflow(self) -> None:
        y = standardise(np.array([1e308, -1e308, 0.0]))
        assert np.isfinite(y).all() and y[0] > y[2] > y[1]
        assert np.isfinite(standardise(np.array([-1e308, 0.25, 0.5, 0.75]))).all()


def test_squared_distances_are_sums_of_squares() -> None:
    generator = np.random.default_rng(0)
    A, B = generator.normal(size=(5, 3)), generator.normal(size=(4, 3))
    expected = [[sum((a - b) ** 2) for b in B] for a in A]
    np.testing.assert_allclose(squared_distances(A, B), expected, rtol=1e-12)


def test_distance_to_itself_is_never_negative() -> None:
    A = np.random.default_rng(0).normal(size=(50, 7)) * 1e3
    assert squared_distances(A, A).min() >= 0


def test_matern_is_the_general_formula_with_the_bessel_function() -> None:
    r = np.linspace(0.05, 6, 40)
    z = np.sqrt(5) * r
    np.testing.assert_allclose(matern52(r * r), 2 ** (1 - 2.5) / gamma(2.5) * z**2.5 * kv(2.5, z), rtol=1e-10)


def test_slope_matches_central_differences_and_is_finite_at_zero() -> None:
    s, h = np.linspace(0.01, 9, 30), 1e-6
    value, slope = matern52_with_slope(s)
    np.testing.assert_allclose(slope, (matern52(s + h) - matern52(s - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(value, matern52(s), rtol=1e-15)
    assert matern52_with_slope(np.zeros(1))[1][0] == pytest.approx(-5 / 6)


def test_random_features_approximate_the_kernel() -> None:
    generator = np.random.default_rng(0)
    X = generator.random((12, 3)) * 2
    count = 40_000
    phases = X @ frequencies(count, 3, generator).T
    features = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(count)
    # An entry is a mean of count cosines, each in [-1, 1]: 5 standard errors, at most 5 / sqrt(count)
    np.testing.assert_allclose(features @ features.T, matern52(squared_distances(X, X)), atol=5 / np.sqrt(count))
