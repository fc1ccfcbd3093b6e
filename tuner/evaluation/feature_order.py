"""The features that a configuration is fitted on: the first of an order that explain the grades well for their cost.

Greedy forward selection by least squares within queries: the grades of each query, without their mean, are regressed on
its features without theirs. A feature has several columns: its value, its rank within the query, which
follows monotone relations, and whether it is missing. Each step takes the group of features that explains most of the
residuals for its share of the limits. That rule can fill the limits with cheap features and leave out an expensive
feature that explains more, so the order by gain alone is made as well, and the better of the two is returned.
Source: Leskovec et al. 2007, "Cost-effective outbreak detection in networks" (the better of both is within a constant
factor of the best set for submodular gains).

n documents, p columns of the regression, d features
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix, dense
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.feature_costs import FEATURE_SET, LEVELS, FeatureBudget, FeatureLimits, GroupedFeatures
from ranktune.tuner.splits.store import read_part

MAX_DOCUMENTS = 50_000
"""Documents of the sample of queries by which features are compared."""
MAX_WORK = 2e10
"""Multiplications of the Gram matrix at most: of many features a smaller sample is taken."""
MAX_FEATURES = 1000
"""Features that are compared jointly; of more those that explain most by themselves for their share of the limits."""
RIDGE = 0.01
"""Penalty, relative to the variance of a column."""
NO_SHARE = 1e-9
"""Share of the limits of features that cost nothing further."""
FULL = 1.0 + 1e-9
"""The share of a limit that may be taken: sums of shares are rounded."""


@dataclass(frozen=True, eq=False)
class FeatureOrder:
    """Features in the order in which they are taken; any first part of them keeps the limits.

    columns  (k,) the features; used: (k,) the share of the limits that they take with those before them, ascending
    """

    columns: Ints
    used: Floats

    def first(self, share: float) -> Ints:
        """Return the features that take this share of the limits at most, ascending; those of the first step if less.

        share is in [0, 1]; the result is empty only where no feature keeps the limits.
        """
        count = int(np.searchsorted(self.used, share + 1e-9, side="right"))
        if count == 0 and len(self.used):
            count = int(np.searchsorted(self.used, self.used[0], side="right"))
        return np.sort(self.columns[:count])


def selected_columns(
    folder: str, numbers: Ints, budget: FeatureBudget | None, parameters: Mapping[str, Value]
) -> Ints | None:
    """Return the features that a configuration is fitted on, ascending; None for all.

    They are chosen by the development queries of these numbers, which it is fitted to.
    """
    level = parameters.get(FEATURE_SET)
    if level is None or budget is None or budget.limits is None:
        return None
    assert isinstance(level, int)
    return _order(folder, numbers.tobytes(), budget).first(level / LEVELS)


@lru_cache(maxsize=32)
def _order(folder: str, numbers: bytes, budget: FeatureBudget) -> FeatureOrder:
    return feature_order(read_part(folder, np.frombuffer(numbers, dtype=np.int64)), budget)


def feature_order(queries: Queries, budget: FeatureBudget) -> FeatureOrder:
    """Return the order of the features of training queries. Raises DataError where none keeps the limits."""
    assert budget.limits is not None
    features = budget.costs.of(queries)
    order = ordered(queries, features, budget.limits)
    if len(order.columns) == 0:
        raise _nothing_fits(features, budget.limits)
    return order


def _nothing_fits(features: GroupedFeatures, limits: FeatureLimits) -> DataError:
    return DataError(
        f"no feature keeps the limits: the cheapest costs {features.cost.min():g}, and the limits are "
        f"cost<={limits.cost:g}, features<={limits.features:g}. Allow more (within=), or change costs."
    )


def check_budget(queries: Queries, budget: FeatureBudget | None) -> None:
    """Raise DataError where the costs of a study do not fit its data, or no feature keeps its limits."""
    if budget is None:
        return
    features = budget.costs.of(queries)
    if budget.limits is None:
        return
    none = np.empty(0, dtype=np.int64)
    shares = [max(budget.limits.shares(features, np.array([k]), none)) for k in range(queries.n_features)]
    if min(shares) > 1.0:
        raise _nothing_fits(features, budget.limits)


def ordered(queries: Queries, features: GroupedFeatures, limits: FeatureLimits) -> FeatureOrder:
    """Return the order of the features of queries whose parts keep the limits."""
    units = _units(features, limits)
    alone = [max(limits.shares(features, unit, np.empty(0, dtype=np.int64))) for unit in units]
    units = [unit for unit, share in zip(units, alone, strict=True) if share <= FULL]
    if not units:
        return FeatureOrder(np.empty(0, dtype=np.int64), np.empty(0))
    columns = np.concatenate(units)
    queries = _sample(queries, min(len(columns), MAX_FEATURES))
    if len(columns) > MAX_FEATURES:
        units = _screened(queries, units, [share for share in alone if share <= FULL])
        columns = np.concatenate(units)
    gram, target, owners = _moments(queries, columns)
    spans = [np.flatnonzero(np.isin(owners, unit)) for unit in units]

    def by_share(gain: Floats, share: Floats) -> Floats:
        return gain / np.maximum(share, NO_SHARE)

    def by_gain(gain: Floats, share: Floats) -> Floats:
        return gain

    orders = [_selected(gram, target, units, spans, features, limits, rule) for rule in (by_share, by_gain)]
    (order, explained), (other, more) = orders
    return other if more > explained + 1e-9 else order


def _units(features: GroupedFeatures, limits: FeatureLimits) -> list[Ints]:
    """Return the units of selection: features where their number is limited, else groups."""
    if limits.features < float("inf"):
        return [np.array([k]) for k in range(len(features.group))]
    order = np.argsort(features.group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(features.group[order])) + 1)


def _sample(queries: Queries, n_features: int) -> Queries:
    """Return a sample of the queries, always the same; all where they are few."""
    most = min(MAX_DOCUMENTS, int(MAX_WORK / (2.0 * n_features) ** 2))
    if queries.n_documents <= most:
        return queries
    drawn = np.random.default_rng(11).permutation(queries.n_queries)
    count = int(np.searchsorted(np.cumsum(queries.lengths[drawn]), most, side="right"))
    return queries.select(np.sort(drawn[: max(count, 1)]))


def _screened(queries: Queries, units: Sequence[Ints], shares: Sequence[float]) -> list[Ints]:
    """Return the units that explain most by themselves for their shares, with about MAX_FEATURES features."""
    explained = np.zeros(queries.n_features)
    for begin in range(0, queries.n_features, 64):
        columns = np.arange(begin, min(begin + 64, queries.n_features))
        values, grades = _within_queries(queries, [_dense(queries, columns)])
        explained[columns] = (values.T @ grades) ** 2
    gain = [explained[unit].sum() / max(share, NO_SHARE) for unit, share in zip(units, shares, strict=True)]
    best = np.argsort(-np.array(gain), kind="stable")
    counts = np.cumsum([len(units[k]) for k in best])
    return [units[k] for k in best[: max(int(np.searchsorted(counts, MAX_FEATURES, side="right")), 1)]]


def _moments(queries: Queries, columns: Ints) -> tuple[Matrix, Floats, Ints]:
    """Return the Gram matrix of the regression (p, p), the products with the grades (p,), and whose each column is."""
    values = _dense(queries, columns)
    missing = np.isnan(values)
    blocks, owners = [values, _ranks(values, queries)], [columns, columns]
    lacking = missing.any(axis=0)
    if lacking.any():
        blocks.append(missing[:, lacking].astype(np.float64))
        owners.append(columns[lacking])
    Z, grades = _within_queries(queries, blocks)
    return Z.T @ Z, Z.T @ grades, np.concatenate(owners)


def _dense(queries: Queries, columns: Ints) -> Matrix:
    return np.asarray(dense(queries.features[:, columns]), dtype=np.float64)


def _ranks(values: Matrix, queries: Queries) -> Matrix:
    """Return the rank of each value within its query, in [0, 1], equal values with their mean rank; NaN stays."""
    from scipy.stats import rankdata  # takes a third of a second to import

    missing = np.isnan(values)
    filled, ranks = np.where(missing, np.inf, values), np.empty_like(values)
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        ranks[a:b] = (rankdata(filled[a:b], axis=0) - 0.5) / (b - a)
    ranks[missing] = np.nan
    return ranks


def _within_queries(queries: Queries, blocks: Sequence[Matrix]) -> tuple[Matrix, Floats]:
    """Return columns and grades without their means by query, columns of unit length, each query weighted alike.

    Missing values are put at the mean.
    """
    weight = np.sqrt(np.repeat(queries.weight_of_query / queries.lengths, queries.lengths))

    def centred(values: Matrix) -> Matrix:
        present = ~np.isnan(values)
        filled = np.where(present, values, 0.0)
        sums = np.add.reduceat(filled, queries.starts[:-1], axis=0)
        counts = np.maximum(np.add.reduceat(present, queries.starts[:-1], axis=0, dtype=np.float64), 1.0)
        differences: Matrix = np.where(present, filled - np.repeat(sums / counts, queries.lengths, axis=0), 0.0)
        return differences * weight[:, None]

    columns = np.hstack([centred(block) for block in blocks])
    lengths = np.linalg.norm(columns, axis=0)
    grades = centred(queries.grades[:, None])[:, 0]
    scale = np.linalg.norm(grades)
    return columns / np.where(lengths > 1e-12, lengths, np.inf), grades / (scale if scale > 0.0 else 1.0)


def _selected(
    gram: Matrix,
    target: Floats,
    units: Sequence[Ints],
    spans: Sequence[Ints],
    features: GroupedFeatures,
    limits: FeatureLimits,
    rule: Callable[[Floats, Floats], Floats],
) -> tuple[FeatureOrder, float]:
    """Return the units in the order of their value while they keep the limits, and what they explain together."""
    gram, target = gram.copy(), target.copy()
    left, paid = list(range(len(units))), np.empty(0, dtype=np.int64)
    cost = count = explained = 0.0
    columns: list[Ints] = []
    used: list[float] = []
    while left:
        shares = [limits.shares(features, units[k], paid) for k in left]
        fitting = [
            (k, share)
            for k, share in zip(left, shares, strict=True)
            if cost + share[0] <= FULL and count + share[1] <= FULL
        ]
        if not fitting:
            break
        left = [k for k, _ in fitting]
        gains = _gains(gram, target, [spans[k] for k in left])
        at = int(np.argmax(rule(gains, np.array([sum(share) for _, share in fitting]))))
        chosen, (more, further) = fitting[at]
        explained, cost, count = explained + gains[at], cost + more, count + further
        columns.append(units[chosen])
        used += [max(cost, count)] * len(units[chosen])
        paid = np.union1d(paid, features.group[units[chosen]])
        left.remove(chosen)
        span = spans[chosen]
        ridge = gram[np.ix_(span, span)] + RIDGE * np.eye(len(span))
        onto = np.linalg.solve(ridge, gram[span])
        target -= onto.T @ target[span]
        gram -= gram[:, span] @ onto
    return FeatureOrder(np.concatenate(columns), np.array(used)), float(explained)


def _gains(gram: Matrix, target: Floats, spans: Sequence[Ints]) -> Floats:
    """Return what the columns of each span explain of the residuals of the grades."""
    gains = np.empty(len(spans))
    lengths = np.array([len(span) for span in spans])
    for length in np.unique(lengths):
        same = np.flatnonzero(lengths == length).tolist()
        span = np.stack([spans[k] for k in same])
        ridge = gram[span[:, :, None], span[:, None, :]] + RIDGE * np.eye(length)
        right = target[span]
        gains[same] = (right * np.linalg.solve(ridge, right[:, :, None])[:, :, 0]).sum(axis=1)
    return gains
