"""A split of judged queries, and the validation plan that scores a configuration on it.

development  train and validation queries together, (train first)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.errors import DataError
from ranktune.solvers.queries import Queries, concatenate
from ranktune.tuner.plans import DEFAULT_FOLDS, Fold, Plan, query_folds, random_orders


@dataclass(frozen=True, eq=False)
class Split:
    """Training queries, and validation and test queries where the user gave them."""

    name: str
    train: Queries
    vali: Queries | None = None
    test: Queries | None = None


TEST_SHARE = 0.2


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


def validation_plan(
    split: Split, folds: int | None, seed: int, *, permutations: int | None = None
) -> tuple[Queries, Plan]:
    """Return the development queries of split and how to score on them.

    With folds, the development queries are dealt into that many parts by query; each is scored by what was
    learnt from the others. With permutations, they are gone through in that many orders, each query scored before it
    is learnt from. With neither, the given validation queries are scored; where none were given, five folds.
    """
    if folds is None and permutations is None and split.vali is not None:
        development = concatenate([split.train, split.vali])
        numbers = np.arange(development.n_queries)
        _check_learnable(split.train, "the training queries")
        return development, (Fold(numbers[: split.train.n_queries], numbers[split.train.n_queries :]),)
    development = split.train if split.vali is None else concatenate([split.train, split.vali])
    _check_learnable(development, "the queries")
    if permutations is not None:
        return development, random_orders(development, permutations, seed)
    return development, query_folds(development, folds or DEFAULT_FOLDS, seed)


def _check_learnable(queries: Queries, what: str) -> None:
    if not queries.has_pairs:
        lowest, highest = queries.grades.min(), queries.grades.max()
        detail = f"all grades are {lowest:g}" if lowest == highest else "each query has documents of one grade only"
        raise DataError(
            f"there is nothing to learn from {what}: {detail}. "
            "A ranking is learnt from queries that have documents of different grades; check grades and query ids."
        )
