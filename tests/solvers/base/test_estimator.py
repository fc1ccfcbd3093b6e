"""scikit-learn's tools take our estimators: their parameters, scores and requests of metadata."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tests.metadata_routing_common import assert_request_equal

from ranktune.solvers.base.blocks import fit_blocks
from ranktune.solvers.base.saved import SavedRanker
from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.registry import make

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3))
Y = (X[:, 0] > 0.3).astype(float)
ABOUT_DATA = ("qid", "group", "query_weights", "document_weights", "positions", "monotone", "vali")


def test_parameters_are_read_set_and_shown() -> None:
    ranker = RankSVM(C=0.5)
    assert repr(ranker) == "RankSVM(C=0.5)"
    assert repr(RankSVM()) == "RankSVM()"
    assert ranker.set_params(tol=0.1).get_params()["tol"] == 0.1


def test_pipelines_and_grid_searches_work() -> None:
    pipeline = make_pipeline(StandardScaler(), RankSVM()).fit(X, Y)
    assert pipeline.predict(X).shape == (60,)
    assert "RankSVM" in repr(pipeline) and "RankSVM" in pipeline._repr_html_()

    def lead(ranker: RankSVM, X: np.ndarray, y: np.ndarray) -> float:
        scores = ranker.predict(X)
        return float(scores[y > 0].mean() - scores[y == 0].mean())

    search = GridSearchCV(RankSVM(), {"C": [1e-6, 1.0]}, scoring=lead, cv=3).fit(X, Y, qid=np.arange(60) % 2)
    assert search.best_params_ == {"C": 1.0}


def test_predicting_before_learning_is_told() -> None:
    with pytest.raises(NotFittedError, match="Call fit"):
        RankSVM().predict(X)


def test_many_rows_without_their_queries_are_remarked() -> None:
    generator = np.random.default_rng(0)
    X, y = generator.random((1200, 2)), np.arange(1200) % 2
    with pytest.warns(RankTuneWarning, match=r"all 1200 rows are taken as one query.*qid="):
        RidgeRanker().fit(X, y)
    RidgeRanker().fit(X, y, qid=np.arange(1200) // 10)
    RidgeRanker().fit(X, y, group=[1200])
    RidgeRanker().fit(X[:100], y[:100])  # as many as one query may have


def test_score_is_the_mean_of_the_metric_over_the_queries() -> None:
    qid = np.arange(60) % 6  # not in order of queries
    ranker = RankSVM().fit(X, Y, qid=qid)
    scores = ranker.predict(X)
    expected = [ndcg_score([Y[qid == q]], [scores[qid == q]], k=3) for q in range(6) if Y[qid == q].any()]
    assert ranker.score(X, Y, qid=qid, metric="ndcg@3") == pytest.approx(np.mean(expected))
    queries = Queries.from_arrays(X, Y, qid=qid)
    assert ranker.score(queries) == ranker.score(X, Y, qid=qid)
    assert np.isnan(ranker.score(X[:3], np.zeros(3), group=[3], metric="ndcg@3"))


def test_rows_without_their_queries_are_not_scored_as_a_single_query() -> None:
    qid = np.arange(60) % 6
    queries = Queries.from_arrays(X, Y, qid=qid)
    online = make("SOLAR2", {}, 0)
    halves = np.arange(60) < 30
    online.partial_fit(X[halves], Y[halves], qid=qid[halves]).partial_fit(X[~halves], Y[~halves])  # type: ignore[attr-defined]
    for ranker in (
        RankSVM().fit(X, Y, qid=qid),
        RidgeRanker().fit(queries),
        fit_blocks(RidgeRanker(), queries),
        SavedRanker(RankSVM().fit(queries).as_model()),
        online,
    ):
        with pytest.raises(DataError, match=r"given 60 rows and not which .* Pass qid=.*group=\[60\]"):
            ranker.score(X, Y)
        assert 0.0 < ranker.score(X, Y, qid=qid) <= 1.0 and ranker.score(X, Y, group=[60]) <= 1.0
    alone = RankSVM().fit(X, Y)  # these rows are one query, as fit took them; other rows are not
    assert alone.score(X, Y) == alone.score(X, Y, group=[60])
    for other in ((X[:30], Y[:30]), (X[::-1], Y[::-1]), (np.tile(X, (20, 1)), np.tile(Y, 20))):
        with pytest.raises(DataError, match=rf"given {len(other[1])} rows and not which"):
            alone.score(*other)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("estimator", [RankSVM(), make_pipeline(StandardScaler(), RankSVM())], ids=["solver", "steps"])
def test_folds_without_queries_have_no_score(estimator: object, routing: bool) -> None:
    with config_context(enable_metadata_routing=routing):
        with pytest.raises(DataError, match=r"Pass qid=.*enable_metadata_routing=True"):
            cross_val_score(estimator, X, Y, cv=2, error_score="raise")
        with pytest.warns(UserWarning, match=r"enable_metadata_routing=True"):
            assert np.isnan(cross_val_score(estimator, X, Y, cv=2)).all()


def test_weights_of_queries_that_differ_within_one_are_refused() -> None:
    with pytest.raises(DataError, match="differs between the documents of query"):
        RankSVM().fit(X, Y, qid=np.arange(60) // 5, query_weights=np.arange(1.0, 61.0))


def test_requests_of_metadata_are_set_and_cloned() -> None:
    ranker = RankSVM().set_fit_request(qid="query", group=False).set_predict_request(qid=None)
    for estimator in (ranker, clone(ranker), pickle.loads(pickle.dumps(ranker))):
        routing = estimator.get_metadata_routing()
        assert_request_equal(
            routing,
            {
                "fit": dict.fromkeys(ABOUT_DATA, True) | {"qid": "query", "group": False},
                "score": dict.fromkeys(("qid", "group", "query_weights", "metric"), True) | {"sample_weight": None},
                "predict": {"qid": None, "group": True},
            },
        )
    assert RankSVM().get_metadata_routing().fit.requests == dict.fromkeys(ABOUT_DATA, True)
    with config_context(enable_metadata_routing=True):
        qid = np.arange(60) // 5
        pipeline = make_pipeline(StandardScaler(), RankSVM().set_fit_request(qid="query")).fit(X, Y, query=qid)
    direct = RankSVM().fit(StandardScaler().fit_transform(X), Y, qid=qid)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
    with pytest.raises(TypeError, match=r"'sample_weight', and fit of RankSVM takes .* document_weights \(one a row\)"):
        ranker.set_fit_request(sample_weight=True)


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
