"""The part of a pass over X between its two products, for a block of queries: scores to slopes, and back again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.losses.order_statistics import ActivePairs
from ranktune.solvers.losses.order_statistics_kernels import Judged, Windows


class Hinges:
    """The squared hinges that a loss is the sum of, for the queries first to last - 1, which one thread works on.

    windows are those of all documents, one of each hinge; adjacent: only adjacent grades make pairs. terms are the
    margin and the factor of each hinge. Scores and other vectors are of all documents; only those of the block count.
    """

    def __init__(self, judged: Judged, first: int, last: int, adjacent: bool, windows: Sequence[Windows]) -> None:
        a, b = int(judged.starts[first]), int(judged.starts[last])
        self._documents = slice(a, b)
        self._pairs = ActivePairs(judged.part(first, last), adjacent)
        self._windows = [own.part(a, b) for own in windows]

    def slopes(self, terms: Sequence[tuple[float, float]], scores: Floats, losses: Floats) -> None:
        """Turn scores into slopes, and overwrite losses, (n_terms, 2).

        With one term of factor 1 the slopes of the windows may lie where the scores are.
        """
        by_document = scores[self._documents]
        for t, ((margin, _), windows) in enumerate(zip(terms, self._windows, strict=True)):
            losses[t] = self._pairs.evaluate(by_document, margin, windows)
        if len(terms) > 1:
            _add_up(terms, [windows.slope for windows in self._windows], by_document)

    def curvatures(self, terms: Sequence[tuple[float, float]], by_document: Floats, out: Floats) -> None:
        """Overwrite out with the second derivative of the loss by score times by_document, which may be out."""
        given, result = by_document[self._documents], out[self._documents]
        if len(terms) == 1:
            self._pairs.multiply(given, self._windows[0], result)
            return
        products = np.empty((len(terms), len(given)))
        for windows, product in zip(self._windows, products, strict=True):
            self._pairs.multiply(given, windows, product)
        _add_up(terms, products, result)


def _add_up(terms: Sequence[tuple[float, float]], parts: Sequence[Floats] | Floats, out: Floats) -> None:
    """Overwrite out with the sum of the parts by the factors of the terms."""
    np.multiply(parts[0], terms[0][1], out=out)
    for (_, factor), part in zip(terms[1:], parts[1:], strict=True):
        out += factor * part
