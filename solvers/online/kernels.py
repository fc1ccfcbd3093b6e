"""Online updates from one pair at a time, and the list of the pairs of each query.

z = x_i - x_j, document i of the higher grade; m = w'z; S the diagonal matrix of stretch. Steps with S = factors squared
equal steps on features multiplied by their factors, with weights divided by them; so features are never scaled.

FIRST_ORDER  l = max(0, 1 - m) > 0: w += l / (z'Sz + 1/(2C)) S z                                          (PA-II)
BOUNDED      l > 0: w += min(C, l / z'Sz) S z                                                             (PA-I)
FULL         l > 0: b = z'Sigma z + gamma; w += l / b Sigma z; Sigma -= Sigma z (Sigma z)' / b            (AROW)
DIAGONAL     the same with the diagonal of Sigma alone
PERCEPTRON   m <= 0: w += S z
COMMITTEE    the same; before, w replaces the hypothesis of the shortest run of correct pairs if its run is longer

A pair of weight x, that of i times that of j, is learned from as from x such pairs, one after the other: their steps
add up to a formula in x, for DIAGONAL but for what it neglects. Pairs that are drawn are drawn by their weights, and
count once then.

FULL and DIAGONAL are in online.solar: a kernel compiles no rule that is not used with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.rows import MatrixRows, add, difference, fetch_row, product, stretched_square
from ranktune.solvers.online.weighted_draws import draw_by_weight

FIRST_ORDER, BOUNDED, FULL, DIAGONAL, PERCEPTRON, COMMITTEE = range(6)

RECENT = 8
"""Steps of FULL after which sigma is brought up to date: a single pass over it for all of them, instead of a pass for
each."""

AHEAD = 4
"""So many pairs ahead, dense rows are fetched: drawn pairs lie anywhere in memory, and waiting takes longer than the
arithmetic."""


class UpdateRule(NamedTuple):
    """One of the six updates above, with its C or gamma (1 where it has none)."""

    kind: int
    strength: float


class OnlineState(NamedTuple):
    """The state that updates change.

    weights    (d,) w                                stretch   (d,) the diagonal of S
    sigma      (d, d) Sigma or (1, d) its diagonal   scratch   (d,)
    recent     (RECENT, d) of FULL: rows whose outer products are to be subtracted from sigma
    committee  (size, d) hypotheses                  runs      (size,) correct pairs in a row of each hypothesis
    counters   (5,) queries seen, pairs seen, sum of the losses before each step, run of w, rows in recent
    z          (1, d) the difference of a pair       columns   (d,) its columns; of dense rows 0, 1, 2 ...

    sigma, recent and committee are (1, 1) where the rule does not use them.
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


class VisitedLists(NamedTuple):
    """The queries in the order in which their documents and pairs are visited.

    grades    (n_documents,)              starts    (n_queries + 1,)
    rows      (n_documents,) the rows of each query in the order of visits
    by_grade  (n_documents,) the rows of each query by grade, for sampling; empty where nothing is sampled
    pairs     (n_queries,)                limit     pairs that are sampled from a query with more; 0: never
    by_worse  whether each document is paired with all better ones instead of all later ones
    copies    (n_documents,) the weights of the documents, empty where each counts once    mass  those of by_grade
    """

    grades: Floats
    starts: Ints
    rows: Ints
    by_grade: Ints
    pairs: Ints
    limit: int
    by_worse: bool
    copies: Floats
    mass: Floats


def new_state(stretch: Floats, sigma: Floats | None = None, committee: Floats | None = None) -> OnlineState:
    """Return the state before the first pair, with w = 0."""
    d = len(stretch)
    recent = np.zeros((RECENT, d) if sigma is not None and len(sigma) == d else (1, 1))
    sigma, committee = (np.zeros((1, 1)) if part is None else part for part in (sigma, committee))
    weights, scratch = np.zeros((2, d))
    runs, z, columns = np.zeros(len(committee)), np.zeros((1, d)), np.arange(d)
    return OnlineState(weights, stretch, sigma, scratch, recent, committee, runs, np.zeros(5), z, columns)


@compiled
def list_pairs(
    lists: VisitedLists, order: Ints, first: int, last: int, draws: Floats, pairs: Ints, weights: Floats
) -> int:
    """Overwrite pairs, (2, n), with the better and worse rows of the queries in order, as visited; return how many.

    weights, (n,), are overwritten with the weights of the pairs, unless documents have none.

    draws holds limit numbers in [0, 1) for each query of order that has more pairs than limit. Of the other queries,
    the pairs of the documents at the places first to last count.
    """
    count, drawn = 0, 0
    better, worse = pairs[0], pairs[1]
    weights[:] = 1.0
    for q in order:
        a, b = lists.starts[q], lists.starts[q + 1]
        if 0 < lists.limit < lists.pairs[q]:
            end, of_query = count + lists.limit, draws[drawn : drawn + lists.limit]
            if len(lists.mass) > 0:
                draw_by_weight(lists.grades, lists.by_grade, lists.mass, a, b, of_query, pairs[:, count:end])
            else:
                draw_pairs(lists, q, of_query, better[count:end], worse[count:end])
            count, drawn = end, drawn + lists.limit
            continue
        for p in range(max(a, first), min(b, last)):
            i = lists.rows[p]
            for r in range(a if lists.by_worse else p + 1, b):
                j = lists.rows[r]
                above = lists.grades[i] > lists.grades[j]
                if lists.grades[i] < lists.grades[j] or (above and not lists.by_worse):
                    better[count], worse[count] = i if above else j, j if above else i
                    if len(lists.copies) > 0:
                        weights[count] = lists.copies[i] * lists.copies[j]
                    count += 1
    return count


@compiled
def draw_pairs(lists: VisitedLists, q: int, draws: Floats, better: Ints, worse: Ints) -> None:
    """Overwrite better and worse with pairs of query q, drawn uniformly with replacement by the numbers in draws."""
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


@compiled
def learn(rows: MatrixRows, better: Ints, worse: Ints, weights: Floats, rule: UpdateRule, state: OnlineState) -> None:
    """Update from the pairs of rows better[t] and worse[t], one after the other, by a rule of the first order.

    weights are theirs, empty where all are 1.
    """
    z, columns, counters = state.z, state.columns, state.counters
    for t in range(len(better)):
        if t + AHEAD < len(better):
            fetch_row(rows.dense, better[t + AHEAD])
            fetch_row(rows.dense, worse[t + AHEAD])
        m = difference(rows, better[t], worse[t], z, columns)
        margin = product(rows, z, columns, m, state.weights)
        counters[1] += 1.0
        step = weight = weights[t] if len(weights) > 0 else 1.0
        if rule.kind >= PERCEPTRON:
            if margin > 0.0:
                counters[3] += weight
                continue
            if weight > 1.0:  # the first of these pairs may be enough
                square = stretched_square(rows, z, columns, m, state.stretch)
                step = min(weight, np.floor(-margin / square) + 1.0) if square > 0.0 else weight
            counters[2] += step
            if rule.kind == COMMITTEE:
                enter(state)
            counters[3] = weight - step
        else:
            loss = 1.0 - margin
            if not loss > 0.0:
                continue
            counters[2] += weight * (loss * loss if rule.kind == FIRST_ORDER else loss)
            square = stretched_square(rows, z, columns, m, state.stretch)
            if square == np.inf:
                state.weights[0] = np.nan  # the caller reports the overflow
            if not 0.0 < square < np.inf:
                continue
            if rule.kind == BOUNDED:
                step = min(weight * rule.strength, loss / square)
            else:
                step = loss / (square + 0.5 / rule.strength)
                if weight != 1.0:  # each leaves the same share of the loss
                    step = loss / square * -np.expm1(weight * np.log1p(-square * step / loss))
        add(rows, z, columns, m, step, state.stretch, state.weights)


@inlined
def enter(state: OnlineState) -> None:
    """Replace the hypothesis of the shortest run in the committee by the current one if its run is longer."""
    shortest = state.runs.argmin()
    if state.counters[3] > state.runs[shortest]:
        state.runs[shortest] = state.counters[3]
        state.committee[shortest] = state.weights


def current_weights(rule: UpdateRule, state: OnlineState) -> Floats:
    """Return a copy of the model's weights, (d,): w, or the mean of the committee by runs, w itself a candidate."""
    if rule.kind != COMMITTEE:
        return state.weights.copy()
    runs, committee, shortest, run = state.runs.copy(), state.committee.copy(), state.runs.argmin(), state.counters[3]
    if run > runs[shortest]:
        runs[shortest], committee[shortest] = run, state.weights
    total = runs.sum()
    return np.asarray((runs[:, None] * committee).sum(axis=0) / total if total > 0.0 else np.zeros_like(state.weights))
