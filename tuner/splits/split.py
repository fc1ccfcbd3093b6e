"""A split of graded queries, its development queries, and the validation plan that scores a configuration on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.errors import DataError, ParameterError, warn
from ranktune.solvers.data.blocks import QuerySplit, block_of
from ranktune.solvers.data.gathering import Gathering
from ranktune.solvers.data.grades import check_learnable, with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.splits.digests import NOTHING, query_digests, scale_of, sketches
from ranktune.tuner.splits.forward import before, forward_folds, latest, true_order
from ranktune.tuner.splits.gaps import gap_of
from ranktune.tuner.splits.plans import Fold, Progressive, StoredPlan, is_large, query_folds, random_orders

IN_MEMORY = Gathering()
ALIKE = 1e-7
"""Distance of sketches of queries that are equal but for noise, such as that of rounding to float32."""


def with_test(split: QuerySplit, seed: int, gathering: Gathering = IN_MEMORY, gap: str = "0") -> QuerySplit:
    """Return split with test queries: those given, or a fifth of the training queries, by time the latest.

    There are none if fewer than 10 training queries would remain; the study then reports validation only. Where times
    are known, only queries that lie before the test queries, by more than the gap, are left to learn from.
    """
    if split.train.times is not None:
        return _with_latest(split, gathering, gap_of(gap, split.train))
    n_test = int(POLICY.scoring.test_share * split.train.n_queries)
    if split.test is not None or split.train.n_queries - n_test < 10:
        return split
    order = np.random.default_rng([seed, 0]).permutation(split.train.n_queries)
    aside, rest = np.sort(order[:n_test]), np.sort(order[n_test:])
    return replace(split, train=gathering.select(split.train, rest), test=gathering.select(split.train, aside))


def _with_latest(split: QuerySplit, gathering: Gathering, gap: float) -> QuerySplit:
    """Return split with test queries that lie after all others."""
    _check_times(split)
    train, vali, test = split.train, split.vali, split.test
    if test is None:
        fold = latest(train.time_of_query, POLICY.scoring.test_share, gap)
        if len(fold.train) < 10:
            return split
        test, train = gathering.select(train, fold.vali), gathering.select(train, fold.train)
    start = test.time_of_query.min() - gap
    return replace(
        split,
        train=_earlier("train", train, start, gathering),
        vali=None if vali is None else _earlier("vali", vali, start, gathering),
        test=test,
    )


def _check_times(split: QuerySplit) -> None:
    """Raise DataError where some of the queries have times, and others none or times of another kind."""
    parts = [part for part in (split.train, split.vali, split.test) if part is not None]
    if len({(part.times is None, part.dated) for part in parts}) > 1:
        raise DataError(
            "training, validation and test queries have times of different kinds, or some have none. Give each table "
            "the column of times, with dates in all of them or numbers in all; or leave time out."
        )


def _earlier(name: str, queries: Queries, start: float, gathering: Gathering) -> Queries:
    """Return the queries before the start, and warn (RankTuneWarning) of the others."""
    earlier = np.flatnonzero(queries.time_of_query < start)
    if len(earlier) == queries.n_queries:
        return queries
    message = (
        f"{queries.n_queries - len(earlier)} of {queries.n_queries} {_CALLED[name]} queries are not before the test"
    )
    if not len(earlier):
        raise DataError(f"{message}: nothing is left. Give later test queries, or a smaller gap; or leave time out.")
    warn(f"{message}: they are left out.")
    return gathering.select(queries, earlier)


def by_time(split: QuerySplit, *, tested: bool) -> QuerySplit:
    """Return split, whose training queries are in the order of time, with validation and test queries.

    Where they are not given, the latest fifth of the training queries is the test (if tested), and the latest fifth of
    the others validates. Raises DataError where too few would remain.
    """
    train, vali, test = split.train, split.vali, split.test
    if tested and test is None:
        train, test = _latest_aside(train)
    if vali is None:
        train, vali = _latest_aside(train)
    return replace(split, train=train, vali=vali, test=test)


def _latest_aside(queries: Queries) -> tuple[Queries, Queries]:
    """Return the earlier four fifths of the queries, and the others."""
    count = queries.n_queries - int(POLICY.scoring.test_share * queries.n_queries)
    if count in (0, queries.n_queries):
        raise DataError(f"{queries.n_queries} queries are too few to set the latest fifth aside. Give more queries.")
    numbers = np.arange(queries.n_queries)
    return queries.select(numbers[:count]), queries.select(numbers[count:])


WHOLE = "all"
"""Name of the split of a nested plan that gives the final model; it has no test queries."""


def nested_splits(
    split: QuerySplit, outer: int, seed: int, gathering: Gathering = IN_MEMORY, gap: str = "0"
) -> list[QuerySplit]:
    """Return a split for each outer fold, whose queries are the test queries, and the split WHOLE of all queries.

    Where times are known, the training queries of a split lie before its test queries.
    """
    _check_times(split)
    parts = [part for part in (split.train, split.vali, split.test) if part is not None]
    queries = parts[0] if len(parts) == 1 else gathering.concatenate(parts)
    if queries.times is None:
        folds = query_folds(queries, outer, seed, stream=6)
    else:
        folds = forward_folds(queries, outer, gap_of(gap, queries), exactly=True)
    outer_splits = [
        QuerySplit(f"outer{k}", gathering.select(queries, fold.train), test=gathering.select(queries, fold.vali))
        for k, fold in enumerate(folds, start=1)
    ]
    return [*outer_splits, QuerySplit(WHOLE, queries)]


@dataclass(frozen=True, eq=False)
class Development:
    """The queries that trials are fitted to and scored on: the training queries, then n_vali validation queries."""

    queries: Queries
    n_vali: int

    @classmethod
    def of(cls, split: QuerySplit, gathering: Gathering = IN_MEMORY) -> Self:
        """Return the training and the validation queries of a split, if there are any, in one."""
        if split.vali is None:
            return cls(split.train, 0)
        return cls(gathering.concatenate([split.train, split.vali]), split.vali.n_queries)


def validation_plan(
    development: Development,
    folds: int | None,
    seed: int,
    *,
    strict: bool = False,
    repeats: int = 1,
    permutations: int | None = None,
    gap: str = "0",
) -> StoredPlan:
    """Return the validation plan of development queries.

    The queries are dealt into folds (five if `folds` is None), `repeats` times; of large data only the first fold is
    scored if `folds` is None. Given validation queries are scored alone if `strict`, or if they are many and `folds`
    is None. With `permutations`, the plan is progressive, with that
    many orders of all queries. Raises DataError if `strict` and there are no validation queries.

    Where times are known, the folds are forward in time (of large data the latest is scored), the latest fifth
    validates if `strict` and none are given, and a progressive plan has the true order alone.
    """
    queries, n_vali = development.queries, development.n_vali
    timed = queries.times is not None
    if gap != "0" and not timed:
        raise ParameterError(f"gap='{gap}' is one of times, and the data have none: name their column (time=).")
    if timed and repeats > 1:
        raise ParameterError(f"repeats={repeats}: there is one order of time, and one way of folds. Leave repeats out.")
    if timed and strict and not n_vali:
        fold = latest(queries.time_of_query, POLICY.scoring.test_share)
        return (_learnable(queries, before(queries, fold, gap_of(gap, queries))),)
    if strict and not n_vali:
        raise DataError(
            "plan 'split' keeps to given validation queries, and there are none. Give them (vali=), or leave the plan."
        )
    usual = folds is None and permutations is None and repeats == 1
    if n_vali and (strict or (usual and n_vali >= POLICY.scoring.given)):
        check_learnable(block_of(queries, 0, queries.n_queries - n_vali), "the training queries")
        parts = as_given(development, gap)
        return (_learnable(queries, *parts),) if timed else parts
    check_learnable(queries, "the queries")
    if permutations is not None:
        return Progressive((true_order(queries),)) if timed else random_orders(queries, permutations, seed)
    if timed:
        forward = forward_folds(queries, folds or POLICY.scoring.folds, gap_of(gap, queries), exactly=folds is not None)
        return forward[-1:] if folds is None and is_large(queries) else forward
    plan = query_folds(queries, folds or POLICY.scoring.folds, seed, repeats=repeats)
    return plan[:1] if folds is None and repeats == 1 and is_large(queries) else plan


def _learnable(queries: Queries, fold: Fold) -> Fold:
    """Return a fold. Raises DataError where its training queries, before those to score, teach nothing."""
    if not with_pairs(queries)[fold.train].any():
        raise DataError(
            "before the validation queries, less the gap, there are no queries to learn from. Give later validation "
            "queries, or none, or a smaller gap."
        )
    return fold


def as_given(development: Development, gap: str = "0") -> tuple[Fold, ...]:
    """Return the plan that scores the given validation queries alone; an empty one without any, or nothing to learn.

    Where times are known, only training queries before them are fitted.
    """
    count, n_vali = development.queries.n_queries, development.n_vali
    if not n_vali or not block_of(development.queries, 0, count - n_vali).has_pairs:
        return ()
    fold, queries = Fold(np.arange(count - n_vali), np.arange(count - n_vali, count)), development.queries
    return (fold if queries.times is None else before(queries, fold, gap_of(gap, queries)),)


def without_shared(split: QuerySplit, gathering: Gathering = IN_MEMORY) -> QuerySplit:
    """Return split with each query in one part only: in test, else in validation, else in training.

    Warns (RankTuneWarning) with the number of queries left out. Raises DataError if a part has no pairs left.
    """
    parts = {name: getattr(split, name) for name in ("test", "vali", "train")}
    present = {name: part for name, part in parts.items() if part is not None}
    if len(present) == 1:
        return split
    from scipy.spatial import cKDTree  # only where there are several parts

    scale = scale_of([part.features for part in present.values()])
    owners: dict[int, str] = {}
    trees: list[tuple[str, cKDTree]] = []
    for name, part in present.items():
        digests, sketch = query_digests(part), sketches(part, scale)
        learnt = np.array(digests) != NOTHING
        near = {other: learnt & np.isfinite(tree.query(sketch, distance_upper_bound=ALIKE)[0]) for other, tree in trees}
        shared = np.array([digest in owners for digest in digests])
        others = {owners[digest] for digest in digests if digest in owners} | {key for key in near if near[key].any()}
        if others:
            present[name] = _without(name, part, np.any([shared, *near.values()], axis=0), sorted(others), gathering)
        owners |= {digest: name for digest in digests if digest != NOTHING and digest not in owners}
        trees.append((name, cKDTree(sketch[learnt])))
    return replace(split, **present)


_CALLED = {"train": "training", "vali": "validation", "test": "test"}


def _without(name: str, part: Queries, shared: NDArray[np.bool_], others: list[str], gathering: Gathering) -> Queries:
    message = (
        f"{np.count_nonzero(shared)} of {part.n_queries} {_CALLED[name]} queries are also among the "
        f"{' and '.join(_CALLED[other] for other in others)} queries (same documents and grades, but for noise)"
    )
    left = None if shared.all() else gathering.select(part, np.flatnonzero(~shared))
    if left is None or not left.has_pairs:
        remedy = "leave vali out: training queries are then cross-validated"
        if "test" in others:
            remedy = "give other test queries, or none: a fifth of the training queries is then set aside"
        raise DataError(
            f"{message}, and nothing is left to learn from. A score on the training queries says nothing; {remedy}."
        )
    warn(f"{message}: they are left out of the {_CALLED[name]} queries.")
    return left
