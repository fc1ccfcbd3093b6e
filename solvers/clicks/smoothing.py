"""Smoothing of examination over positions: what few clicks tell of a position is drawn to a curve through all.

    log examination = curve(log position) + deviation,    curve(0) = 0 at the first position

The curve is a polynomial, and the deviations have a variance that the log tells: where positions deviate by more than
their errors, as at the end of a page, they are hardly drawn. Source: Searle, Casella & McCulloch 1992, "Variance
Components", restricted maximum likelihood and best linear unbiased prediction.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from ranktune.solvers.core.arrays import Floats

DEGREE = 3
LIMITS = (1e-6, 10.0)
"""Of the variance of the deviations."""


def smoothed(position: Floats, values: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the smooth values, (n,), and the information that the curve adds to that on their logarithms, (n, n).

    position    (n,) relative to the first, which is not among them
    values      (n,) examination, above 0, and its covariance, (n, n)
    """
    n, degree = len(values), min(DEGREE, len(values) - 2)
    if degree < 1:
        return values, np.zeros((n, n))
    X = np.log(position)[:, None] ** np.arange(1, degree + 1)
    X = np.linalg.qr(X)[0]
    y, V = np.log(values), covariance / np.outer(values, values)

    def loss(log_variance: float) -> float:
        spread = cho_factor(V + np.exp(log_variance) * np.eye(n), lower=True)
        inner = X.T @ cho_solve(spread, X)
        rest = y - X @ np.linalg.solve(inner, X.T @ cho_solve(spread, y))
        determinants = 2.0 * np.log(np.diag(spread[0])).sum() + np.linalg.slogdet(inner)[1]
        return float(determinants + rest @ cho_solve(spread, rest))

    variance = np.exp(minimize_scalar(loss, bounds=np.log(LIMITS), method="bounded").x)
    added = (np.eye(n) - X @ X.T) / variance
    # (V^-1 + added)^-1 V^-1 y without the inverse of V
    return np.exp(np.linalg.solve(np.eye(n) + V @ added, y)), added
