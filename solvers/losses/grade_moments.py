"""What pointwise losses take from the grades of all documents: their weight, extremes and deviations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.metrics.gains import deciding


@dataclass(frozen=True, eq=False)
class GradeMoments:
    """Of the grades of documents, weighted.

    weight    of the documents          mean      of the grades
    squares   sum of squared deviations from the mean, and within from the mean of the query
    deciding  a few grades that have the extremes of all
    """

    weight: float
    mean: float
    squares: float
    within: float
    deciding: Floats

    @property
    def deviation(self) -> float:
        """The standard deviation of the grades."""
        return float(np.sqrt(self.squares / self.weight))

    @property
    def deviation_within_queries(self) -> float:
        """The standard deviation from the means of the queries."""
        return float(np.sqrt(self.within / self.weight))


def grade_moments(queries: Queries) -> GradeMoments:
    """Return the moments of the grades of queries."""
    weights, grades = queries.weight_of_document, queries.grades
    mean = float(np.average(grades, weights=weights))
    squares, within = (float(weights @ own**2) for own in (grades - mean, without_level(grades, queries)))
    return GradeMoments(float(weights.sum()), mean, squares, within, deciding(grades))


def joined_grades(parts: Sequence[GradeMoments]) -> GradeMoments:
    """Return the moments of the documents of all parts."""
    weights, means = np.array([part.weight for part in parts]), np.array([part.mean for part in parts])
    mean = float(weights @ means / weights.sum())
    squares = sum(part.squares for part in parts) + float(weights @ (means - mean) ** 2)
    extremes = deciding(np.concatenate([part.deciding for part in parts]))
    return GradeMoments(float(weights.sum()), mean, squares, sum(part.within for part in parts), extremes)
