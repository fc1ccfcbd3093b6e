"""Minimising a RankSVM's objective from coarse to fine: the optimum of a sample, then steps on all documents.

The sample's optimum lies close to that of all documents, and the sample's Hessian close to theirs: on many documents
both together leave two or three evaluations of gradient to do, at a tenth of what Newton's method from zero costs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers.newton import NewtonPoint, Secant, minimise
from ranktune.solvers.optimizers.rank_svm.curvature import (
    DENSE_FEATURES,
    SHRINKAGE,
    DiagonalHessian,
    SampledHessian,
    is_correlated,
)
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective

SAMPLE_TOLERANCE = 2e-2
"""How far the gradient of the sample is reduced: its optimum is no nearer to the optimum of all."""


FORCING = 0.3
"""How roughly Newton's equations are solved with a rough preconditioner: the active pairs change so much from step
to step that closer solutions are wasted.
"""


class Descent:
    """An objective with what minimising it needs besides: its gradient at zero, a sample, a preconditioner.

    All of it serves any C, so that a path of them is followed with one of these.
    """

    def __init__(self, objective: HingeObjective) -> None:
        self.objective = objective
        self._at_zero: tuple[float, Floats] | None = None
        self.preconditioner: SampledHessian | DiagonalHessian
        self.sample = SampledObjective.of(objective)
        if objective.n_features <= DENSE_FEATURES:
            self.preconditioner = SampledHessian(self.sample or (lambda: objective), whole=self.sample is None)
        elif self.sample is not None and is_correlated(self.sample()):
            self.preconditioner = SampledHessian(self.sample, whole=False, shrinkage=SHRINKAGE)
        else:
            self.sample, self.preconditioner = None, DiagonalHessian(objective)

    @property
    def is_sampled(self) -> bool:
        """Whether the optimum of a sample is close to that of the objective."""
        return self.sample is not None and self.preconditioner.sharp

    @property
    def at_zero(self) -> tuple[float, Floats]:
        """The loss of the objective and its gradient at zero weights, for C = 1."""
        if self._at_zero is None:
            self._at_zero = self.objective.loss_at_zero(self.objective.executor)
        return self._at_zero

    def set_strength(self, C: float) -> None:
        """Make C that of the objective and of all that stands for it."""
        self.objective.C = C
        if self.sample is not None:
            self.sample().C = C
        self.preconditioner.set_strength(C)

    def start(self) -> NewtonPoint:
        """Return where to begin with nothing known: the optimum of the sample, or zero. It is evaluated."""
        objective = self.objective
        if self.sample is not None and self.is_sampled:
            weights = self._solve_sample(self.sample())
            if isinstance(self.preconditioner, SampledHessian):
                self.preconditioner.form()
            self.sample.let_go()
            point = NewtonPoint(weights, *objective.value_and_gradient(weights))
            if point.value <= objective.C * self.at_zero[0]:  # otherwise the sample misleads
                return point
        objective.rank_at_zero()
        value, gradient = self.at_zero
        zero = np.zeros(objective.n_features)
        return NewtonPoint(zero, objective.C * value, objective.C * gradient, objective.image(zero))

    def _solve_sample(self, sample: HingeObjective) -> Floats:
        """Return the optimum of a sample. Meanwhile another thread, if there is one, evaluates zero weights."""
        objective = self.objective
        later = None if objective.executor is None else objective.executor.submit(objective.loss_at_zero)
        weights = np.zeros(objective.n_features)
        descent = Descent(sample)
        for point, _ in descent.steps(descent.start(), tolerance=SAMPLE_TOLERANCE, max_iterations=50):
            weights = point.weights
        if later is not None:
            self._at_zero = later.result()
        return weights

    def resume(self, weights: Floats) -> NewtonPoint:
        """Return the point at weights, evaluated, with the sample evaluated there too."""
        self.renew(weights)
        image = self.objective.image(weights)
        return NewtonPoint(weights, *self.objective.value_and_gradient(weights, image), image)

    def renew(self, weights: Floats) -> None:
        """Have the preconditioner formed again at weights, where the objective was evaluated last or will be next."""
        if self.sample is not None:
            self.sample().value_and_gradient(weights)
        self.preconditioner.forget()

    @property
    def reference(self) -> float:
        """The norm of the gradient at zero weights."""
        return self.objective.C * float(np.linalg.norm(self.at_zero[1]))

    def steps(
        self, point: NewtonPoint, *, tolerance: float, max_iterations: int, secant: Secant | None = None
    ) -> Iterator[tuple[NewtonPoint, Step]]:
        """Yield points and records from point on, until |g| / |g at zero| is at most tolerance.

        secant is what is known of the Hessian.
        """
        return minimise(
            self.objective,
            point,
            self.preconditioner,
            reference=self.reference,
            tolerance=tolerance,
            max_iterations=max_iterations,
            forcing=FORCING if self.objective.n_features > DENSE_FEATURES else 0.1,
            secant=secant,
        )


class SampledObjective:
    """The sample of an objective. Let go while nothing needs it, it is drawn again, the same, when something does."""

    def __init__(self, whole: HingeObjective, first: HingeObjective) -> None:
        self._whole = whole
        self._kept: HingeObjective | None = first

    @classmethod
    def of(cls, objective: HingeObjective) -> SampledObjective | None:
        """Return the sample of objective, None where that saves little."""
        first = objective.sample()
        return None if first is None else cls(objective, first)

    def __call__(self) -> HingeObjective:
        """Return the sample as an objective."""
        if self._kept is None:
            self._kept = self._whole.sample()
        assert self._kept is not None
        return self._kept

    def let_go(self) -> None:
        """Free the memory of the sample."""
        self._kept = None
