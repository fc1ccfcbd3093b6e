"""Workers know the solvers and metrics that are registered where their functions are sent from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktune import register_metric, register_solver
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.workers.custom import CustomExecutor, with_custom
from ranktune.tuner.workers.executor import InProcess, Processes
from tests.support.custom_solvers import PowerRidge


def value(solver: str, metric: str) -> tuple[float, Any]:
    """What a registered solver scores by a registered metric, and its model."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    queries = Queries.from_arrays(X, X[:, 0] > 0, group=[10] * 4)
    ranker = make(solver, {}, 0).fit(queries)
    return parse_metric(metric).mean(ranker.predict(queries), queries), ranker.as_model()


def test_a_worker_knows_what_is_registered_by_the_time_of_sending() -> None:
    class Local(PowerRidge):
        """It has no import path, so that it is sent by value."""

    with with_custom(Processes(1)) as executor:
        assert isinstance(executor, CustomExecutor) and executor.jobs == 1
        assert executor.submit(pow, 2, 5).result() == 32
        register_solver("Local", Local)
        register_metric("first", lambda grades: float(grades[0]))
        here, model = value("Local", "first")
        there, returned = executor.submit(value, "Local", "first").result()
        assert there == here == executor.call(value, "local", "first")[0]
        np.testing.assert_array_equal(returned.predict(np.eye(3)), model.predict(np.eye(3)))
        assert type(returned.estimator) is Local


def test_a_function_in_this_process_needs_nothing() -> None:
    executor = InProcess()
    assert with_custom(executor) is executor
