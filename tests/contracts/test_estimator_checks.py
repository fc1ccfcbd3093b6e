"""scikit-learn's own checks on every solver: none is expected to fail, rows without qid are one query."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.registry import SOLVERS


# Inheriting from BaseEstimator would make every process import scikit-learn: the protocol is what is asked for.
@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base.BaseEstimator`:UserWarning")
@pytest.mark.parametrize("name", list(SOLVERS))
def test_scikit_learn_accepts(name: str) -> None:
    results: list[dict[str, Any]] = check_estimator(SOLVERS[name](), on_fail=None, on_skip=None)
    failed = {result["check_name"]: repr(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed == {}
    assert sum(result["status"] == "passed" for result in results) > 30


@pytest.mark.parametrize("name", list(SOLVERS))
def test_clones_are_equal_and_unfitted(name: str) -> None:
    ranker: BaseRanker = SOLVERS[name]()
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert not hasattr(copy, "coef_")
