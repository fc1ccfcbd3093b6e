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

RECENT = 8
"""Steps of FULL after which sigma is brought up to date: one pass over it for all of them, where each took one."""


class Rule(NamedTuple):
    """One of the six updates above, with its C or gamma (1 where it has none)."""

    kind: int
    strength: float


class State(NamedTuple):
    """The state that updates change.

    weights    (d,) w                                stretch   (d,) the diagonal of S
    sigma      (d, d) Sigma or (1, d) its diagonal   scratch   (d,)
    recent     (RECENT, d) of FULL: vectors whose outer products are still to be subtracted from sigma
    committee  (size, d) hypotheses                  runs      (size,) correct pairs in a row of each hypothesis
    counters   (5,) queries seen, pairs seen, sum of the losses before each step, run of w, rows in recent
    z          (1, d) the difference of a pair       columns   (d,) its columns; of dense rows 0, 1, 2 ...

    sigma, recent and committee are (1, 1) where the rule does not use them. Between two calls recent counts no rows.
    """

    weights: Floats
    stretch: Floats
    sigma: Floats
    scratch: Floats
    recent: Floats
    committee: Floats
    runs: Floats
    counters: Floats
    z: Floats
    columns: Ints


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
    d = len(stretch)
    recent = np.zeros((RECENT, d) if sigma is not None and len(sigma) == d else (1, 1))
    sigma, committee = (np.zeros((1, 1)) if part is None else part for part in (sigma, committee))
    weights, scratch = np.zeros((2, d))
    runs, z, columns = np.zeros(len(committee)), np.zeros((1, d)), np.arange(d)
    return State(weights, stretch, sigma, scratch, recent, committee, runs, np.zeros(5), z, columns)


@compiled
def learn(rows: Rows, lists: Lists, order: Ints, draws: Floats, rule: Rule, state: State, scores: Floats) -> None:
    """Update from the queries in order; before each, write the scores of its documents unless scores is empty.

    draws holds limit numbers in [0, 1) for each query of order that has more pairs than limit.
    """
    longest = lists.limit
    for q in order:
        longest = max(longest, lists.starts[q + 1] - lists.starts[q])
    better, worse = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
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
        some = 0 < lists.limit < lists.pairs[q]
        for p in range(a, a + 1 if some else b):
            if some:
                count = draw_pairs(lists, q, draws[drawn : drawn + lists.limit], better, worse)
                drawn += count
            else:
                count = pairs_of(lists, p, a, b, better, worse)
            learn_listed(rows, better[:count], worse[:count], rule, state)


@compiled
def pairs_of(lists: Lists, p: int, a: int, b: int, better: Ints, worse: Ints) -> int:
    """Overwrite better and worse with the pairs of the document at place p of a query, a to b; return how many."""
    count, i = 0, lists.rows[p]
    for r in range(a if lists.by_worse else p + 1, b):
        j = lists.rows[r]
        above = lists.grades[i] > lists.grades[j]
        if lists.grades[i] < lists.grades[j] or (above and not lists.by_worse):
            better[count], worse[count] = i if above else j, j if above else i
            count += 1
    return count


@compiled
def draw_pairs(lists: Lists, q: int, draws: Floats, better: Ints, worse: Ints) -> int:
    """Overwrite better and worse with pairs of query q, drawn uniformly with replacement; return how many.

    There is one for each number in draws.
    """
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
        g, above = 0, k  # before[g] <= number < before[above]
        while above - g > 1:
            middle = (g + above) // 2
            if before[middle] <= number:
                g = middle
            else:
                above = middle
        others = b - a - first[g + 1] + first[g]
        p, r = first[g] + (number - before[g]) // others, a + (number - before[g]) % others
        if r >= first[g]:
            r += first[g + 1] - first[g]
        better[t], worse[t] = lists.by_grade[max(p, r)], lists.by_grade[min(p, r)]
    return len(draws)


@compiled
def learn_listed(rows: Rows, better: Ints, worse: Ints, rule: Rule, state: State) -> None:
    """Update from the pairs of rows better[t] and worse[t], one after the other."""
    z, columns, counters = state.z, state.columns, state.counters
    for t in range(len(better)):
        m = difference(rows, better[t], worse[t], z, columns)
        margin = product(rows, z, columns, m, state.weights)
        counters[1] += 1.0
        step = 0.0
        if rule.kind >= PERCEPTRON:
            if margin > 0.0:
                counters[3] += 1.0
                continue
            counters[2] += 1.0
            if rule.kind == COMMITTEE:
                enter(state)
            counters[3] = 0.0
            step = 1.0
        else:
            loss = 1.0 - margin
            if not loss > 0.0:
                continue
            counters[2] += loss * loss if rule.kind != BOUNDED else loss
            if rule.kind == FULL:
                full_step(rule, state, rows, m, loss)
            elif rule.kind == DIAGONAL:
                diagonal_step(rule, state, rows, m, loss)
            else:
                square = stretched_square(rows, z, columns, m, state.stretch)
                if square == np.inf:
                    state.weights[0] = np.nan  # the caller reports the overflow
                elif square > 0.0:
                    bounded = rule.kind == BOUNDED
                    step = min(rule.strength, loss / square) if bounded else loss / (square + 0.5 / rule.strength)
        if step > 0.0:
            add(rows, z, columns, m, step, state.stretch, state.weights)
    if state.counters[4] > 0.0:
        subtract_recent(state)


@compiled
def shortest_run(state: State) -> int:
    """Return the hypothesis of the committee that has the shortest run, the first of equal ones."""
    shortest = 0
    for h in range(1, len(state.runs)):
        if state.runs[h] < state.runs[shortest]:
            shortest = h
    return shortest


@compiled
def enter(state: State) -> None:
    """Replace the hypothesis of the shortest run in the committee by the current one if its run is longer."""
    shortest = shortest_run(state)
    if state.counters[3] > state.runs[shortest]:
        state.runs[shortest] = state.counters[3]
        for c in range(len(state.weights)):
            state.committee[shortest, c] = state.weights[c]


@compiled
def full_step(rule: Rule, state: State, rows: Rows, m: int, loss: float) -> None:
    """Take the step of FULL. Cost: d^2.

    Sigma is sigma less the outer products of the rows of recent with themselves. Four rows of sigma are added at once,
    so that v is met less often.
    """
    z, columns, v, sigma, recent = state.z, state.columns, state.scratch, state.sigma, state.recent
    d, known = len(v), int(state.counters[4])
    for c in range(d):
        v[c] = 0.0
    for k in range(0, m - 3, 4):
        f0, f1, f2, f3 = z[0, k], z[0, k + 1], z[0, k + 2], z[0, k + 3]
        if f0 == 0.0 and f1 == 0.0 and f2 == 0.0 and f3 == 0.0:
            continue
        r0, r1, r2, r3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        for c in range(d):
            v[c] += (f0 * sigma[r0, c] + f1 * sigma[r1, c]) + (f2 * sigma[r2, c] + f3 * sigma[r3, c])
    for k in range(m // 4 * 4, m):
        factor, row = z[0, k], columns[k]
        for c in range(d):
            v[c] += factor * sigma[row, c]
    for s in range(known):
        inner = product(rows, z, columns, m, recent[s])
        for c in range(d):
            v[c] -= inner * recent[s, c]
    total = rule.strength + product(rows, z, columns, m, v)
    if not total < np.inf:
        state.weights[0] = np.nan  # the caller reports the overflow
        return
    step, root = loss / total, 1.0 / np.sqrt(total)
    for c in range(d):
        state.weights[c] += step * v[c]
        recent[known, c] = root * v[c]
    state.counters[4] += 1.0
    if known + 1 == RECENT:
        subtract_recent(state)


@compiled
def subtract_recent(state: State) -> None:
    """Bring sigma up to date. It stays symmetric to the bit: u_i u_j is u_j u_i, subtracted in the same order."""
    sigma, recent, d = state.sigma, state.recent, len(state.weights)
    known = int(state.counters[4])
    if known == 0:
        return
    for s in range(known, RECENT):
        for c in range(d):
            recent[s, c] = 0.0
    for r in range(d):
        f0, f1, f2, f3 = recent[0, r], recent[1, r], recent[2, r], recent[3, r]
        f4, f5, f6, f7 = recent[4, r], recent[5, r], recent[6, r], recent[7, r]
        for c in range(d):
            first = (f0 * recent[0, c] + f1 * recent[1, c]) + (f2 * recent[2, c] + f3 * recent[3, c])
            second = (f4 * recent[4, c] + f5 * recent[5, c]) + (f6 * recent[6, c] + f7 * recent[7, c])
            sigma[r, c] -= first + second
    state.counters[4] = 0.0


@compiled
def diagonal_step(rule: Rule, state: State, rows: Rows, m: int, loss: float) -> None:
    """Take the step of DIAGONAL. Cost: the stored values of the pair."""
    z, columns, sigma = state.z, state.columns, state.sigma[0]
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
def current_weights(rule: Rule, state: State) -> Floats:
    """Return the model's weights, (d,): w, or the mean of the committee by runs, the current hypothesis a candidate."""
    if rule.kind != COMMITTEE:
        return state.weights
    shortest = shortest_run(state)
    enters = state.counters[3] > state.runs[shortest]
    mean, total = state.scratch, 0.0
    for c in range(len(mean)):
        mean[c] = 0.0
    for h in range(len(state.runs)):
        mine = h == shortest and enters
        run = state.counters[3] if mine else state.runs[h]
        if run > 0.0:
            for c in range(len(mean)):
                mean[c] += run * (state.weights[c] if mine else state.committee[h, c])
            total += run
    if total > 0.0:
        for c in range(len(mean)):
            mean[c] /= total
    return mean
