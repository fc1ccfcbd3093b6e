"""Softmax cross entropy between the distributions that scores and grades put on a query's documents.

    loss = weighted mean over the queries with pairs of -sum_i p_i log softmax(s)_i,  p = softmax(gain(y) / temperature)

The top-one likelihood of ListNet. It is convex in the scores, and does not change when all scores of a query shift.
Queries of one document or one grade do not count. A document of weight x counts as x of them in both distributions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.checks import check_choice, check_positive
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.grades import copies_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.base import NO_GRADES, Composable, Evaluate
from ranktune.solvers.metrics.presets import GAINS

MAX_EXPONENT = 900.0
"""2 to a larger power, divided by a small temperature, would overflow."""


@dataclass(frozen=True)
class SoftmaxCrossEntropy(Composable):
    """The cross entropy between the softmax of a query's scores and that of its grades.

    Parameters
    ----------
    gain : {"linear", "exp2"}, default="linear"
        "linear" is the grade itself, "exp2" is 2^grade - 1; for any grades.
    temperature : float, default=1.0
        Gains are divided by it. Low values give all weight to the best documents of a query, high ones equal weight.

    References
    ----------
    Cao, Qin, Liu, Tsai & Li 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML, eq. 4.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import Queries, SoftmaxCrossEntropy
    >>> queries = Queries.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> value, gradient = SoftmaxCrossEntropy().value_and_gradient(np.zeros(3), queries)
    >>> round(value, 4), gradient.round(4).tolist()
    (1.0986, [0.2433, 0.0886, -0.3319])
    """

    gain: str = "linear"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_choice("gain", self.gain, GAINS)
        check_positive("temperature", self.temperature)

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,). Cost: one exponential a document."""
        return self.prepared(queries)(scores)

    def weight_of(self, queries: Queries) -> float:
        """Return the weight of the queries that count."""
        return float(self._targets(queries)[1].sum())

    def prepared(self, queries: Queries, others: Floats = NO_GRADES) -> Evaluate:
        """Return value_and_gradient on queries, with what depends on the grades alone computed once."""
        starts, copies = as_ints(queries.starts), copies_of(queries)
        target, weights = self._targets(queries)

        def evaluate(scores: Floats) -> tuple[float, Floats]:
            slope = np.empty(len(target))
            value = _mean_cross_entropies(as_floats(scores), target, starts, copies, weights, slope)
            return value, slope

        return evaluate

    def _targets(self, queries: Queries) -> tuple[Floats, Floats]:
        """Return the target of each document, (n_documents,), and the weight of each query, 0 if it does not count."""
        gains = queries.grades if self.gain == "linear" else _doubled(queries)
        target, weights = gains / self.temperature, np.array(queries.weight_of_query)
        _targets(target, as_ints(queries.starts), copies_of(queries), weights)
        return target, weights


def _doubled(queries: Queries) -> Floats:
    """Return 2^grade - 1, (n_documents,).

    Where a query has grades above MAX_EXPONENT, all of its exponents are lowered alike. Its softmax is then still 0 but
    for the highest grade, as that of the gains.
    """
    highest = np.maximum.reduceat(queries.grades, queries.starts[:-1])
    above = np.maximum(highest - MAX_EXPONENT, 0.0)
    gains: Floats = np.exp2(queries.grades - np.repeat(above, queries.lengths)) - 1.0
    return gains


@compiled
def _targets(values: Floats, starts: Ints, copies: Floats, weights: Floats) -> None:
    """Overwrite values by their softmax within each query, and weights by 0 where all values are equal.

    A document counts as often as copies, (n_documents,), says, which is empty where each counts once.
    """
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        high, low = values[a], values[a]
        for i in range(a, b):
            high, low = max(high, values[i]), min(low, values[i])
        if high == low:
            weights[q] = 0.0
        total = 0.0
        for i in range(a, b):
            values[i] = np.exp(values[i] - high) * (copies[i] if len(copies) > 0 else 1.0)
            total += values[i]
        for i in range(a, b):
            values[i] /= total


@compiled
def _mean_cross_entropies(
    scores: Floats, target: Floats, starts: Ints, copies: Floats, weights: Floats, slope: Floats
) -> float:
    """Return the weighted mean of the queries' cross entropies, and overwrite slope with its derivative by score."""
    total, count = 0.0, 0.0
    for q in range(len(starts) - 1):
        count += weights[q]
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        if weights[q] == 0.0:
            slope[a:b] = 0.0
            continue
        high = scores[a]
        for i in range(a, b):
            high = max(high, scores[i])
        mass, inner = 0.0, 0.0
        for i in range(a, b):
            slope[i] = np.exp(scores[i] - high) * (copies[i] if len(copies) > 0 else 1.0)
            mass += slope[i]
            inner += target[i] * (scores[i] - high)
        share = weights[q] / count
        total += share * (np.log(mass) - inner)
        for i in range(a, b):
            slope[i] = share * (slope[i] / mass - target[i])
    return total
