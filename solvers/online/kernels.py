"""Learning from pairs, one at a time: what a pair changes, and the walk over the pairs of each query.

z = x_i - x_j, document i of the higher grade; m = w'z; S the diagonal matrix of stretch (features multiplied by
their factors and weights divided by them are the same steps with S = factors squared, so features are never scaled).

FIRST_ORDER  l = max(0, 1 - m) > 0: w += l / (z'Sz + 1/(2C)) S z                                          (PA-II)
BOUNDED      l > 0: w += min(C, l / z'Sz) S z                                                             (PA-I)
FULL         l > 0: b = z'Sigma z + gamma; w += l / b Sigma z; Sigma -= Sigma z (Sigma z)' / b            (AROW)
DIAGONAL     the same with the diagonal of Sigma alone
PERCEPTRON   m <= 0: w += S z
COMMITTEE    the same; before, w enters the committee if its run of pairs in order beats the shortest run there
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.online.rows import Rows, add, difference, product, row_score, stretched_square

FIRST_ORDER, BOUNDED, FULL, DIAGONAL, PERCEPTRON, COMMITTEE = range(6)


class Rule(NamedTuple):
    """What a pair changes: one of the six above, and its C or gamma (1 where it has none)."""

    kind: int
    strength: float


class State(NamedTuple):
    """What the pairs change.

    weights    (d,) w                                stretch   (d,) the diagonal of S
    sigma      (d, d) Sigma or (1, d) its diagonal   v         (d,) room for Sigma z
    committee  (size, d) hypotheses                  runs      (size,) pairs that each ranked right in a row
    now        (4,) queries learnt from, pairs seen, sum of their losses before each step, run of w
    """

    weights: Floats
    stretch: Floats
    sigma: Floats
    v: Floats
    committee: Floats
    runs: Floats
    now: Floats


class Lists(NamedTuple):
    """The queries as kernels walk them.

    grades (n_documents,), starts (n_queries + 1,); places (n_documents,) the rows of each query in the order of the
    walk, by_grade the same by grade, for drawing (else empty); pairs (n_queries,); limit: of more pairs than that so
    many are drawn, 0: never; by_worse: each document is met with all better ones, not with all later ones.
    """

    grades: Floats
    starts: Ints
    places: Ints
    by_grade: Ints
    pairs: Ints
    limit: int
    by_worse: bool


@compiled
def learn_pair(rule: Rule, state: State, rows: Rows, z: Floats, columns: Ints, m: int) -> None:
    """Learn from the pair whose difference is in z, better minus worse."""
    margin = product(rows, z, columns, m, state.weights)
    state.now[1] += 1.0
    if rule.kind >= PERCEPTRON:
        if margin > 0.0:
            state.now[3] += 1.0
            return
        state.now[2] += 1.0
        if rule.kind == COMMITTEE:
            enter(state)
        state.now[3] = 0.0
        add(rows, z, columns, m, 1.0, state.stretch, state.weights)
        return
    loss = 1.0 - margin
    if not loss > 0.0:
        return
    state.now[2] += loss * loss if rule.kind != BOUNDED else loss
    if rule.kind == FULL:
        full_step(rule, state, rows, z, columns, m, loss)
    elif rule.kind == DIAGONAL:
        diagonal_step(rule, state, rows, z, columns, m, loss)
    else:
        square = stretched_square(rows, z, columns, m, state.stretch)
        if square == np.inf:
            state.weights[0] = np.nan  # for the caller to see
        elif square > 0.0:
            if rule.kind == FIRST_ORDER:
                step = loss / (square + 0.5 / rule.strength)
            else:
                step = min(rule.strength, loss / square)
            add(rows, z, columns, m, step, state.stretch, state.weights)


@compiled
def enter(state: State) -> None:
    """Let the current hypothesis take the place of the shortest run in the committee, if it beats it."""
    shortest = np.argmin(state.runs)
    if state.now[3] > state.runs[shortest]:
        state.runs[shortest] = state.now[3]
        state.committee[shortest] = state.weights


@compiled
def full_step(rule: Rule, state: State, rows: Rows, z: Floats, columns: Ints, m: int, loss: float) -> None:
    """Take the step of FULL. Cost: d^2. Sigma stays symmetric to the bit: u_i u_j is u_j u_i."""
    v, sigma = state.v, state.sigma
    d = len(v)
    v[:] = 0.0
    for k in range(m):
        row, factor = columns[k] if rows.is_sparse else k, z[0, k]
        if factor != 0.0:
            for c in range(d):
                v[c] += factor * sigma[row, c]
    total = rule.strength + product(rows, z, columns, m, v)
    if not total < np.inf:
        state.weights[0] = np.nan  # for the caller to see
        return
    step, root = loss / total, 1.0 / np.sqrt(total)
    for c in range(d):
        state.weights[c] += step * v[c]
        v[c] *= root
    for r in range(d):
        factor = v[r]
        if factor != 0.0:
            for c in range(d):
                sigma[r, c] -= factor * v[c]


@compiled
def diagonal_step(rule: Rule, state: State, rows: Rows, z: Floats, columns: Ints, m: int, loss: float) -> None:
    """Take the step of DIAGONAL. Cost: the stored values of the pair."""
    sigma = state.sigma[0]
    total = rule.strength + stretched_square(rows, z, columns, m, sigma)
    if not total < np.inf:
        state.weights[0] = np.nan  # for the caller to see
        return
    step, inverse = loss / total, 1.0 / total
    for k in range(m):
        c = columns[k] if rows.is_sparse else k
        change = sigma[c] * z[0, k]
        state.weights[c] += step * change
        sigma[c] -= change * change * inverse


@compiled
def learn(rows: Rows, lists: Lists, order: Ints, draws: Floats, rule: Rule, state: State, scores: Floats) -> None:
    """Learn from the queries in order; before each, if scores has room, write there its documents' scores.

    draws holds limit numbers in [0, 1) for each query of order that has more pairs than limit.
    """
    d = len(state.weights)
    z, columns = np.zeros((1, d)), np.zeros(d, dtype=np.int64)
    drawn = 0
    for q in order:
        a, b = lists.starts[q], lists.starts[q + 1]
        if len(scores) > 0:
            write_scores(rows, rule, state, a, b, scores)
        if lists.pairs[q] == 0:
            continue
        state.now[0] += 1.0
        if 0 < lists.limit < lists.pairs[q]:
            learn_drawn(rows, lists, q, draws[drawn : drawn + lists.limit], rule, state, z, columns)
            drawn += lists.limit
            continue
        for p in range(a, b):
            i = lists.places[p]
            for r in range(a if lists.by_worse else p + 1, b):
                j = lists.places[r]
                later = lists.grades[i] > lists.grades[j]
                if lists.grades[i] < lists.grades[j] or (later and not lists.by_worse):
                    m = difference(rows, i if later else j, j if later else i, z, columns)
                    learn_pair(rule, state, rows, z, columns, m)


@compiled
def learn_drawn(
    rows: Rows, lists: Lists, q: int, draws: Floats, rule: Rule, state: State, z: Floats, columns: Ints
) -> None:
    """Learn from pairs of query q drawn alike, with replacement, one for each number in draws."""
    a, b = lists.starts[q], lists.starts[q + 1]
    first = np.empty(b - a + 1, dtype=np.int64)  # where each grade begins, among the places of by_grade
    before = np.empty(b - a + 1, dtype=np.int64)  # ordered pairs whose first document has a lower grade
    k, seen = 0, 0
    for p in range(a, b):
        if p == a or lists.grades[lists.by_grade[p]] != lists.grades[lists.by_grade[p - 1]]:
            first[k] = p
            k += 1
    first[k] = b
    for g in range(k):
        before[g] = seen
        seen += (first[g + 1] - first[g]) * (b - a - first[g + 1] + first[g])
    for t in range(len(draws)):
        number = min(int(draws[t] * seen), seen - 1)
        g = int(np.searchsorted(before[:k], number, side="right")) - 1
        others = b - a - first[g + 1] + first[g]
        p, r = first[g] + (number - before[g]) // others, a + (number - before[g]) % others
        if r >= first[g]:
            r += first[g + 1] - first[g]
        i, j = lists.by_grade[max(p, r)], lists.by_grade[min(p, r)]
        m = difference(rows, i, j, z, columns)
        learn_pair(rule, state, rows, z, columns, m)


@compiled
def write_scores(rows: Rows, rule: Rule, state: State, a: int, b: int, scores: Floats) -> None:
    """Overwrite scores[a:b] with those of the model as it is."""
    if rule.kind != COMMITTEE:
        for i in range(a, b):
            scores[i] = row_score(rows, i, state.weights)
        return
    enter_run = state.now[3] > state.runs.min()
    leaves = np.argmin(state.runs)
    votes = state.runs.sum() + (state.now[3] - state.runs[leaves] if enter_run else 0.0)
    for i in range(a, b):
        total = 0.0
        for h in range(len(state.runs)):
            if h == leaves and enter_run:
                total += state.now[3] * row_score(rows, i, state.weights)
            elif state.runs[h] > 0.0:
                total += state.runs[h] * row_score(rows, i, state.committee[h])
        scores[i] = total / votes if votes > 0.0 else 0.0


@compiled
def combined(state: State, out: Any) -> None:
    """Overwrite out, (d,), with the committee's mean hypothesis by runs, the current one standing for election."""
    enter_run = state.now[3] > state.runs.min()
    leaves = np.argmin(state.runs)
    out[:] = 0.0
    votes = 0.0
    for h in range(len(state.runs)):
        if h == leaves and enter_run:
            out += state.now[3] * state.weights
            votes += state.now[3]
        elif state.runs[h] > 0.0:
            out += state.runs[h] * state.committee[h]
            votes += state.runs[h]
    if votes > 0.0:
        out /= votes


@compiled
def learn_listed(rows: Rows, better: Ints, worse: Ints, rule: Rule, state: State) -> None:
    """Learn from the pairs of rows better[t] and worse[t], one after the other."""
    z, columns = np.zeros((1, len(state.weights))), np.zeros(len(state.weights), dtype=np.int64)
    for t in range(len(better)):
        m = difference(rows, better[t], worse[t], z, columns)
        learn_pair(rule, state, rows, z, columns, m)
