"""The derivatives of the losses of one list by its scores, for many columns of scores at once.

They are those of losses.pair_kernels.list_loss, which computes them where columns are few, scores far apart, or lists
so long that sorting pays. Else loops over pairs run over adjacent columns in the inside: hinges of sixteen columns then
take a third of the time that they take one by one, and are equal to rounding, that of the type of S, which is single or
double. Columns of a group are adjacent.

S, slope  (n, m) scores, and the derivatives      codes  (n,) numbers of the grades, k how many
bounds    (G + 1,) the first column of each of G groups, and m: a group has one weight and average, and one kind of loss
phis      (m,) the loss of each column            margins, means  (m,) its margin, and whether it is the mean of pairs
cuts      (G,) K, 0 where all pairs weigh 1       ranks     (G, K) v, what a rank counts
gains     (G, n_documents) u, the gain of a document
copies    (n_documents,) how often each document counts, empty where each counts once: else columns go one by one

A hinge has the slope -(flat + steep short) where it is short of its margin: 1 and 0, or squared 0 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.grades import copies_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.pair_kernels import PairRule, best, list_loss
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.losses.smoothed.phi import HINGE, LOGISTIC

FEW = 5
"""Fewer columns of a group are faster one by one."""

LONG = 600
"""With more documents than this, hinges with uniform weights are summed by sorting, a column after the other."""

FAR = 80.0
"""exp(-80) is nothing beside 1, and exp(80) is finite in single precision: logistic losses are exact where the first K
scores are no further apart."""

LANES = 16
"""Columns are looked at in whole vectors: more of them cost less than a rest."""


class Losses(NamedTuple):
    """Losses of the columns; see the notation of the module."""

    bounds: Ints
    phis: Ints
    margins: Floats
    means: Ints
    cuts: Ints
    ranks: Floats
    gains: Floats
    copies: Floats


class Hinges(NamedTuple):
    """The slopes of hinges: their margins, and flat and steep, (width,) each."""

    margin: Matrix
    flat: Matrix
    steep: Matrix


def group_of(loss: PairwiseLoss) -> tuple[bool, str, str]:
    """Return the key of the group that a column of this loss is in; columns of one key must be adjacent."""
    return loss.phi == LOGISTIC, loss.average, repr(loss.weight)


def losses_of(losses: Sequence[PairwiseLoss], queries: Queries) -> Losses:
    """Return the losses of the columns for queries."""
    rules = [loss.rule(queries) for loss in losses]
    firsts = [c for c, loss in enumerate(losses) if c == 0 or group_of(loss) != group_of(losses[c - 1])]
    cuts = np.array([len(rules[c].values) for c in firsts], dtype=np.int64)
    ranks = np.zeros((len(firsts), max(int(cuts.max()), 1)))
    for row, c in zip(ranks, firsts, strict=True):
        row[: len(rules[c].values)] = rules[c].values
    return Losses(
        np.array([*firsts, len(losses)], dtype=np.int64),
        np.array([rule.phi for rule in rules], dtype=np.int64),
        np.array([rule.margin for rule in rules]),
        np.array([rule.mean for rule in rules], dtype=np.int64),
        cuts,
        ranks,
        np.array([losses[c].gains(queries) for c in firsts]),
        copies_of(queries),
    )


@compiled
def slopes(losses: Losses, S: Matrix, codes: Codes, k: int, first: int, slope: Matrix) -> None:
    """Overwrite slope with the derivatives of a list whose documents are those from number first on."""
    n = len(codes)
    for g in range(len(losses.cuts)):
        a, b = losses.bounds[g], losses.bounds[g + 1]
        cut = losses.cuts[g]
        gains, ranks = losses.gains[g, first : first + n], losses.ranks[g, :cut]
        logistic = losses.phis[a] == LOGISTIC
        copies = losses.copies[first : first + n]
        if (cut == 0 and (logistic or n > LONG)) or len(losses.copies) > 0 or b - a < FEW:
            one_by_one(losses, ranks, S, codes, k, gains, copies, a, b, slope)
        elif cut == 0:
            all_pairs(losses, S, codes, k, a, b, slope)
        else:
            apart = swaps(logistic, losses, ranks, S, codes, gains, a, b, slope)
            for c in range(a, b if logistic else a):
                if not apart[c - a] < FAR:
                    one_by_one(losses, ranks, S, codes, k, gains, copies, c, c + 1, slope)


@compiled
def hinges_of(losses: Losses, a: int, b: int, T: Matrix) -> Hinges:
    """Return the slopes of the columns a to b, as many and of the type of the columns of T."""
    width = T.shape[1]
    hinges = Hinges(np.ones(width, T.dtype), np.ones(width, T.dtype), np.zeros(width, T.dtype))
    for c in range(b - a):
        hinges.margin[c] = losses.margins[a + c]
        if losses.phis[a + c] != HINGE:
            hinges.flat[c], hinges.steep[c] = 0.0, 2.0
    return hinges


@inlined
def width_of(m: int, logistic: bool) -> int:
    """Return the width of a buffer for m columns: whole vectors, where more columns cost less than a rest.

    Loops whose length is known to be a multiple of LANES are compiled for twice as many, and are slow for one LANES.
    """
    return m if logistic else (m + LANES - 1) // LANES * LANES


@compiled
def one_by_one(
    losses: Losses,
    ranks: Floats,
    S: Matrix,
    codes: Codes,
    k: int,
    gains: Floats,
    copies: Floats,
    a: int,
    b: int,
    slope: Matrix,
) -> None:
    """Overwrite the columns a to b of slope, a column after the other."""
    n = len(codes)
    scores, derivative = np.empty(n), np.empty(n)
    for c in range(a, b):
        for i in range(n):
            scores[i] = S[i, c]
        rule = PairRule(losses.phis[c], losses.margins[c], ranks, losses.means[c] == 1, None)
        list_loss(rule, None, scores, codes, k, gains, copies, 0, derivative)
        for i in range(n):
            slope[i, c] = derivative[i]


@compiled
def all_pairs(losses: Losses, S: Matrix, codes: Codes, k: int, a: int, b: int, slope: Matrix) -> None:
    """Overwrite the columns a to b of slope, of hinges over all pairs, by one visit to each pair."""
    n, m = len(codes), width_of(b - a, False)
    ends = np.zeros(k + 1, dtype=np.int64)  # documents in the order of their grades
    for i in range(n):
        ends[codes[i] + 1] += 1
    for c in range(k):
        ends[c + 1] += ends[c]
    at, order, pairs = ends.copy(), np.empty(n, dtype=np.int64), 0.0
    for i in range(n):
        order[at[codes[i]]] = i
        at[codes[i]] += 1
        pairs += ends[codes[i]]
    T, D, zero = np.zeros((n, m), S.dtype), np.zeros((n, m), S.dtype), S.dtype.type(0)
    margin, flat, steep = hinges_of(losses, a, b, T)
    for p in range(n):
        for c in range(b - a):
            T[p, c] = S[order[p], a + c]
    for p in range(n):
        better, by_better = T[p], D[p]
        for r in range(ends[codes[order[p]]]):
            worse, by_worse = T[r], D[r]
            for c in range(m):
                short = margin[c] - (better[c] - worse[c])
                x = flat[c] + steep[c] * short
                x = x if short > zero else zero
                by_better[c] -= x
                by_worse[c] += x
    for c in range(b - a):
        scale = 1.0 / pairs if losses.means[a + c] == 1 and pairs > 0.0 else 1.0
        for p in range(n):
            slope[order[p], a + c] = D[p, c] * scale


@inlined
def exponentials(T: Matrix, tops: Ints, apart: Matrix) -> None:
    """Overwrite scores with exp(score - last of the first K of the column), (m, K) tops; those far apart are clipped.

    apart, (m,), is overwritten with how far the first of them is from the last.
    """
    far = T.dtype.type(FAR)
    for c in range(len(apart)):
        last = T[tops[c, -1], c]
        apart[c] = T[tops[c, 0], c] - last
        for i in range(len(T)):
            T[i, c] = np.exp(min(max(T[i, c] - last, -far), far))


@compiled
def swaps(
    logistic: bool,
    losses: Losses,
    v: Floats,
    S: Matrix,
    codes: Codes,
    u: Floats,
    a: int,
    b: int,
    slope: Matrix,
) -> Matrix:
    """Overwrite the columns a to b of slope, of losses over the pairs that touch the first K ranks.

    A document of rank r and another one, behind it, weigh |u - u'| (v_r - v_r'), which is 0 for those before it.
    Return how far the scores of the first K are apart, which says whether a logistic column is exact.
    """
    n, m = len(codes), width_of(b - a, logistic)
    K, dtype = min(len(v), n), S.dtype
    zero = dtype.type(0)
    T, column, top = np.zeros((n, m), dtype), np.empty(n, dtype), np.empty(K, dtype=np.int64)
    margin, flat, steep = hinges_of(losses, a, b, T)
    tops, counts, apart = np.zeros((m, K), dtype=np.int64), np.zeros((n, m), dtype), np.zeros(b - a, dtype)
    for c in range(b - a):
        for i in range(n):
            T[i, c] = column[i] = S[i, a + c]
        best(column, codes, top)
        for r in range(K):
            tops[c, r] = top[r]
            counts[top[r], c] = v[r]
    if logistic:
        exponentials(T, tops, apart)
    D, total, by_top = np.zeros((n, m), dtype), np.zeros(m, dtype), np.empty(m, dtype)
    top_scores, top_gains = np.empty(m, dtype), np.empty(m, dtype)
    for r in range(K):
        vr = dtype.type(v[r])
        for c in range(m):
            top_scores[c], top_gains[c], by_top[c] = T[tops[c, r], c], u[tops[c, r]], zero
        for j in range(n):
            scores, counted, by_other, uj = T[j], counts[j], D[j], dtype.type(u[j])
            if logistic:
                for c in range(m):
                    gap, rest = top_gains[c] - uj, vr - counted[c]
                    weight = gap * (rest if rest > zero else zero)
                    worse = scores[c] if gap > zero else top_scores[c]
                    x = weight * (worse / (top_scores[c] + scores[c]))
                    by_top[c] -= x
                    by_other[c] += x
                    total[c] += abs(weight)
            else:
                for c in range(m):
                    gap, rest = top_gains[c] - uj, vr - counted[c]
                    weight = gap * (rest if rest > zero else zero)
                    lead = top_scores[c] - scores[c]
                    short = margin[c] - (lead if gap > zero else -lead)
                    x = flat[c] + steep[c] * short
                    x = weight * (x if short > zero else zero)
                    by_top[c] -= x
                    by_other[c] += x
                    total[c] += abs(weight)
        for c in range(b - a):
            D[tops[c, r], c] += by_top[c]
    for c in range(b - a):
        scale = 1.0 / total[c] if losses.means[a + c] == 1 and total[c] > 0.0 else 1.0
        for i in range(n):
            slope[i, a + c] = D[i, c] * scale
    return apart
