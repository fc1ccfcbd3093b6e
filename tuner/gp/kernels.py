"""The Matern 5/2 covariance with automatic relevance determination, and its random Fourier features.

E       (n, D) embedded configurations (ranktune.tuner.gp.encoding)
owner   (D,) the axis of each embedded column; the columns of a category share one lengthscale
w       (d,) inverse squared lengthscales;  s = sum over columns of w[owner] (e - e')^2, the squared distance
k       scale * (1 + sqrt(5 s) + 5 s / 3) exp(-sqrt(5 s))

Because a category is embedded as a simplex, s counts w for every category that differs (Hamming), and the kernel on
mixed spaces is a plain Matern kernel on the embedding: positive definite, with a known spectral density.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats


def squared_distances(A: Floats, B: Floats) -> Floats:
    """Return |a - b|^2, (n, m), of scaled rows A, (n, D), and B, (m, D).

    The expanded square loses about 1e-16 |a|^2, which the kernel, smooth in the squared distance, does not magnify.
    """
    squares = A @ B.T
    squares *= -2.0
    squares += np.einsum("ij,ij->i", A, A)[:, None]
    squares += np.einsum("ij,ij->i", B, B)
    return np.maximum(squares, 0.0, out=squares)


def matern52(squares: Floats) -> Floats:
    """Return the correlation at squared distances.

    Source: Rasmussen & Williams 2006, eq. 4.17.
    """
    root = np.sqrt(5.0 * squares)
    result = root * root
    result /= 3.0
    result += root
    result += 1.0
    np.negative(root, out=root)
    result *= np.exp(root, out=root)
    return result


def matern52_with_slope(squares: Floats) -> tuple[Floats, Floats]:
    """Return the correlation and its derivative by the squared distance, which is finite at zero."""
    root = np.sqrt(5.0 * squares)
    decay = np.exp(-root)
    return (1.0 + root + root * root / 3.0) * decay, (-5.0 / 6.0) * (1.0 + root) * decay


def frequencies(count: int, n_columns: int, generator: np.random.Generator) -> Floats:
    """Return draws from the spectral density of matern52, (count, n_columns): Student's t with 5 degrees of freedom.

    Source: Rasmussen & Williams 2006, eq. 4.15 (nu = 5/2); Rahimi & Recht 2007 for their use as features.
    """
    normal = generator.standard_normal((count, n_columns))
    return normal / np.sqrt(generator.chisquare(5.0, size=(count, 1)) / 5.0)
