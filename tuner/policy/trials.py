"""Which trials of a solver may replace the first configuration that was tried of it.

That configuration is good on many other tasks. The maximum of many noisy scores is mostly noise where queries are few,
so a trial replaces it only where its mean difference over queries is larger than its standard error. With many queries
that is soon so, with few only for a large difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.statistics.intervals import paired

AHEAD = 1.0
"""Standard errors of the paired difference by which a trial must be ahead."""


def ahead(first: Floats, others: Sequence[Floats], weights: Floats | None = None, errors: float = AHEAD) -> list[int]:
    """Return the places of the trials that are ahead of the first configuration, the highest mean first.

    Parameters
    ----------
    first : array of shape (n_queries,)
        What the first configuration scored by validation query.
    others : sequence of array of shape (n_queries,)
        The same of the other trials.
    weights : array of shape (n_queries,), optional
        Weights of the queries.
    errors : float
        Standard errors by which a trial must be ahead; infinity for none.
    """
    differences = [paired(values, first, weights) for values in others]
    places = [place for place, (difference, error) in enumerate(differences) if difference > errors * error]
    return sorted(places, key=lambda place: -differences[place][0])
