"""One step of FOBOS under AdaGrad a list, that of optimizers.one_pass_kernels, for many columns of weights at once.

A list without pairs is skipped. A weight of a sparse list is brought up to date when it is next needed: all columns saw
the same lists, so that one count of missed steps serves them all, and p steps are the p-th power of one, by repeated
squaring, where a column alone takes exponentials.

vector, squares  (d, m) w as it was at seen, and G     seen  (d,) lists at the last change     lists  (1,) lists so far
multiplier       (d, m) what features are multiplied by          eta0, l1, l2  (m,)

The derivatives of the losses are those of losses.pair_kernels, in double, of a column after the other.

Products are those of X, (n, k), the features that the list stores, with W, (k, m), a column of weights for each of m
configurations, or with slopes. A feature is read once for all columns: its weights are adjacent. Equal rows of X have
equal scores, to the bit. Rows and products have the type of out, single or double. Dense rows count from the lowest
value of each feature in the list: differences of documents are what a ranking is made of, and they keep their digits in
single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix, as_ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.grades import copies_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import ListColumns, MatrixRows, close_list, no_columns, open_list
from ranktune.solvers.data.scaling import factor_of
from ranktune.solvers.losses.pair_kernels import PairRule, list_loss
from ranktune.solvers.losses.pairwise import PairwiseLoss
from ranktune.solvers.optimizers.one_pass_kernels import adaptive_rate, fobos_step, shrunk


class JointRates(NamedTuple):
    """The rates and strengths of the columns, (m,) each."""

    eta0: Floats
    l1: Floats
    l2: Floats


class JointState(NamedTuple):
    """What steps change; see the notation of the module."""

    vector: Floats
    squares: Floats
    seen: Ints
    lists: Ints


class Grades(NamedTuple):
    """The grades of all lists: starts (n_lists + 1,), codes (n_documents,), n_grades (n_lists,)."""

    starts: Ints
    codes: Codes
    n_grades: Ints


class Losses(NamedTuple):
    """The losses of the columns.

    phis, margins, means  (m,) the fields of PairRule        kinds   (m,) the number of the pair weight, one of G
    cuts, ranks           (G,) K, and (G, K) v               gains   (G, n_documents) u
    copies                (n_documents,) how often each document counts, empty where each counts once
    """

    phis: Ints
    margins: Floats
    means: Ints
    kinds: Ints
    cuts: Ints
    ranks: Floats
    gains: Floats
    copies: Floats


def losses_of(losses: Sequence[PairwiseLoss], queries: Queries) -> Losses:
    """Return the losses of the columns for queries."""
    rules = [loss.rule(queries) for loss in losses]
    names = [(loss.average, repr(loss.weight)) for loss in losses]
    kinds = list(dict.fromkeys(names))
    firsts = [names.index(kind) for kind in kinds]
    cuts = as_ints([len(rules[c].values) for c in firsts])
    ranks = np.zeros((len(firsts), cuts.max()))
    for row, c in zip(ranks, firsts, strict=True):
        row[: len(rules[c].values)] = rules[c].values
    return Losses(
        as_ints([rule.phi for rule in rules]),
        np.array([rule.margin for rule in rules]),
        as_ints([rule.mean for rule in rules]),
        as_ints([kinds.index(name) for name in names]),
        cuts,
        ranks,
        np.array([losses[c].gains(queries) for c in firsts]),
        copies_of(queries),
    )


@compiled
def slopes(losses: Losses, S: Matrix, codes: Codes, k: int, first: int, slope: Matrix) -> None:
    """Overwrite slope with the derivatives by S, (n, m) both, of a list whose documents are those from first on."""
    n, m = S.shape
    scores, by_score, copies = np.empty(n), np.empty(n), losses.copies[first : first + n]
    for c in range(m):
        kind = losses.kinds[c]
        gains, ranks = losses.gains[kind, first : first + n], losses.ranks[kind, : losses.cuts[kind]]
        rule = PairRule(losses.phis[c], losses.margins[c], ranks, losses.means[c] == 1, None, False)
        for i in range(n):
            scores[i] = S[i, c]
        list_loss(rule, None, scores, codes, k, gains, copies, 0, by_score)
        for i in range(n):
            slope[i, c] = by_score[i]


@compiled
def catch_up(rules: JointRates, state: JointState, j: int, scratch: Floats) -> None:
    """Bring the weights of feature j, which missed steps, up to date; scratch is (4, m)."""
    missed = state.lists[0] - state.seen[j]
    state.seen[j] = state.lists[0]
    w, squares = state.vector[j], state.squares[j]
    bit = 1
    while 2 * bit <= missed:
        bit *= 2
    decay, gone, eta, once = scratch[0], scratch[1], scratch[2], scratch[3]
    for c in range(len(w)):
        eta[c] = adaptive_rate(rules.eta0[c], squares[c])
        once[c] = 1.0 / (1.0 + eta[c] * rules.l2[c])
        decay[c], gone[c] = once[c], once[c]  # r^q and r + ... + r^q of q = 1 steps
    bit //= 2
    while bit > 0:
        odd = missed & bit != 0
        for c in range(len(w)):
            sums, power = gone[c] * (1.0 + decay[c]), decay[c] * decay[c]
            gone[c] = once[c] * (1.0 + sums) if odd else sums
            decay[c] = once[c] * power if odd else power
        bit //= 2
    for c in range(len(w)):
        w[c] = shrunk(w[c] * decay[c], eta[c] * rules.l1[c] * gone[c])


@inlined
def step(rules: JointRates, state: JointState, j: int, slope: Matrix, factor: Floats) -> None:
    """Move the weights of feature j, which are up to date but for this list, by their gradient, slope factor, (m,)."""
    w, squares = state.vector[j], state.squares[j]
    state.seen[j] = state.lists[0]
    for c in range(len(w)):
        gradient = slope[c] * factor[c]
        squares[c] += gradient * gradient
        w[c] = fobos_step(w[c], gradient, adaptive_rate(rules.eta0[c], squares[c]), rules.l1[c], rules.l2[c])


@compiled
def learn(
    rows: MatrixRows,
    grades: Grades,
    losses: Losses,
    rules: JointRates,
    multiplier: Floats,
    state: JointState,
    before: Matrix,
) -> None:
    """Learn from the lists; overwrite before, (n_documents, m), with the scores of each list before its step.

    All but the state is of the type of before, single or double. The scores of a list are up to a number.
    """
    d, m = state.vector.shape
    at, W, gradient = no_columns(rows, d), np.empty((d, m), before.dtype), np.empty((d, m), before.dtype)
    vector, _, seen, lists = state
    longest, scratch = longest_list(grades.starts), np.empty((4, m))
    room, slopes_of_list = dense_room(rows, longest, before), np.empty((longest, m), before.dtype)
    _, columns, low, high, _ = at
    for q in range(len(grades.n_grades)):
        a, b = grades.starts[q], grades.starts[q + 1]
        k = open_list(rows, a, b, at)
        for r in range(k):
            j = columns[r]
            if seen[j] < lists[0]:
                catch_up(rules, state, j, scratch)
            effective, factor, weight = W[r], multiplier[j], vector[j]
            for c in range(m):
                effective[c] = factor[c] * weight[c]
        scores(rows, a, b, at, W[:k], room, before[a:b])
        if grades.n_grades[q] > 1:
            by_document = slopes_of_list[: b - a]
            slopes(losses, before[a:b], grades.codes[a:b], grades.n_grades[q], a, by_document)
            transposed(rows, a, b, at, by_document, room, gradient[:k])
            lists[0] += 1
            for r in range(k):
                slope, factor = gradient[r], multiplier[columns[r]]
                if factor_of(low[r], high[r], False) == 0.0:
                    slope[:] = 0.0
                step(rules, state, columns[r], slope, factor)
        close_list(rows, k, at)


@compiled
def catch_all_up(rules: JointRates, state: JointState) -> None:
    """Bring all weights up to date."""
    scratch = np.empty((4, state.vector.shape[1]))
    for j in range(len(state.seen)):
        if state.seen[j] < state.lists[0]:
            catch_up(rules, state, j, scratch)


@inlined
def dense_room(rows: MatrixRows, longest: int, like: Matrix) -> Matrix:
    """Return room for the dense rows of a list, of the type of like; without columns where rows are sparse."""
    return np.empty((longest, rows.dense.shape[1]), dtype=like.dtype)


@compiled
def dense_scores(X: Matrix, W: Matrix, out: Matrix) -> None:
    """Overwrite out, (n, m), with X W. Two rows share what they read of W.

    BLAS is faster, but adds the products of some rows in another order, so that equal documents would not tie.
    """
    n, d, m = X.shape[0], X.shape[1], W.shape[1]
    spare = np.empty(m, out.dtype)
    for i in range(0, n, 2):
        k = min(i + 1, n - 1)  # the last of an odd number of rows goes with itself
        first, second = out[i], out[k] if k > i else spare
        for c in range(m):
            first[c], second[c] = 0.0, 0.0
        for j in range(0, d - 3, 4):
            a0, a1, a2, a3 = X[i, j], X[i, j + 1], X[i, j + 2], X[i, j + 3]
            b0, b1, b2, b3 = X[k, j], X[k, j + 1], X[k, j + 2], X[k, j + 3]
            w0, w1, w2, w3 = W[j], W[j + 1], W[j + 2], W[j + 3]
            for c in range(m):
                first[c] += (a0 * w0[c] + a1 * w1[c]) + (a2 * w2[c] + a3 * w3[c])
                second[c] += (b0 * w0[c] + b1 * w1[c]) + (b2 * w2[c] + b3 * w3[c])
        for j in range(d // 4 * 4, d):
            a0, b0, w0 = X[i, j], X[k, j], W[j]
            for c in range(m):
                first[c] += a0 * w0[c]
                second[c] += b0 * w0[c]


@compiled
def scores(rows: MatrixRows, first: int, last: int, at: ListColumns, W: Matrix, room: Matrix, out: Matrix) -> None:
    """Overwrite out, (last - first, m), with the scores of a list by W, (k, m), the weights of its columns.

    If rows are dense, they are copied to room, less the lowest of each column.
    """
    if not rows.is_sparse:
        X, low = rows.dense, at.low
        for i in range(first, last):
            for j in range(X.shape[1]):
                room[i - first, j] = np.float64(X[i, j]) - low[j]
        dense_scores(room[: last - first], W, out)
        return
    data, indices, place, m = rows.data, rows.indices, at.place, W.shape[1]
    for i in range(first, last):
        row = out[i - first]
        row[:] = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            x, w = out.dtype.type(data[p]), W[place[indices[p]]]
            for c in range(m):
                row[c] += x * w[c]


@inlined
def longest_list(starts: Ints) -> int:
    """Return the most documents of a list."""
    longest = 0
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    return longest


@compiled
def transposed(rows: MatrixRows, first: int, last: int, at: ListColumns, V: Matrix, room: Matrix, out: Matrix) -> None:
    """Overwrite out, (k, m), with X' V of a list, whose columns V, (last - first, m), sum to 0; scores filled room."""
    if not rows.is_sparse:
        np.dot(room[: last - first].T, V, out)
        return
    data, indices, place, m = rows.data, rows.indices, at.place, V.shape[1]
    out[:] = 0.0
    for i in range(first, last):
        v = V[i - first]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            x, target = out.dtype.type(data[p]), out[place[indices[p]]]
            for c in range(m):
                target[c] += x * v[c]
