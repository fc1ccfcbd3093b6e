"""A saved model in scikit-learn's tools: its scores everywhere, unchanged by fit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from ranktune.solvers import RankSVM, SavedRanker
from ranktune.solvers.core.errors import ModelFormatError, ParameterError


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.random((90, 3)), columns=["a", "b", "c"])
    y = (X["a"] > 0.6).to_numpy().astype(int)
    path = tmp_path / "model.json"
    RankSVM().fit(X, y, qid=np.arange(90) // 9).as_model().save(path)
    return path, X, y


def test_it_scores_as_the_model_in_pipelines_and_inspection(saved: tuple[Path, pd.DataFrame, np.ndarray]) -> None:
    path, X, y = saved
    ranker = SavedRanker(path)
    check_is_fitted(ranker)
    assert (ranker.n_features_in_, list(ranker.feature_names_in_)) == (3, ["a", "b", "c"])
    expected = ranker.predict(X)
    assert np.ptp(expected) > 0.0
    for other in (clone(ranker), make_pipeline(FunctionTransformer(), ranker), ranker.fit(X, 1 - y)):
        assert other.predict(X).tobytes() == expected.tobytes()
    result = permutation_importance(
        ranker, X, y, scoring=lambda estimator, X, y: estimator.score(X, y, qid=np.arange(90) // 9), random_state=0
    )
    assert result.importances_mean.argmax() == 0
    assert ranker.predict(X[["c", "a", "b"]]).tobytes() == expected.tobytes()


def test_another_model_takes_its_place(saved: tuple[Path, pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    path, X, y = saved
    ranker = SavedRanker(path)
    before = ranker.predict(X)
    ranker.set_params(model=RankSVM().fit(X, 1 - y, qid=np.arange(90) // 9).as_model())
    assert ranker.predict(X).argmax() != before.argmax()
    with pytest.raises(ModelFormatError):
        SavedRanker(tmp_path / "none.json").predict(X)
    with pytest.raises(ParameterError, match="path of a model"):
        SavedRanker(3).predict(X)  # type: ignore[arg-type]
