from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import Matern

from ranktune.tuner.gp.posterior import frequencies, matern52, matern52_with_slope, squared_distances


def test_squared_distances_are_sums_of_squares() -> None:
    generator = np.random.default_rng(0)
    A, B = generator.normal(size=(5, 3)), generator.normal(size=(4, 3))
    expected = [[sum((a - b) ** 2) for b in B] for a in A]
    np.testing.assert_allclose(squared_distances(A, B), expected, rtol=1e-12)


def test_distance_to_itself_is_never_negative() -> None:
    A = np.random.default_rng(0).normal(size=(50, 7)) * 1e3
    assert squared_distances(A, A).min() >= 0


def test_matern_at_distance_one() -> None:
    assert matern52(np.array([1.0]))[0] == pytest.approx((1 + sqrt(5) + 5 / 3) * exp(-sqrt(5)), rel=1e-14)


def test_matern_is_the_general_formula_with_the_bessel_function() -> None:
    r = np.linspace(0.05, 6, 40)
    z = np.sqrt(5) * r
    np.testing.assert_allclose(matern52(r * r), 2 ** (1 - 2.5) / gamma(2.5) * z**2.5 * kv(2.5, z), rtol=1e-10)


def test_matern_agrees_with_scikit_learn() -> None:
    X = np.random.default_rng(0).random((20, 4))
    scales = np.array([0.3, 1.0, 2.0, 0.7])
    np.testing.assert_allclose(
        matern52(squared_distances(X / scales, X / scales)), Matern(length_scale=scales, nu=2.5)(X), atol=1e-12
    )


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
