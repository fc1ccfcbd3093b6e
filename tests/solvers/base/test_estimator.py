"""scikit-learn's tools take our estimators, and nobody else pays for it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.linear.rank_svm import RankSVM

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3))
Y = (X[:, 0] > 0.3).astype(float)


def test_parameters_are_read_set_and_shown() -> None:
    ranker = RankSVM(C=0.5)
    assert repr(ranker) == "RankSVM(C=0.5)"
    assert repr(RankSVM()) == "RankSVM()"
    assert ranker.set_params(tol=0.1).get_params()["tol"] == 0.1
    copy = clone(ranker)
    assert copy is not ranker and copy.get_params() == ranker.get_params()
    with pytest.raises(ParameterError, match=r"no parameter 'c'.*Did you mean 'C'"):
        ranker.set_params(c=1.0)


def test_pipelines_and_grid_searches_work() -> None:
    pipeline = make_pipeline(StandardScaler(), RankSVM()).fit(X, Y)
    assert pipeline.predict(X).shape == (60,)
    assert "RankSVM" in repr(pipeline) and "RankSVM" in pipeline._repr_html_()

    def lead(ranker: RankSVM, X: np.ndarray, y: np.ndarray) -> float:
        scores = ranker.predict(X)
        return float(scores[y > 0].mean() - scores[y == 0].mean())

    search = GridSearchCV(RankSVM(), {"C": [1e-6, 1.0]}, scoring=lead, cv=3).fit(X, Y, qid=np.arange(60) % 2)
    assert search.best_params_ == {"C": 1.0}


def test_a_fitted_estimator_survives_a_copy_to_another_process() -> None:
    ranker = RankSVM().fit(X, Y)
    assert pickle.loads(pickle.dumps(ranker)).predict(X).tobytes() == ranker.predict(X).tobytes()


def test_predicting_before_learning_is_told() -> None:
    with pytest.raises(NotFittedError, match="Call fit"):
        RankSVM().predict(X)


def test_training_on_queries_imports_no_scikit_learn() -> None:
    code = (
        "import sys, numpy as np; from ranktune.solvers.data.queries import Queries;"
        "from ranktune.solvers.registry import make;"
        "Q = Queries.from_arrays(np.eye(4), [0, 1, 2, 1]);"
        "make('RankSVM', {}).fit(Q).predict(Q);"
        "print('sklearn' in sys.modules, 'scipy.stats' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False False\n"
