"""The metric that is chosen fits the grades of all parts."""

from __future__ import annotations

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import chosen_metric


def test_the_metric_fits_the_grades(hard_queries: Queries) -> None:
    assert str(chosen_metric("auto", hard_queries, None)) == "ndcg@10"
    assert str(chosen_metric("map", graded(0.5))) == "map"
    with pytest.raises(ParameterError, match="Did you mean 'ndcg"):
        chosen_metric("ndgc@10", hard_queries)


@pytest.mark.parametrize(("grade", "fits"), [(0.5, False), (-1.0, False), (31.0, False), (30.0, True), (0.0, True)])
def test_one_grade_without_an_exponential_gain_is_enough(hard_queries: Queries, grade: float, fits: bool) -> None:
    expected = "ndcg@10" if fits else "pairwise"
    assert str(chosen_metric("auto", hard_queries, graded(grade))) == expected
    assert str(chosen_metric("auto", graded(grade), hard_queries)) == expected


def graded(grade: float) -> Queries:
    return Queries.from_arrays(np.eye(3), [grade, 1.0, 0.0])
