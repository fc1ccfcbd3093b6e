"""Features and weights at the ends of what numbers hold: every solver ranks as with a usual scale, or says why not."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.names import SOLVERS
from ranktune.solvers.online.base import OnlineRanker
from ranktune.solvers.online.perceptrons import PairwisePerceptron
from ranktune.solvers.registry import solver_class
from tests.support.engine_samples import graded

PLAIN = graded(20, 3)
X, QID = np.asarray(PLAIN.features, dtype=np.float64), PLAIN.query_ids[PLAIN.query_of_document]
OUTLIER = np.where(np.arange(X.size).reshape(X.shape) == 17, 1e308, X)
FEATURES = {
    "all large": X * 2.0**990,
    "all small": X * 2.0**-700,
    "each of its own": X * 2.0 ** np.array([990.0, -650.0, 0.0, 600.0, -900.0]),
    "an outlier": OUTLIER,
}


def learnt(solver: str, features: Floats, **weights: Any) -> Floats:
    """The scores of the documents by a model of them; a warning is an error here."""
    queries = Queries.from_arrays(features, PLAIN.grades, qid=QID, **weights)
    ranker = solver_class(solver)()
    if "random_state" in ranker.get_params():
        ranker.set_params(random_state=0)
    return ranker.fit(queries).as_model().predict(queries)


@cache
def usual(solver: str) -> Floats:
    return learnt(solver, X)


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_features_of_any_size_are_learned_from_or_refused(solver: str, kind: str) -> None:
    try:
        found = learnt(solver, FEATURES[kind])
    except DataError as error:
        assert "Scale the features" in str(error)  # libraries of single precision
        assert solver in ("CatBoostRanker", "XGBoostRanker", "LambdaMART", "GBDTRanker", "RandomForestRanker")
        return
    assert np.isfinite(found).all() and np.ptp(found) > 0.0
    if kind != "an outlier":
        metric = parse_metric("ndcg@10")
        wanted = metric.mean(usual(solver), PLAIN)
        close = 0.05 if issubclass(solver_class(solver), OnlineRanker) else 1e-4  # whose pairs are in another order
        assert metric.mean(found, PLAIN) == pytest.approx(wanted, abs=close)


@pytest.mark.parametrize("size", [1.7e308, 1e-300])
@pytest.mark.parametrize("what", ["query_weights", "document_weights"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_that_have_no_sum_are_refused_as_such(solver: str, what: str, size: float) -> None:
    count = PLAIN.n_queries if what == "query_weights" else PLAIN.n_documents
    with pytest.raises((DataError, ParameterError), match=r"weights must be positive|cannot weigh"):
        learnt(solver, X, **{what: np.full(count, size)})


def test_further_queries_of_features_without_squares_are_refused() -> None:
    ranker = PairwisePerceptron()
    with pytest.raises(DataError, match="divide them by a factor, or call fit"):
        ranker.partial_fit(X * 1e200, PLAIN.grades, qid=QID)
