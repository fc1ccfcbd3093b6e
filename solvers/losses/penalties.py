"""Penalties on the size of weights: L1, L2 and their sum, the elastic net."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.parameters import Param, part

STRENGTH = Param("At least 0.", check=check_not_negative)


class Penalty:
    """A penalty of weights, which its strengths define."""

    @property
    def strengths(self) -> tuple[float, float]:
        """(l1, l2) of ``l1 sum |w| + l2 / 2 sum w^2``."""
        raise NotImplementedError

    def value(self, weights: Floats) -> float:
        """Return ``l1 sum |w| + l2 / 2 sum w^2``.

        Parameters
        ----------
        weights : ndarray of shape (n_features,)
            The weights on the scaled features.

        Returns
        -------
        float
            The penalty.
        """
        l1, l2 = self.strengths
        return l1 * float(np.abs(weights).sum()) + 0.5 * l2 * float(weights @ weights)


@part
class _Single(Penalty):
    """A penalty of one strength: l1 or l2, as name says."""

    name: ClassVar[str]
    strength: Annotated[float, STRENGTH]

    @property
    def strengths(self) -> tuple[float, float]:
        """(l1, l2), of which one is 0."""
        return (float(self.strength), 0.0) if self.name == "l1" else (0.0, float(self.strength))


@part
class L1(_Single):
    """The penalty ``strength * sum |w|``, which makes weights exactly zero.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import L1
    >>> L1(0.5).value(np.array([1.0, -2.0, 0.0]))
    1.5
    """

    name: ClassVar[str] = "l1"

    def truncate(self, weights: Floats, step: float, threshold: float) -> Floats:
        """Return weights, those of size threshold or less moved towards zero by step * strength.

        References
        ----------
        Langford, Li & Zhang 2009, "Sparse Online Learning via Truncated Gradient", JMLR 10, eq. 4.
        """
        shrunk = np.sign(weights) * np.maximum(np.abs(weights) - step * self.strength, 0.0)
        return np.where(np.abs(weights) <= threshold, shrunk, weights)


@part
class L2(_Single):
    """The penalty strength / 2 * sum w^2, which keeps weights small and makes none zero.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import L2
    >>> L2(0.5).value(np.array([1.0, -2.0, 0.0]))
    1.25
    """

    name: ClassVar[str] = "l2"

    def gradient(self, weights: Floats) -> Floats:
        """Return strength * w."""
        return self.strength * weights


@part
class ElasticNet(Penalty):
    """The penalty ``l1 * sum |w| + l2 / 2 * sum w^2``: few weights, similar ones for correlated features.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import ElasticNet
    >>> ElasticNet(0.5, 0.5).value(np.array([1.0, -2.0, 0.0]))
    2.75
    """

    l1: Annotated[float, STRENGTH]
    l2: Annotated[float, STRENGTH]

    @property
    def strengths(self) -> tuple[float, float]:
        """(l1, l2)."""
        return float(self.l1), float(self.l2)
