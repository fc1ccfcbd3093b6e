"""One query and its value under a metric, for tests of metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import parse_metric


def one_query(grades: Any) -> Judgements:
    grades = np.asarray(grades, dtype=float)
    return Judgements(grades, np.array([0, len(grades)]))


def value(spelling: str, scores: Any, grades: Any) -> float:
    return float(parse_metric(spelling).per_query(np.asarray(scores, dtype=float), one_query(grades))[0])
