"""Online updates from one pair at a time, and the loops over the pairs of each query.

z = x_i - x_j, document i of the higher grade; m = w'z; S the diagonal matrix of stretch. Steps with S = factors squared
equal steps on features multiplied by their factors, with weights divided by them; so features are never scaled.

FIRST_ORDER  l = max(0, 1 - m) > 0: w += l / (z'Sz + 1/(2C)) S z                                          (PA-II)
BOUNDED      l > 0: w += min(C, l / z'Sz) S z                                                             (PA-I)
FULL         l > 0: b = z'Sigma z + gamma; w += l / b Sigma z; Sigma -= Sigma z (Sigma z)' / b            (AROW)
DIAGONAL     the same with the diagonal of Sigma alone
PERCEPTRON   m <= 0: w += S z
COMMITTEE    the same; before, w replaces the hypothesis of the shortest run of correct pairs if its own is longer
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.online.rows import Rows, add, difference, product, row_score, stretched_square

FIRST_ORDER, BOUNDED, FULL, DIAGONAL, PERCEPTRON, COMMITTEE = range(6)


class Rule(NamedTuple):
    """One of the six updates above, with its C or gamma (1 where it has none)."""

    kind: int
    strength: float


class State(NamedTuple):
    """The state that updates change.

    weights    (d,) w                                stretch   (d,) the diagonal of S
    sigma      (d, d) Sigma or (1, d) its diagonal   scratch   (d,)
    committee  (size, d) hypotheses                  runs      (size,) correct pairs in a row of each hypothesis
    counters   (4,) queries seen, pairs seen, sum of the losses before each step, run of w

    sigma and committee are (1, 1) where the rule does not use them.
    """

    weights: Floats
    stretch: Floats
    sigma: Floats
    scratch: Floats
    committee: Floats
    runs: Floats
    counters: Floats


class Lists(NamedTuple):
    """The queries in the order in which their documents and pairs are visited.

    grades    (n_documents,)              starts    (n_queries + 1,)
    rows      (n_documents,) the rows of each query in the order of visits
    by_grade  (n_documents,) the rows of each query by grade, for sampling; empty where nothing is sampled
    pairs     (n_queries,)                limit     pairs that are sampled from a query with more; 0: never
    by_worse  whether each document is paired with all better ones instead of all later ones
    """

    grades: Floats
    starts: Ints
    rows: Ints
    by_grade: Ints
    pairs: Ints
    limit: int
    by_worse: bool


def new_state(stretch: Floats, sigma: Floats | None = None, committee: Floats | None = None) -> State:
    """Return the state before the first pair, with w = 0."""
    sigma, committee = (np.zeros((1, 1)) if part is None else part for part in (sigma, committee))
    weights, scratch = np.zeros((2, len(stretch)))
    return State(weights, stretch, sigma, scratch, committee, np.zeros(len(committee)), np.zeros(4))


@compiled
def learn_pair(rule: Rule, state: State, rows: Rows, z: Floats, columns: Ints, m: int) -> None:
    """Update from the pair whose difference is in z, better minus worse."""
    margin = product(rows, z, columns, m, state.weights)
    state.counters[1] += 1.0
    if rule.kind >= PERCEPTRON:
        if margin > 0.0:
            state.counters[3] += 1.0
            return
        state.counters[2] += 1.0
        if rule.kind == COMMITTEE:
            enter(state)
        state.counters[3] = 0.0
        add(rows, z, columns, m, 1.0, state.stretch, state.weights)
        return
    loss = 1.0 - margin
    if not loss > 0.0:
        return
    state.counters[2] += loss * loss if rule.kind != BOUNDED else loss
    if rule.kind == FULL:
        full_step(rule, state, rows, z, columns, m, loss)
    elif rule.kind == DIAGONAL:
        diagonal_step(rule, state, rows, z, columns, m, loss)
    else:
        square = stretched_square(rows, z, columns, m, state.stretch)
        if square == np.inf:
            state.weights[0] = np.nan  # the caller reports the overflow
        elif square > 0.0:
            if rule.kind == FIRST_ORDER:
                step = loss / (square + 0.5 / rule.strength)
            else:
                step = min(rule.strength, loss / square)
            add(rows, z, columns, m, step, state.stretch, state.weights)


@compiled
def enter(state: State) -> None:
    """Replace the hypothesis of the shortest run in the committee by the current one if its run is longer."""
    shortest = np.argmin(state.runs)
    if state.counters[3] > state.runs[shortest]:
        state.runs[shortest] = state.counters[3]
        state.committee[shortest] = state.weights


@compiled
def full_step(rule: Rule, state: State, rows: Rows, z: Floats, columns: Ints, m: int, loss: float) -> None:
    """Take the step of FULL. Cost: d^2. Sigma stays symmetric to the bit: u_i u_j is u_j u_i."""
    v, sigma = state.scratch, state.sigma
    d = len(v)
    v[:] = 0.0
    for k in range(m):
        row, factor = columns[k] if rows.is_sparse else k, z[0, k]
        if factor != 0.0:
            for c in range(d):
                v[c] += factor * sigma[row, c]
    total = rule.strength + product(rows, z, columns, m, v)
    if not total < np.inf:
        state.weights[0] = np.nan  # the caller reports the overflow
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
        state.weights[0] = np.nan  # the caller reports the overflow
        return
    step, inverse = loss / total, 1.0 / total
    for k in range(m):
        c = columns[k] if rows.is_sparse else k
        change = sigma[c] * z[0, k]
        state.weights[c] += step * change
        sigma[c] -= change * change * inverse


@compiled
def learn(rows: Rows, lists: Lists, order: Ints, draws: Floats, rule: Rule, state: State, scores: Floats) -> None:
    """Update from the queries in order; before each, write the scores of its documents unless scores is empty.

    draws holds limit numbers in [0, 1) for each query of order that has more pairs than limit.
    """
    d = len(state.weights)
    z, columns = np.zeros((1, d)), np.zeros(d, dtype=np.int64)
    drawn = 0
    for q in order:
        a, b = lists.starts[q], lists.starts[q + 1]
        if len(scores) > 0:
            weights = current_weights(rule, state)
            for i in range(a, b):
                scores[i] = row_score(rows, i, weights)
        if lists.pairs[q] == 0:
            continue
        state.counters[0] += 1.0
        if 0 < lists.limit < lists.pairs[q]:
            learn_drawn(rows, lists, q, draws[drawn : drawn + lists.limit], rule, state, z, columns)
            drawn += lists.limit
            continue
        for p in range(a, b):
            i = lists.rows[p]
            for r in range(a if lists.by_worse else p + 1, b):
                j = lists.rows[r]
                later = lists.grades[i] > lists.grades[j]
                if lists.grades[i] < lists.grades[j] or (later and not lists.by_worse):
                    m = difference(rows, i if later else j, j if later else i, z, columns)
                    learn_pair(rule, state, rows, z, columns, m)


@compiled
def learn_drawn(
    rows: Rows, lists: Lists, q: int, draws: Floats, rule: Rule, state: State, z: Floats, columns: Ints
) -> None:
    """Update from pairs of query q drawn uniformly with replacement, one for each number in draws."""
    a, b = lists.starts[q], lists.starts[q + 1]
    first = np.empty(b - a + 1, dtype=np.int64)  # the position in by_grade where each grade begins
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
def current_weights(rule: Rule, state: State) -> Floats:
    """Return the model's weights, (d,): w, or the mean of the committee by runs, the current hypothesis a candidate."""
    if rule.kind != COMMITTEE:
        return state.weights
    shortest = np.argmin(state.runs)
    enters = state.counters[3] > state.runs[shortest]
    mean, total = state.scratch, 0.0
    mean[:] = 0.0
    for h in range(len(state.runs)):
        if h == shortest and enters:
            mean += state.counters[3] * state.weights
            total += state.counters[3]
        elif state.runs[h] > 0.0:
            mean += state.runs[h] * state.committee[h]
            total += state.runs[h]
    if total > 0.0:
        mean /= total
    return mean


@compiled
def learn_listed(rows: Rows, better: Ints, worse: Ints, rule: Rule, state: State) -> None:
    """Update from the pairs of rows better[t] and worse[t], one after the other."""
    z, columns = np.zeros((1, len(state.weights))), np.zeros(len(state.weights), dtype=np.int64)
    for t in range(len(better)):
        m = difference(rows, better[t], worse[t], z, columns)
        learn_pair(rule, state, rows, z, columns, m)
