"""The time of scoring is measured with as few repetitions as are needed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.evaluation.models import microseconds_a_document
from tests.support.engine_samples import graded


class Timed(LinearModel):
    """Takes as many seconds of a clock of ours to score as it has in turn."""

    def predict(self, queries: Queries) -> Floats:  # type: ignore[override]
        CLOCK[0] += TAKES[min(len(CALLS), len(TAKES) - 1)]
        CALLS.append(queries)
        return np.zeros(queries.n_documents)


CLOCK, CALLS, TAKES = [0.0], [], [0.0]  # type: ignore[var-annotated]


@pytest.mark.parametrize(
    ("takes", "calls", "seconds"),
    [([0.001, 0.003, 0.002, 0.001, 0.009], 5, 0.002), ([0.5], 1, 0.5), ([0.02, 0.02, 0.03], 3, 0.02)],
)
def test_a_slow_model_is_timed_once_a_fast_one_by_the_median(
    monkeypatch: pytest.MonkeyPatch, takes: list[float], calls: int, seconds: float
) -> None:
    monkeypatch.setattr(time, "process_time", lambda: CLOCK[0])
    CALLS.clear()
    TAKES[:] = takes
    queries = graded(10, 0)
    model = Timed(np.ones(5), solver="x")
    assert microseconds_a_document(model, queries) == pytest.approx(seconds / queries.n_documents * 1e6)
    assert len(CALLS) == calls
