"""A split of judged queries, and the validation plan that scores a configuration on it.

development  train and validation queries together, (train first)
plan         pairs of query numbers of development: learn from the first, score the second
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ranktune.solvers.arrays import Ints
from ranktune.solvers.errors import DataError, ParameterError
from ranktune.solvers.queries import Queries, concatenate


@dataclass(frozen=True, eq=False)
class Split:
    """Training queries, and validation and test queries where the user gave them."""

    name: str
    train: Queries
    vali: Queries | None = None
    test: Queries | None = None


@dataclass(frozen=True, eq=False)
class Fold:
    """Numbers of the development queries to learn from and to score, (n,) each."""

    train: Ints
    vali: Ints


Plan: TypeAlias = tuple[Fold, ...]

TEST_SHARE = 0.2
DEFAULT_FOLDS = 5


def with_test(split: Split, seed: int) -> Split:
    """Return split with a test set: the one given, or a fifth of the training queries set aside.

    Nothing is set aside where fewer than 10 queries would remain; then the study reports validation only.
    """
    n_test = int(TEST_SHARE * split.train.n_queries)
    if split.test is not None or split.train.n_queries - n_test < 10:
        return split
    order = np.random.default_rng([seed, 0]).permutation(split.train.n_queries)
    aside, kept = np.sort(order[:n_test]), np.sort(order[n_test:])
    return replace(split, train=split.train.select(kept), test=split.train.select(aside))


def validation_plan(split: Split, folds: int | None, seed: int) -> tuple[Queries, Plan]:
    """Return the development queries of split and how to score on them.

    With folds, the development queries are dealt into that many parts by query; each is scored by what was
    learnt from the others. Without, the given validation queries are scored; where none were given, five folds.
    """
    if folds is None and split.vali is not None:
        development = concatenate([split.train, split.vali])
        numbers = np.arange(development.n_queries)
        _check_learnable(split.train, "the training queries")
        return development, (Fold(numbers[: split.train.n_queries], numbers[split.train.n_queries :]),)
    development = split.train if split.vali is None else concatenate([split.train, split.vali])
    _check_learnable(development, "the queries")
    return development, query_folds(development, folds or DEFAULT_FOLDS, seed)


def fresh_folds(development: Queries, seed: int) -> Plan:
    """Return folds over all development queries that no trial was scored on; none where queries are too few."""
    if development.n_queries < 2 * DEFAULT_FOLDS:
        return ()
    return query_folds(development, DEFAULT_FOLDS, seed, stream=3)


def query_folds(queries: Queries, folds: int, seed: int, stream: int = 1) -> Plan:
    """Deal the queries into folds at random and return, for each, the others to learn from and itself to score."""
    if folds < 2:
        raise ParameterError(f"folds={folds}: cross-validation needs at least 2 folds.")
    if queries.n_queries < folds:
        raise DataError(
            f"{queries.n_queries} queries cannot be dealt into {folds} folds: a query is never split. "
            f"Give a validation file, or fewer folds, or more queries{_grouping_hint(queries)}."
        )
    part = np.random.default_rng([seed, stream]).permutation(queries.n_queries) % folds
    return tuple(Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(folds))


def _grouping_hint(queries: Queries) -> str:
    return " (all rows are one query: is the query id missing?)" if queries.n_queries == 1 else ""


def _check_learnable(queries: Queries, what: str) -> None:
    if not queries.has_pairs:
        lowest, highest = queries.grades.min(), queries.grades.max()
        detail = f"all grades are {lowest:g}" if lowest == highest else "each query has documents of one grade only"
        raise DataError(
            f"there is nothing to learn from {what}: {detail}. "
            "A ranking is learnt from queries that have documents of different grades; check grades and query ids."
        )
