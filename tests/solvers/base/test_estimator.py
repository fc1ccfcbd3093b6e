"""scikit-learn's tools take our estimators, and nobody else pays for it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktune.solvers.boosting.lightgbm import LambdaMART
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.pointwise import RidgeRanker
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


def test_many_rows_without_their_queries_are_remarked() -> None:
    generator = np.random.default_rng(0)
    X, y = generator.random((1200, 2)), np.arange(1200) % 2
    with pytest.warns(RankTuneWarning, match=r"all 1200 rows are taken as one query.*qid="):
        RidgeRanker().fit(X, y)
    RidgeRanker().fit(X, y, qid=np.arange(1200) // 10)
    RidgeRanker().fit(X, y, group=[1200])
    RidgeRanker().fit(X[:1000], y[:1000])


def test_score_is_the_mean_of_the_metric_over_the_queries() -> None:
    qid = np.arange(60) % 6  # not in order of queries
    ranker = RankSVM().fit(X, Y, qid=qid)
    scores = ranker.predict(X)
    expected = [ndcg_score([Y[qid == q]], [scores[qid == q]], k=3) for q in range(6) if Y[qid == q].any()]
    assert ranker.score(X, Y, qid=qid, metric="ndcg@3") == pytest.approx(np.mean(expected))
    queries = Queries.from_arrays(X, Y, qid=qid)
    assert ranker.score(queries) == ranker.score(X, Y, qid=qid)
    assert np.isnan(ranker.score(X[:3], np.zeros(3), metric="ndcg@3"))


def test_scikit_learn_routes_the_queries() -> None:
    qid = np.arange(60) // 5
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankSVM(), {"C": [1e-6, 1.0]}, cv=GroupKFold(3)).fit(X, Y, qid=qid, groups=qid)
    folds = list(GroupKFold(3).split(X, Y, qid))
    for place, C in enumerate([1e-6, 1.0]):
        own = [RankSVM(C=C).fit(X[a], Y[a], qid=qid[a]).score(X[b], Y[b], qid=qid[b]) for a, b in folds]
        assert search.cv_results_["mean_test_score"][place] == pytest.approx(np.mean(own))


def test_notebooks_show_the_parameters() -> None:
    html = RankSVM(C=0.5)._repr_html_()
    assert "<b>C</b>" in html and "<td>tol</td>" in html and "<b>tol</b>" not in html
    assert "<script" not in RankSVM(C="<script>")._repr_html_()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("theirs", "ours"), [("n_estimators", "trees"), ("num_leaves", "leaves"), ("n_jobs", "threads")]
)
def test_names_of_other_libraries_are_answered_with_ours(theirs: str, ours: str) -> None:
    with pytest.raises(TypeError, match=f"LambdaMART has no parameter '{theirs}'. Here it is called '{ours}'"):
        LambdaMART(**{theirs: 5})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=f"Here it is called '{ours}'"):
        LambdaMART().set_params(**{theirs: 5})


def test_an_unknown_parameter_is_answered_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"RankSVM has no parameter 'scalling'\. Did you mean 'scaling'\?"):
        RankSVM(scalling="minmax")  # type: ignore[call-arg]
