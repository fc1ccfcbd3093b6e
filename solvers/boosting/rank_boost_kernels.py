"""The kernels of RankBoost: potentials of documents instead of weights of pairs.

The weight of a pair (i, j), y_i > y_j, is D(i, j) = w x_i x_j exp(f_j - f_i) / Z, w the weight of its query, x those
of its documents, f the scores so far: it is a product of a factor of i and a factor of j. So for any weak ranker h,

    r = sum over pairs of D(i, j) (h_i - h_j) = sum over i of p_i h_i,
    p_i = w x_i ( exp(-f_i) sum of x_j exp(f_j) over worse j - exp(f_i) sum of x_j exp(-f_j) over better j ) / Z

and a single pass over the documents of a query, grade by grade, gives all p. Exponents are relative to the middle of
the query's scores, so that nothing overflows below a difference of 1,400.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.boosting.bins import Bytes
from ranktune.solvers.core.arrays import Codes, Floats, Indices, Ints
from ranktune.solvers.core.compiled import compiled, inlined


@compiled
def potentials(
    scores: Floats, starts: Ints, codes: Codes, n_grades: Codes, weights: Floats, copies: Floats, out: Floats
) -> float:
    """Overwrite out with p, not yet divided by Z, and return Z, the sum of the weights of all pairs."""
    Z = 0.0
    for q in range(len(starts) - 1):
        a, b, k = starts[q], starts[q + 1], n_grades[q]
        if k < 2:
            out[a:b] = 0.0
            continue
        low = high = scores[a]
        for i in range(a, b):
            low, high = min(low, scores[i]), max(high, scores[i])
        middle = 0.5 * (low + high)
        up, down = np.zeros(k + 1), np.zeros(k + 1)  # of the grades below, and of those at or above
        for i in range(a, b):
            up[codes[i] + 1] += copies[i] * np.exp(scores[i] - middle)
            down[codes[i]] += copies[i] * np.exp(middle - scores[i])
        for g in range(k):
            up[g + 1] += up[g]
            down[k - 1 - g] += down[k - g]
        part = 0.0
        for i in range(a, b):
            exponential = np.exp(scores[i] - middle)
            worse, better = up[codes[i]] / exponential, down[codes[i] + 1] * exponential
            part += copies[i] * worse
            out[i] = weights[q] * copies[i] * (worse - better)
        Z += weights[q] * part
    return Z


@inlined
def best_threshold(sums: Floats, k: int, sign: int) -> tuple[int, float]:
    """Return the threshold's number and r with the largest |r|, the highest of equal ones, from the sums of k bins.

    With a sign other than 0, only r of that sign.
    """
    best_number, best, above = 0, 0.0, 0.0
    for number in range(k - 1, 0, -1):
        above += sums[number]
        if abs(above) > abs(best) and above * sign >= 0.0:
            best_number, best = number - 1, above
    return best_number, best


@compiled
def best_stump(bins: Bytes, n_bins: Ints, p: Floats, sums: Floats, signs: Ints) -> tuple[int, int, float]:
    """Return the feature, the threshold's number and r of the stump [bin > number] with the largest |r|.

    bins is (n_features, n_documents) uint8; sums (256,) is scratch; signs (n_features,) are those that r may have.
    """
    best_feature, best_number, best = 0, 0, 0.0
    for f in range(len(bins)):
        row, k = bins[f], n_bins[f]
        sums[:k] = 0.0
        for i in range(len(p)):
            sums[row[i]] += p[i]
        number, r = best_threshold(sums, k, signs[f])
        if abs(r) > abs(best):
            best_feature, best_number, best = f, number, r
    return best_feature, best_number, best


@compiled
def best_sparse_stump(
    data: Bytes, rows: Indices, indptr: Indices, n_bins: Ints, zero: Bytes, p: Floats, sums: Floats, signs: Ints
) -> tuple[int, int, float]:
    """Return the same from bins as CSC: what is not stored of column f has the bin zero[f]."""
    best_feature, best_number, best = 0, 0, 0.0
    for f in range(len(indptr) - 1):
        k = n_bins[f]
        sums[:k] = 0.0
        stored = 0.0
        for at in range(indptr[f], indptr[f + 1]):
            sums[data[at]] += p[rows[at]]
            stored += p[rows[at]]
        sums[zero[f]] -= stored  # all p of a query add up to 0
        number, r = best_threshold(sums, k, signs[f])
        if abs(r) > abs(best):
            best_feature, best_number, best = f, number, r
    return best_feature, best_number, best


@compiled
def add_where_above(bins: Bytes, number: int, alpha: float, scores: Floats) -> None:
    """Add alpha to the score of each document whose bin is above number."""
    for i in range(len(scores)):
        if bins[i] > number:
            scores[i] += alpha
