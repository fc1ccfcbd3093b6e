"""scikit-learn's checks of every solver, whose rows without qid are one query."""

from typing import Any

import pytest
from sklearn.base import clone

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.registry import SOLVERS, make
from tests.support.tree_samples import few_trees

ALL_AT_ONCE = {"Ranker": {"check_fit_score_takes_y", "check_n_features_in_after_fitting"}}
"""Checks that call partial_fit; with an optimizer of all queries it raises an error with a remedy."""


def failed_checks(ranker: BaseRanker) -> dict[str, str]:
    """The checks that fail, by name, and how."""
    from sklearn.utils.estimator_checks import check_estimator  # here: it takes long to load

    results: list[dict[str, Any]] = check_estimator(ranker, on_fail=None, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 30
    return {result["check_name"]: repr(result["exception"]) for result in results if result["status"] == "failed"}


# Inheriting from BaseEstimator would make every process import scikit-learn: the protocol is what is asked for.
@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base.BaseEstimator`:UserWarning")
@pytest.mark.filterwarnings("ignore:all .* rows are taken as one query")
@pytest.mark.parametrize("name", list(SOLVERS))
def test_scikit_learn_accepts(name: str) -> None:
    failed = failed_checks(few_trees(name))
    assert set(failed) == ALL_AT_ONCE.get(name, set()), failed


@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base.BaseEstimator`:UserWarning")
@pytest.mark.filterwarnings("ignore:all .* rows are taken as one query")
@pytest.mark.parametrize("name", list(ALL_AT_ONCE))
def test_scikit_learn_accepts_it_with_a_one_pass_optimizer(name: str) -> None:
    assert failed_checks(make(name, {"optimizer": "fobos"})) == {}


@pytest.mark.parametrize("name", list(SOLVERS))
def test_clones_are_equal_and_unfitted(name: str) -> None:
    ranker: BaseRanker = SOLVERS[name]()
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert not hasattr(copy, "coef_")
