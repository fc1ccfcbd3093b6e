"""One step of FOBOS under AdaGrad a list, that of optimizers.one_pass_kernels, for many columns of weights at once.

A list without pairs is skipped. A weight of a sparse list is brought up to date when it is next needed: all columns saw
the same lists, so that one count of missed steps serves them all, and p steps are the p-th power of one, by repeated
squaring, where a column alone takes exponentials.

vector, squares  (d, m) w as it was at seen, and G     seen  (d,) lists at the last change     lists  (1,) lists so far
multiplier       (d, m) what features are multiplied by          eta0, l1, l2  (m,)

The derivatives of the losses are those of losses.pair_kernels, in double, of a column after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix, as_ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.grades import copies_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import MatrixRows, close_list, no_columns, open_list
from ranktune.solvers.data.scaling import factor_of
from ranktune.solvers.joint.products import dense_room, longest_list, scores, transposed
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
