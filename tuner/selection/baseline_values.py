"""What the baseline of a study scores by query, on the queries that judge the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.study.baseline import covers
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem


@dataclass(frozen=True, eq=False)
class BaselineValues:
    """The baseline by query: on the queries that trials are scored on, on all development queries, and on test.

    vali and again are None where the baseline does not score all of these queries; test, metric -> (n,), is empty
    without test queries. The weights are those of these queries, None where each counts once.
    """

    vali: Floats | None
    again: Floats | None
    test: Mapping[str, Floats]
    vali_weights: Floats | None = None
    again_weights: Floats | None = None
    test_weights: Floats | None = None


def baseline_values(study: Study, problem: Problem) -> BaselineValues:
    """Return the values of the baseline on a problem."""

    def values(queries: Queries, name: str) -> Floats | None:
        if queries.baseline is None or not covers(queries.baseline):
            return None
        return parse_metric(name).per_query(queries.baseline, queries)

    judged = problem.judged_queries
    tested = {} if problem.test is None else {name: values(problem.test, name) for name in study.metrics}
    return BaselineValues(
        values(judged, study.metric),
        values(problem.development, study.metric),
        {name: own for name, own in tested.items() if own is not None},
        judged.query_weights,
        problem.development.query_weights,
        problem.test_weights,
    )
