"""One step of FOBOS under AdaGrad a list, for many columns of weights at once.

It is that of optimizers.one_pass_kernels, to rounding: at list t, with gradient g and G the sum of the squared ones,
w = S(w - eta g, eta l1) / (1 + eta l2), eta = eta0 / (DELTA + sqrt(G)). A list without pairs is skipped. A weight of a
sparse list is brought up to date when it is next needed: all columns saw the same lists, so that one count of missed
steps serves them all, and p steps are the p-th power of one, by repeated squaring.

vector, squares  (d, m) w as it was at seen, and G     seen  (d,) lists at the last change     lists  (1,) lists so far
multiplier       (d, m) what features are multiplied by          eta0, l1, l2  (m,)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.list_scaling import columns_of_list, factor_of, ranges
from ranktune.solvers.joint.list_slopes import Losses, slopes
from ranktune.solvers.joint.products import add_sparse_transposed, dense_scores, sparse_scores
from ranktune.solvers.optimizers.one_pass_kernels import DELTA


class Rules(NamedTuple):
    """The rates and strengths of the columns, (m,) each."""

    eta0: Floats
    l1: Floats
    l2: Floats


class State(NamedTuple):
    """What steps change; see the notation of the module."""

    vector: Floats
    squares: Floats
    seen: Ints
    lists: Ints


class Grades(NamedTuple):
    """The grades of all lists: starts (n_lists + 1,), codes (n_documents,), n_grades (n_lists,)."""

    starts: Ints
    codes: Codes
    n_grades: Codes


@compiled
def catch_up(rules: Rules, state: State, j: int, decay: Floats, gone: Floats) -> None:
    """Bring the weights of feature j up to date; decay and gone, (m,), are scratch."""
    missed = state.lists[0] - state.seen[j]
    state.seen[j] = state.lists[0]
    if missed <= 0:
        return
    w, squares = state.vector[j], state.squares[j]
    bit = 1
    while 2 * bit <= missed:
        bit *= 2
    eta, once = np.empty(len(w)), np.empty(len(w))
    for c in range(len(w)):
        eta[c] = rules.eta0[c] / (DELTA + np.sqrt(squares[c]))
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
        amount = eta[c] * rules.l1[c] * gone[c]
        weight = w[c] * decay[c]
        size = abs(weight) - amount
        size = size if size > 0.0 else 0.0
        w[c] = size if weight > 0.0 else -size


@compiled
def step(rules: Rules, state: State, j: int, gradient: Floats) -> None:
    """Move the weights of feature j, which are up to date but for this list, by their gradient, (m,)."""
    w, squares = state.vector[j], state.squares[j]
    state.seen[j] = state.lists[0]
    for c in range(len(w)):
        g = gradient[c]
        squares[c] += g * g
        eta = rules.eta0[c] / (DELTA + np.sqrt(squares[c]))
        moved = w[c] - eta * g
        size = abs(moved) - eta * rules.l1[c]
        size = (size if size > 0.0 else 0.0) / (1.0 + eta * rules.l2[c])
        w[c] = size if moved > 0.0 else -size


@compiled
def learn_dense(
    X: Matrix, grades: Grades, losses: Losses, rules: Rules, multiplier: Floats, state: State, before: Floats
) -> None:
    """Learn from the lists; overwrite before, (n_documents, m), with the scores of each list before its step."""
    d, m = state.vector.shape
    longest = 0
    for q in range(len(grades.n_grades)):
        longest = max(longest, grades.starts[q + 1] - grades.starts[q])
    low, high = np.empty(d, dtype=X.dtype), np.empty(d, dtype=X.dtype)
    rows, slope, W = np.empty((longest, d)), np.empty((longest, m)), np.empty((d, m))
    for j in range(d):
        for c in range(m):
            W[j, c] = multiplier[j, c] * state.vector[j, c]
    gradient = np.empty((d, m))
    for q in range(len(grades.n_grades)):
        a, b = grades.starts[q], grades.starts[q + 1]
        S = before[a:b]
        dense_scores(X[a:b], W, S)
        if grades.n_grades[q] < 2:
            continue
        slopes(losses, S, grades.codes[a:b], grades.n_grades[q], a, slope[: b - a])
        for i in range(b - a):
            for j in range(d):
                rows[i, j] = X[a + i, j]
        np.dot(rows[: b - a].T, slope[: b - a], gradient)
        ranges(X[a:b], low, high)
        state.lists[0] += 1
        for j in range(d):
            constant = factor_of(low[j], high[j], False) == 0.0
            for c in range(m):
                gradient[j, c] = 0.0 if constant else gradient[j, c] * multiplier[j, c]
            step(rules, state, j, gradient[j])
            for c in range(m):
                W[j, c] = multiplier[j, c] * state.vector[j, c]


@compiled
def learn_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    grades: Grades,
    losses: Losses,
    rules: Rules,
    multiplier: Floats,
    state: State,
    before: Floats,
) -> None:
    """Learn as learn_dense does. Cost: the nonzeros of the lists, and the columns that they have."""
    d, m = state.vector.shape
    place = np.full(d, -1, dtype=np.int64)
    columns, low, high, filled = np.empty(d, dtype=np.int64), np.empty(d), np.empty(d), np.empty(d, dtype=np.int64)
    decay, gone = np.empty(m), np.empty(m)
    for q in range(len(grades.n_grades)):
        a, b = grades.starts[q], grades.starts[q + 1]
        S, slope = before[a:b], np.empty((b - a, m))
        k = columns_of_list(data, indices, indptr[a], indptr[b], b - a, place, columns, low, high, filled)
        W = np.empty((k, m))
        for r in range(k):
            j = columns[r]
            catch_up(rules, state, j, decay, gone)
            for c in range(m):
                W[r, c] = multiplier[j, c] * state.vector[j, c]
        sparse_scores(data, indices, indptr, a, b, place, W, S)
        if grades.n_grades[q] > 1:
            slopes(losses, S, grades.codes[a:b], grades.n_grades[q], a, slope)
            gradient = W
            gradient[:] = 0.0
            add_sparse_transposed(data, indices, indptr, a, b, place, slope, gradient)
            state.lists[0] += 1
            for r in range(k):
                j, constant = columns[r], factor_of(low[r], high[r], False) == 0.0
                for c in range(m):
                    gradient[r, c] = 0.0 if constant else gradient[r, c] * multiplier[j, c]
                step(rules, state, j, gradient[r])
        for r in range(k):
            place[columns[r]] = -1


@compiled
def catch_all_up(rules: Rules, state: State, decay: Floats, gone: Floats) -> None:
    """Bring all weights up to date; decay and gone, (m,), are scratch."""
    for j in range(len(state.seen)):
        catch_up(rules, state, j, decay, gone)
