"""The part of a pass over X between its two products, for a block of queries, and for dense rows the whole pass.

In one call, threads do not wait for the interpreter between its parts. first to last - 1 are the queries of a block.
With one term of factor 1 the slopes may lie where the scores are. out is added to; all others are overwritten.
"""

from __future__ import annotations

from typing import NamedTuple

from ranktune.solvers.core.arrays import Floats, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import add_dense_transposed, dense_times
from ranktune.solvers.losses.order_statistics import Judged, Windows, evaluate, multiply, windows_of


class Hinges(NamedTuple):
    """The squared hinges that a loss is the sum of: terms, (n_terms, 2), has the margin and the factor of each.

    windows has a row a term (notation: order_statistics); adjacent: only adjacent grades make pairs.
    """

    judged: Judged
    adjacent: bool
    windows: Windows
    terms: Floats


@compiled
def slopes(first: int, last: int, hinges: Hinges, scores: Floats, losses: Floats) -> None:
    """Turn the scores of the queries from first to last into slopes, and overwrite losses, (n_terms, 2)."""
    judged, adjacent, windows, terms = hinges
    for t in range(len(terms)):
        squared, linear = evaluate(scores, first, last, judged, terms[t, 0], adjacent, windows_of(windows, t))
        losses[t, 0], losses[t, 1] = squared, linear
    if len(terms) > 1:
        for i in range(judged.starts[first], judged.starts[last]):
            scores[i] = 0.0
            for t in range(len(terms)):
                scores[i] += terms[t, 1] * windows.slope[t, i]


@compiled
def curvatures(first: int, last: int, hinges: Hinges, by_document: Floats, by_term: Floats, out: Floats) -> None:
    """Overwrite out, of queries first to last, with the second derivative of the loss by score times by_document.

    by_term is scratch, (n_terms, n_documents); with one term of factor 1 it is out itself. out may be by_document.
    """
    judged, adjacent, windows, terms = hinges
    for t in range(len(terms)):
        multiply(by_document, first, last, judged, adjacent, windows_of(windows, t), by_term[t])
    if len(terms) > 1:
        for i in range(judged.starts[first], judged.starts[last]):
            out[i] = 0.0
            for t in range(len(terms)):
                out[i] += terms[t, 1] * by_term[t, i]


@compiled
def dense_gradient(
    X: Matrix, raw: Floats, first: int, last: int, hinges: Hinges, scores: Floats, losses: Floats, out: Floats
) -> None:
    """Add X' slopes at the scores X raw to out, (n_features,), and overwrite losses, (n_terms, 2)."""
    a, b = hinges.judged.starts[first], hinges.judged.starts[last]
    dense_times(X[a:b], raw, scores[a:b])
    slopes(first, last, hinges, scores, losses)
    add_dense_transposed(X[a:b], scores[a:b], out)


@compiled
def dense_curvature(
    X: Matrix, raw: Floats, first: int, last: int, hinges: Hinges, by_document: Floats, by_term: Floats, out: Floats
) -> None:
    """Add X' L X raw to out, (n_features,), L the second derivative of the loss by score."""
    a, b = hinges.judged.starts[first], hinges.judged.starts[last]
    dense_times(X[a:b], raw, by_document[a:b])
    curvatures(first, last, hinges, by_document, by_term, by_document)
    add_dense_transposed(X[a:b], by_document[a:b], out)
