"""What is missing of a feature that no training document lacked is 0, in every model of trees and every copy.

Search engines send nothing for a feature whose query does not match. Of features that training documents lacked,
models keep what they have learned.
"""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.distillation import STEPS, distil
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree, stumps
from tests.support.missing_samples import (
    LISTS,
    SUMS,
    TREES,
    check_absence_is_zero,
    lacking,
    model_of,
    parts,
    some_lacking,
    without,
)

seeds = pytest.mark.parametrize("seed", range(2))


def documents(seed: int) -> Floats:
    """Other documents than those of training, of which the same columns lack values."""
    return np.asarray(some_lacking(seed).features)[::-1].copy()


@seeds
@pytest.mark.parametrize("kind", [*TREES, *SUMS])
def test_what_is_missing_of_a_feature_that_no_document_lacked_is_0(kind: str, seed: int) -> None:
    model, never = model_of(kind, seed), ~lacking(some_lacking(seed))
    check_absence_is_zero(model, never)
    absent, zero = (model.predict(without(documents(seed), never, value)) for value in (np.nan, 0.0))
    np.testing.assert_array_equal(absent, zero)


@seeds
@pytest.mark.parametrize("kind", [*SUMS, *LISTS])
@pytest.mark.parametrize("trees", [None, 30], ids=["staircases", "learnt"])
def test_copies_send_it_where_0_goes(kind: str, trees: int | None, seed: int) -> None:
    queries = some_lacking(seed)
    copy, never = distil(model_of(kind, seed), queries, trees=trees), ~lacking(queries)
    assert isinstance(copy, TreeModel) and (kind == "AdaRank" or never[copy.used_features].any())
    check_absence_is_zero(copy, never)
    absent, zero = (copy.predict(without(documents(seed), never, value)) for value in (np.nan, 0.0))
    np.testing.assert_array_equal(absent, zero)


def steps(model: Any, queries: Queries) -> float:
    """How far a copy may be from a model whose staircases were not widened much."""
    scores = model.predict(queries)
    height = float(np.sqrt(np.mean(without_level(scores, queries) ** 2))) / STEPS
    return 1.25 * height * sum(len(part.used_features) for part in parts(model) if isinstance(part, LinearModel))


@seeds
@pytest.mark.parametrize("kind", [kind for kind in SUMS if kind != "AdaRank"])
def test_copies_keep_what_was_learned_of_missing_values(kind: str, seed: int) -> None:
    queries = some_lacking(seed)
    model, mask = model_of(kind, seed), lacking(queries)
    copy = distil(model, queries)
    X = without(documents(seed), mask, np.nan)
    assert np.abs(copy.predict(X) - model.predict(X)).max() <= steps(model, queries)
    for part in parts(model):
        if isinstance(part, LinearModel) and part.missing is not None:  # exactly, of each feature alone
            alone = LinearModel(part.weights * mask, "x", missing=part.missing)
            nothing = np.full((1, 6), np.nan)
            result = distil(alone, queries).predict(nothing)
            np.testing.assert_allclose(result, alone.predict(nothing), rtol=1e-12, atol=1e-12)


@seeds
def test_linear_copies_add_nothing_for_it(seed: int) -> None:
    queries = some_lacking(seed)
    copy = distil(model_of("GBDTRanker", seed), queries, "linear")
    assert isinstance(copy, LinearModel) and copy.missing is not None
    assert (copy.missing[~lacking(queries)] == 0.0).all()


def test_trees_that_know_no_missing_values_send_them_where_0_goes_among_others_that_do() -> None:
    knowing = one_tree([0], [0.5], [-1], [-2], [1.0, 2.0], [False])
    plain = stumps([1, 1], [-0.5, 0.5], [10.0, 100.0])
    both = joined([knowing, plain])
    assert both.missing_left is not None and both.missing_left.tolist() == [False, False, True]
    assert both.scores(np.array([[np.nan, np.nan]])) == both.scores(np.array([[1.0, 0.0]]))
    assert both.knows_missing and not joined([plain]).knows_missing
