"""Truncated Newton on objectives whose minimum is known."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from ranktune.solvers.optimizers.newton import NewtonPoint, Secant, conjugate_gradients, minimise


class Quadratic:
    """1/2 w'Aw - b'w."""

    def __init__(self, A: Any, b: Any) -> None:
        self.A, self.b, self.products = A, b, 0

    def value_and_gradient(self, w: Any, image: Any = None) -> tuple[float, Any]:
        return float(0.5 * w @ self.A @ w - self.b @ w), self.A @ w - self.b

    def product_and_image(self, v: Any) -> Any:
        self.products += 1
        return self.A @ v, None


class SoftPlus(Quadratic):
    """sum of log(1 + exp(s)) - s / 3 for s = A w: full Newton steps from far away overshoot."""

    def value_and_gradient(self, w: Any, image: Any = None) -> tuple[float, Any]:
        s = self.A @ w
        self.p = expit(s)
        return float(np.logaddexp(0, s).sum() - s.sum() / 3), self.A.T @ (self.p - 1 / 3)

    def product_and_image(self, v: Any) -> Any:
        return self.A.T @ ((self.p * (1 - self.p)) * (self.A @ v)), None


class Given:
    def __init__(self, inverse: Any, sharp: bool = False) -> None:
        self.inverse, self.sharp = inverse, sharp

    def solver(self, point: NewtonPoint) -> Any:
        return lambda r: self.inverse @ r


def positive_definite(seed: int, n: int, spread: float) -> Any:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    return q @ np.diag(np.geomspace(1.0, spread, n)) @ q.T


def run(objective: Any, start: Any, preconditioner: Any, tolerance: float = 1e-9, max_iterations: int = 100) -> Any:
    value, gradient = objective.value_and_gradient(start)
    point = NewtonPoint(start, value, gradient)
    return list(
        minimise(
            objective,
            point,
            preconditioner,
            reference=float(np.linalg.norm(gradient)),
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
    )


@pytest.mark.parametrize("sharp", [False, True])
def test_finds_the_minimum_of_a_quadratic_and_reports_each_step(sharp: bool) -> None:
    A, b = positive_definite(0, 12, 1e3), np.arange(12.0)
    rough = np.linalg.inv(A + 0.2 * np.diag(np.diag(A)))
    steps = run(Quadratic(A, b), np.zeros(12), Given(rough, sharp))
    np.testing.assert_allclose(steps[-1][0].weights, np.linalg.solve(A, b), rtol=1e-6)
    assert [step.iteration for _, step in steps] == list(range(len(steps)))
    assert (np.diff([step.objective for _, step in steps]) <= 1e-9).all()
    assert steps[0][1].violation == 1.0
    assert steps[-1][1].violation <= 1e-9 < steps[-2][1].violation


def test_steps_are_shortened_until_they_descend() -> None:
    objective = SoftPlus(np.array([[1.0, 0.0], [0.0, 2.0]]), np.zeros(2))
    steps = run(objective, np.array([6.0, 5.0]), Given(np.eye(2)))
    np.testing.assert_allclose(objective.A @ steps[-1][0].weights, np.full(2, -np.log(2)), rtol=1e-6)  # p = 1/3
    assert (np.diff([step.objective for _, step in steps]) <= 1e-12).all()


def test_a_matrix_that_is_called_sharp_but_is_not_gives_way_to_conjugate_gradients() -> None:
    A, b = positive_definite(1, 10, 1e4), np.ones(10)
    objective = Quadratic(A, b)
    steps = run(objective, np.zeros(10), Given(np.eye(10) / 1e4, sharp=True))
    assert objective.products > 0
    np.testing.assert_allclose(steps[-1][0].weights, np.linalg.solve(A, b), rtol=1e-6)


def test_a_sharp_matrix_needs_no_products() -> None:
    A = positive_definite(2, 10, 1e4)
    objective = Quadratic(A, np.ones(10))
    run(objective, np.zeros(10), Given(np.linalg.inv(A) * 1.05, sharp=True), tolerance=1e-8)
    assert objective.products == 0


def test_max_iterations_ends_the_search() -> None:
    steps = run(
        Quadratic(positive_definite(3, 20, 1e6), np.ones(20)), np.zeros(20), Given(np.eye(20)), max_iterations=2
    )
    assert steps[-1][1].iteration == 2
    assert steps[-1][1].violation > 1e-9


def test_a_start_at_the_minimum_takes_no_step() -> None:
    objective = Quadratic(np.eye(3), np.zeros(3))
    point = NewtonPoint(np.zeros(3), 0.0, np.zeros(3))
    steps = list(minimise(objective, point, Given(np.eye(3)), reference=0.0, tolerance=1e-3, max_iterations=9))
    assert [(step.iteration, step.violation) for _, step in steps] == [(0, 0.0)]


def test_conjugate_gradients_is_exact_after_as_many_products_as_distinct_eigenvalues() -> None:
    A = np.diag([1.0, 1.0, 5.0, 5.0, 9.0])
    b = np.arange(1.0, 6.0)
    solution, image, products = conjugate_gradients(lambda v: (A @ v, 2.0 * v), b, lambda r: r, 1e-12)
    np.testing.assert_allclose(solution, b / np.diag(A), rtol=1e-10)
    assert image is not None
    np.testing.assert_allclose(image, 2.0 * solution, rtol=1e-10)
    assert products == 3
    _, _, preconditioned = conjugate_gradients(lambda v: (A @ v, None), b, lambda r: r / np.diag(A), 1e-12)
    assert preconditioned == 1


def test_secant_pairs_of_all_directions_give_the_inverse_of_the_hessian() -> None:
    # BFGS with exact line searches would need conjugate steps; conjugate pairs give A^-1 exactly
    A = positive_definite(4, 5, 50.0)
    _, conjugate = np.linalg.eigh(A)
    secant = Secant()
    for direction in conjugate.T:
        secant.learn(direction, A @ direction)
    vector = np.arange(1.0, 6.0)
    np.testing.assert_allclose(secant.solve(vector, lambda r: 7.0 * r), np.linalg.solve(A, vector), rtol=1e-9)
