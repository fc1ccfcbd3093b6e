"""RankBoost: boosting of thresholds on single features by the pairs that they order correctly.

    D_1 = the same for all pairs of documents of a query with different grades, times the weights of both documents
    h_t = [x_r > theta] with the largest |r_t|,  r_t = sum over pairs (i, j), y_i > y_j, of D_t(i, j) (h_t(i) - h_t(j))
    a_t = 1/2 log((1 + r_t) / (1 - r_t)),   D_t+1(i, j) proportional to D_t(i, j) exp(-a_t (h_t(i) - h_t(j)))

The share of pairs that the sum of a_t h_t orders wrongly (ties too) is at most the product of sqrt(1 - r_t^2).

Pairs are never stored: documents have potentials instead. The weight of a pair (i, j), y_i > y_j, is
D(i, j) = w x_i x_j exp(f_j - f_i) / Z, w the weight of its query, x those of its documents, f the scores so far: it is
a product of a factor of i and a factor of j. So for any weak ranker h,

    r = sum over pairs of D(i, j) (h_i - h_j) = sum over i of p_i h_i,
    p_i = w x_i ( exp(-f_i) sum of x_j exp(f_j) over worse j - exp(f_i) sum of x_j exp(-f_j) over better j ) / Z

and a single pass over the documents of a query, grade by grade, gives all p. Exponents are relative to the middle of
the query's scores, so that nothing overflows below a difference of 1,400.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Annotated

import numpy as np

from ranktune.solvers.boosting.base import TreeRanker
from ranktune.solvers.boosting.bins import MAX_BINS, Bins, Bytes, binned
from ranktune.solvers.boosting.growth import queries_with_pairs
from ranktune.solvers.boosting.rounds import MAX_ACCURACY, PATIENCE, ROUNDS, STOP, RoundRanker
from ranktune.solvers.boosting.training_queries import whole
from ranktune.solvers.core.arrays import Codes, Floats, Indices, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import When
from ranktune.solvers.data.grades import copies_of, count_pairs, number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.trees import Trees, stumps

VANISHED = 1e-290
"""Total weight of all pairs below which the shares of pairs are rounding errors."""


@with_parameters
class RankBoost(RoundRanker["StumpBooster"], TreeRanker):
    """RankBoost: boosting of thresholds on single features by pairs, a sum of step functions of features.

    Queries without documents of different grades are left out. Cost: sorting each feature once, then reading a byte per
    value in each round; memory: a byte per value.

    {parameters}

    Attributes
    ----------
    features_, thresholds_, alphas_ : ndarray of shape (n_rounds,)
        The weak ranker of each round adds alpha to the score where x > threshold.
    trees_ : Trees
        The same as trees of one split, those of equal thresholds added up.
    score_ : float
        The metric of the best round; NaN with stop="never".
    n_iter_ : int
        The rounds that are kept.

    References
    ----------
    Freund, Iyer, Schapire & Singer 2003, "An Efficient Boosting Algorithm for Combining Preferences", JMLR 4.

    Examples
    --------
    >>> from ranktune.solvers import RankBoost
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = RankBoost(rounds=1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.features_.tolist(), ranker.thresholds_.round(2).tolist()
    ([0], [0.45])
    """

    rounds: Annotated[int, replace(ROUNDS, low=20, high=1000)] = 100
    _: KW_ONLY
    thresholds: Annotated[
        int,
        Param(
            f"The bins of each feature, 2 to {MAX_BINS}, cut at quantiles where it has more values.",
            low=4,
            high=MAX_BINS,
            log=True,
            check=whole(2, MAX_BINS),
        ),
    ] = 64
    average: Annotated[
        str,
        Param("Whether all pairs start with the same weight, or all queries.", choices=("pairs", "queries")),
    ] = "pairs"
    stop: Annotated[str, replace(STOP, searched=("never", "vali"))] = "never"
    patience: Annotated[int, replace(PATIENCE, low=10, high=200, when=When("stop", ("vali",)))] = 50

    space_order = ("rounds", "thresholds", "average", "stop", "patience")

    def _booster(self, queries: Queries, vali: Queries | None, metric: Metric) -> StumpBooster:
        queries = queries_with_pairs(queries)
        by_row = queries.weight_of_document if queries.is_weighted else None
        bins = binned(queries.features, int(self.thresholds), by_row)
        return StumpBooster(queries, vali, bins, self.average == "queries", None if self.stop == "never" else metric)

    def _keep(self, booster: StumpBooster) -> None:
        self.features_ = np.array(booster.features, dtype=np.int64)
        self.thresholds_, self.alphas_ = np.array(booster.thresholds), np.array(booster.alphas)

    @property
    def trees_(self) -> Trees:  # type: ignore[override]
        """The weak rankers as trees of one split, those of equal thresholds added up."""
        return _added_up(self.features_, self.thresholds_, self.alphas_)


def _added_up(features: Ints, thresholds: Floats, alphas: Floats) -> Trees:
    if len(features) == 0:
        return stumps([0], [0.0], [0.0])
    order = np.lexsort((thresholds, features))
    f, t = features[order], thresholds[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(f) != 0) | (np.diff(t) != 0)]))
    return stumps(f[first], t[first], np.add.reduceat(alphas[order], first))


class StumpBooster:
    """The state of boosting: the scores of the training documents, and the stumps so far."""

    def __init__(
        self, queries: Queries, vali: Queries | None, bins: Bins, by_query: bool, metric: Metric | None
    ) -> None:
        self.bins, self._starts, self._metric = bins, queries.starts, metric
        self._watched = queries if vali is None else vali
        n = queries.n_documents
        self._codes, self._n_grades = number_grades(queries.grades, queries.starts)
        self.scores, self._p, self._sums = np.zeros(n), np.empty(n), np.empty(MAX_BINS)
        self._watched_scores = self.scores if vali is None else np.zeros(vali.n_documents)
        self._weights = np.array(queries.weight_of_query)
        if by_query:
            self._weights /= count_pairs(queries.starts, self._codes, self._n_grades, copies=copies_of(queries))
        self._copies = queries.copies
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.alphas: list[float] = []
        self.value, self._bound = float("nan"), 1.0
        self._counts = bins.counts
        self._signs = np.zeros(queries.n_features, dtype=np.int64) if queries.monotone is None else queries.monotone

    def _potentials(self) -> float:
        arguments = (self.scores, self._starts, self._codes, self._n_grades, self._weights, self._copies)
        return float(potentials(*arguments, self._p))

    def round(self) -> bool:
        """Add the best stump; return False where none separates two documents of different grades."""
        Z = self._potentials()
        if not Z > VANISHED:  # every pair is ordered with a margin of hundreds
            return False
        bins = self.bins
        if isinstance(bins.values, np.ndarray):
            f, number, r = best_stump(bins.values, self._counts, self._p, self._sums, self._signs)
        else:
            columns = bins.values
            parts = (columns.data, columns.indices, columns.indptr)
            f, number, r = best_sparse_stump(*parts, self._counts, bins.zero, self._p, self._sums, self._signs)
        r = min(max(r / Z, -MAX_ACCURACY), MAX_ACCURACY)
        if abs(r) < 1e-12:
            return False
        alpha = 0.5 * float(np.log((1.0 + r) / (1.0 - r)))
        self._add(int(f), int(number), alpha)
        self._bound *= float(np.sqrt(1.0 - r * r))
        self.features.append(int(f))
        self.thresholds.append(float(bins.cuts[f][number]))
        self.alphas.append(alpha)
        if self._watched_scores is not self.scores:
            latest = stumps(self.features[-1:], self.thresholds[-1:], self.alphas[-1:])
            self._watched_scores += latest.scores(self._watched.features)
        if self._metric is not None:
            self.value = self._metric.mean(self._watched_scores, self._watched)
        return True

    def objective(self) -> float:
        """Return the bound on the share of pairs that are ordered wrongly."""
        return self._bound

    def _add(self, f: int, number: int, alpha: float) -> None:
        bins = self.bins
        if isinstance(bins.values, np.ndarray):
            add_where_above(bins.values[f], number, alpha, self.scores)
            return
        columns = bins.values
        a, b = columns.indptr[f], columns.indptr[f + 1]
        rest = alpha if bins.zero[f] > number else 0.0
        self.scores += rest
        self.scores[columns.indices[a:b]] += np.where(columns.data[a:b] > number, alpha, 0.0) - rest


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
        total = 0.0
        for i in range(a, b):
            exponential = np.exp(scores[i] - middle)
            worse, better = up[codes[i]] / exponential, down[codes[i] + 1] * exponential
            total += copies[i] * worse
            out[i] = weights[q] * copies[i] * (worse - better)
        Z += weights[q] * total
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
