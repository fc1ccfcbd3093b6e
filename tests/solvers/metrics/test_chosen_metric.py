"""The metric that is chosen fits the grades of all parts."""

import numpy as np
import pytest

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import chosen_metric, for_grades, parse_metric


def test_the_metric_fits_the_grades(hard_queries: Queries) -> None:
    assert str(chosen_metric("auto", hard_queries, None)) == "ndcg@10"
    assert str(chosen_metric("map", graded(0.5))) == "map"


@pytest.mark.parametrize(
    ("grade", "expected"),
    [
        (0.5, "ndcg@10:gain=linear"),
        (31.0, "ndcg@10:gain=linear"),
        (-1.0, "pairwise"),
        (30.0, "ndcg@10"),
        (0.0, "ndcg@10"),
    ],
)
def test_one_grade_decides_on_the_gain_of_all_parts(hard_queries: Queries, grade: float, expected: str) -> None:
    assert str(chosen_metric("auto", hard_queries, graded(grade))) == expected
    assert str(chosen_metric("auto", graded(grade), hard_queries)) == expected


def test_the_gain_of_a_part_is_that_of_the_whole(hard_queries: Queries) -> None:
    whole, part = np.array([0.0, 0.5, 3.0]), np.array([0.0, 3.0])
    assert for_grades(parse_metric("dcg"), whole, part) == parse_metric("dcg:gain=linear")
    assert for_grades(parse_metric("dcg"), part) == parse_metric("dcg")
    for spelling in ("dcg:gain=exp2", "ndcg@10:letor", "map"):
        assert for_grades(parse_metric(spelling), whole) == parse_metric(spelling)


def graded(grade: float) -> Queries:
    return Queries.from_arrays(np.eye(3), [grade, 1.0, 0.0])
