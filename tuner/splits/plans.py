"""Validation plans: how one configuration is scored on the development queries.

With folds, a model of some queries is scored on the others. A progressive plan is for one-pass rankers: in several
orders of all queries, each query is ranked before it is learnt from, as it would be in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Ints, stored_arrays
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.files.archives import read_archive, write_archive
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.splits.digests import distinct

PLAN, FRESH, GIVEN = "plan", "fresh", "given"
"""Names of the plans of a problem: that of the trials, another one for the trials that it cannot separate, and the
split as given, where the plan deals it anew."""

LARGE_BYTES, LARGE_QUERIES = 2**31, 5_000
"""Bytes of features and number of queries from which on the first fold alone scores trials: each fold is a copy on
disk, and one of so many queries tells configurations apart."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Numbers of the development queries to fit and to score, (n,) each."""

    train: Ints
    vali: Ints


@dataclass(frozen=True, eq=False)
class Progressive:
    """Orders of all development queries, (n_queries,) each."""

    orders: tuple[Ints, ...]


StoredPlan: TypeAlias = tuple[Fold, ...] | Progressive


def query_folds(queries: Queries, folds: int, seed: int, stream: int = 1, repeats: int = 1) -> tuple[Fold, ...]:
    """Deal the queries into folds at random; each fold is scored by a model of the others.

    Equal queries (same documents and grades) come into one fold, so that none is scored by a model that has seen it.
    Folds are stratified by the highest grade of a query. With `repeats`, the queries are dealt that many times.
    """
    if folds < 2:
        raise ParameterError(f"folds={folds}: cross-validation needs at least 2 folds.")
    if queries.n_queries < folds:
        hint = " (all rows are one query: is the query id missing?)" if queries.n_queries == 1 else ""
        raise DataError(
            f"{queries.n_queries} {'query' if queries.n_queries == 1 else 'queries'} cannot be dealt into {folds} "
            f"folds: a query is never split. Give a validation file, or fewer folds, or more queries{hint}."
        )
    content = distinct(queries)
    n_distinct = int(content.max()) + 1
    if n_distinct < folds:
        raise DataError(
            f"only {n_distinct} of {queries.n_queries} queries differ in their documents and grades: they cannot be "
            f"dealt into {folds} folds, since no query may be both fitted and scored. Give a validation file, or "
            "fewer folds, or more queries."
        )
    highest = np.maximum.reduceat(queries.grades, queries.starts[:-1])
    of_content = np.zeros(n_distinct)
    of_content[content] = highest
    generator = np.random.default_rng([seed, stream])
    dealt = []
    for _ in range(repeats):
        order = generator.permutation(n_distinct)
        order = order[np.argsort(of_content[order], kind="stable")]
        fold_of = np.empty(n_distinct, dtype=np.int64)
        fold_of[order] = np.arange(n_distinct) % folds
        dealt += [
            Fold(np.flatnonzero(fold_of[content] != k), np.flatnonzero(fold_of[content] == k)) for k in range(folds)
        ]
    return tuple(dealt)


def training_overlap(plan: StoredPlan) -> float:
    """Return how many queries are scored for each that a model learns from, 0 where only one model is scored.

    Models of folds learn from each other's queries, so that their scores are not independent. Of folds forward in time
    those of the later ones do.
    """
    if isinstance(plan, Progressive) or len(plan) < 2:
        return 0.0
    scored = len(np.unique(np.concatenate([fold.vali for fold in plan])))
    return scored / float(np.mean([len(fold.train) for fold in plan]))


def is_large(queries: Queries) -> bool:
    """Return whether one fold of the queries is enough to score configurations on."""
    size = sum(array.nbytes for array in stored_arrays(queries.features))
    return size >= LARGE_BYTES and queries.n_queries >= LARGE_QUERIES


def random_orders(queries: Queries, permutations: int, seed: int, stream: int = 1) -> Progressive:
    """Return that many random orders of the queries."""
    generator = np.random.default_rng([seed, stream])
    return Progressive(tuple(generator.permutation(queries.n_queries) for _ in range(permutations)))


def fresh_plan(plan: StoredPlan, development: Queries, seed: int) -> StoredPlan:
    """Return a plan of the same kind that no trial was scored by; an empty one for too few queries, or large data.

    There is none where times are known: other folds forward in time would leave out the earliest queries too.
    """
    if development.n_queries < 2 * POLICY.scoring.folds or is_large(development) or development.times is not None:
        return ()
    if isinstance(plan, Progressive):
        return random_orders(development, len(plan.orders), seed, stream=3)
    return query_folds(development, POLICY.scoring.folds, seed, stream=3)


def save_plan(plan: StoredPlan, path: Path) -> None:
    """Write a plan as an npz file of whole numbers."""
    if isinstance(plan, Progressive):
        parts = {f"order{k}": order for k, order in enumerate(plan.orders)}
    else:
        parts = {f"{part}{k}": getattr(fold, part) for k, fold in enumerate(plan) for part in ("train", "vali")}
    atomic_write(path, write_archive(parts))


def load_plan(path: Path) -> StoredPlan:
    """Return a saved plan, an empty one if there is no file. Raises Damaged if it is not what was written."""
    if not path.exists():
        return ()
    parts = {name: np.asarray(values, dtype=np.int64) for name, values in read_archive(path).items()}
    if "order0" in parts:
        return Progressive(tuple(parts[f"order{k}"] for k in range(len(parts))))
    return tuple(Fold(parts[f"train{k}"], parts[f"vali{k}"]) for k in range(len(parts) // 2))
