"""Missing values (NaN): every solver learns from them, and a model scores them alike wherever it is."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import load_model
from ranktune.solvers.registry import SOLVERS, make

GENERATOR = np.random.default_rng(0)
WHOLE = GENERATOR.normal(size=(600, 5))
QID = np.repeat(np.arange(60), 10)
Y = np.digitize(WHOLE[:, 0] + WHOLE[:, 1] + 0.3 * GENERATOR.normal(size=600), [-0.5, 1.0]).astype(np.float64)
X = WHOLE.copy()
X[(Y == 0.0) & (GENERATOR.random(600) < 0.6), 0] = np.nan  # where it is missing, the document is bad
X[GENERATOR.random(600) < 0.2, 1] = np.nan
X[:10, 2] = np.nan  # a whole query lacks it
LIST_SCALED = [("Ranker", {"optimizer": "fobos", "scaling": "list"}), ("ElasticRank", {"scaling": "list"})]
CASES = [*((name, {}) for name in SOLVERS), *LIST_SCALED, ("LambdaMART", {"start": "linear"})]


def fitted(name: str, parameters: dict[str, Any], features: Any = X) -> BaseRanker:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that stop before they converge
        return make(name, parameters, 0).fit(features, Y, qid=QID)


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=lambda value: str(value))
def test_every_solver_learns_from_them_and_its_model_scores_them_alike(
    name: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    ranker = fitted(name, parameters)
    scores = ranker.predict(X, qid=QID)
    assert np.isfinite(scores).all()
    assert np.corrcoef(scores, WHOLE[:, 0] + WHOLE[:, 1])[0, 1] > 0.3
    model = ranker.as_model()
    model.save(tmp_path / "model.json")
    for scorer in (model, load_model(tmp_path / "model.json")):
        assert scorer.takes_missing
        assert scorer.predict(X, qid=QID).tobytes() == scores.tobytes()
        assert scorer.predict(Queries.from_arrays(X, Y, qid=QID)).tobytes() == scores.tobytes()
        np.testing.assert_allclose(scorer.predict(sparse.csr_array(X), qid=QID), scores, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_sparse_features_may_be_missing_too(name: str) -> None:
    thin = np.where(np.nan_to_num(X) < -0.5, 0.0, X)
    by_rows, dense = fitted(name, {}, sparse.csr_array(thin)), fitted(name, {}, thin)
    result, expected = by_rows.predict(sparse.csr_array(thin)), dense.predict(thin)
    assert np.isfinite(result).all()
    assert np.corrcoef(result, expected)[0, 1] > 0.8


@pytest.mark.parametrize("name", SOLVERS)
def test_a_model_of_whole_data_refuses_what_it_has_not_learned(name: str) -> None:
    ranker = fitted(name, {}, WHOLE)
    with pytest.raises((DataError, ValueError), match="NaN"):
        ranker.predict(X)
    with pytest.raises(DataError, match=r"of column \d is missing \(NaN\).*train on data that has them"):
        ranker.as_model().predict(X)
    assert not ranker.as_model().takes_missing


LINEAR = [name for name in SOLVERS if issubclass(SOLVERS[name], LinearRanker)]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_are_those_of_medians_and_indicators(name: str) -> None:
    """Completed by hand: feature 0 carries information where it is missing, the others do not."""
    medians = np.array([np.sort(x[~np.isnan(x)])[(np.count_nonzero(~np.isnan(x)) - 1) // 2] for x in X.T])
    by_hand = np.where(np.isnan(X), medians, X)
    ranker = fitted(name, {})
    assert ranker.imputation_ is not None
    if SOLVERS[name].indicates_missing:  # type: ignore[attr-defined]
        assert ranker.imputation_.indicators.tolist() == [0]
        by_hand = np.column_stack([by_hand, np.isnan(X[:, 0])])
    np.testing.assert_allclose(ranker.predict(X), fitted(name, {}, by_hand).predict(by_hand), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in SOLVERS if issubclass(SOLVERS[name], PassRanker)])
def test_learning_goes_on_with_what_was_put_in_place_first(name: str) -> None:
    first, second = Queries.from_arrays(X, Y, qid=QID), Queries.from_arrays(X[::-1], Y[::-1], qid=QID)
    parameters = {"optimizer": "fobos"} if name == "Ranker" else {}
    ranker: Any = make(name, parameters, 0)
    ranker.partial_fit(first)
    imputation = ranker.imputation_
    ranker.partial_fit(second)
    assert ranker.imputation_ is imputation
    begun: Any = make(name, parameters, 0)
    begun.partial_fit(Queries.from_arrays(WHOLE, Y, qid=QID))
    with pytest.raises(DataError, match="first trained on data without missing"):
        begun.partial_fit(second)
    scores = make(name, parameters, 0).progressive(first)  # type: ignore[attr-defined]
    assert np.isfinite(scores).all()


def test_a_query_of_weight_two_counts_as_two() -> None:
    from ranktune.solvers.data.missing import Imputation

    weights = np.arange(60) % 3 + 1.0
    queries = Queries.from_arrays(X, Y, qid=QID, query_weights=weights)
    copies = queries.select(np.repeat(np.arange(60), weights.astype(int)))
    copies = Queries.from_arrays(copies.features, copies.grades, group=copies.lengths)
    result, expected = (Imputation.learn(data, indicators=True) for data in (queries, copies))
    assert result.fill is not None and expected.fill is not None
    np.testing.assert_array_equal(result.fill, expected.fill)
