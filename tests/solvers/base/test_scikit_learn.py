"""scikit-learn's searches, selections and ensembles over our estimators, by its own helpers and by hand."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tests.metadata_routing_common import (
    ConsumingTransformer,
    _Registry,
    assert_request_is_empty,
    check_recorded_metadata,
    record_metadata,
)

from ranktune.solvers.base.saved import SavedRanker
from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.linear.ranker import Ranker
from ranktune.solvers.registry import SOLVERS
from tests.support.tree_samples import few_trees

GENERATOR = np.random.default_rng(3)
QID = GENERATOR.permutation(240) // 10
BRAND = GENERATOR.choice(["Elm", "Fir", "Oak"], 240)
NUMBERS = GENERATOR.normal(size=(240, 2))
GRADES = np.clip(np.round(NUMBERS[:, 0] + (BRAND == "Fir") + GENERATOR.normal(size=240)), 0, 3)
COLUMNS = {"price": NUMBERS[:, 0], "brand": BRAND, "age": NUMBERS[:, 1]}
WEIGHTS = 1.0 + QID % 4
DOCUMENTS = GENERATOR.integers(1, 4, 240).astype(float)
GIVEN = {"qid": QID, "query_weights": WEIGHTS, "document_weights": DOCUMENTS, "groups": QID}
FOLDS = GroupKFold(3)
NAMES = ["n__price", "n__age", "b__brand_Elm", "b__brand_Fir", "b__brand_Oak"]
SEARCHED: list[tuple[Any, dict[str, list[Any]]]] = [
    (RankSVM(), {"C": [1e-4, 0.1]}),
    (Ranker(optimizer="lbfgs", penalty="l2", loss="pairwise_logistic", pair_weight="uniform"), {"l2": [1e-2, 10.0]}),
    (LambdaMART(), {"trees": [2, 6]}),
]


def pipeline(ranker: Any) -> Pipeline:
    columns = [("n", StandardScaler(), ["price", "age"]), ("b", OneHotEncoder(sparse_output=False), ["brand"])]
    return Pipeline([("columns", ColumnTransformer(columns)), ("ranker", ranker)])


def by_hand(ranker: Any) -> list[float]:
    """The weighted NDCG@10 of each fold, with the work of scikit-learn's parts done by numpy."""
    result = []
    for a, b in FOLDS.split(NUMBERS, groups=QID):
        scaled = (NUMBERS - NUMBERS[a].mean(axis=0)) / NUMBERS[a].std(axis=0)
        X = np.hstack([scaled, *((BRAND == name)[:, None] for name in np.unique(BRAND[a]))])
        weight_of = dict(zip(QID[a].tolist(), WEIGHTS[a].tolist(), strict=True))
        fitted = clone(ranker).fit(X[a], GRADES[a], qid=QID[a], query_weights=weight_of, document_weights=DOCUMENTS[a])
        graded = [rows for q in np.unique(QID[b]) if GRADES[rows := np.flatnonzero(QID == q)].any()]
        values = [ndcg_score([2 ** GRADES[rows] - 1], [fitted.predict(X[rows])], k=10) for rows in graded]
        result.append(float(np.average(values, weights=[WEIGHTS[rows[0]] for rows in graded])))
    return result


@pytest.mark.parametrize("frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)], ids=["pandas", "polars"])
@pytest.mark.parametrize(("ranker", "values"), SEARCHED, ids=[type(ranker).__name__ for ranker, _ in SEARCHED])
def test_searches_over_pipelines_of_frames_are_a_loop_by_hand(
    ranker: Any, values: dict[str, list[Any]], frame: Any
) -> None:
    grid = {f"ranker__{name}": tried for name, tried in values.items()}
    ((name, tried),) = values.items()
    expected = [by_hand(clone(ranker).set_params(**{name: value})) for value in tried]
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline(ranker), grid, cv=FOLDS).fit(frame, GRADES, **GIVEN)
        beside = cross_validate(pipeline(ranker).set_params(**{f"ranker__{name}": tried[0]}), frame, GRADES,
                                params=GIVEN, cv=FOLDS)  # fmt: skip
    by_fold = np.transpose([search.cv_results_[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(by_fold, expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(beside["test_score"], expected[0], rtol=0.0, atol=1e-12)
    assert len(np.unique(by_fold)) > 3 and by_fold.max() < 1.0
    assert list(search.best_estimator_[:-1].get_feature_names_out()) == NAMES
    assert list(search.feature_names_in_) == list(COLUMNS)


@pytest.mark.parametrize(("name", "made_of"), [*((name, pd.DataFrame) for name in SOLVERS), ("RankSVM", pl.DataFrame)])
def test_every_solver_knows_the_names_of_a_frame_until_it_learns_from_something_else(
    name: str, made_of: Callable[[Any], Any]
) -> None:
    ranker: Any = few_trees(name)
    X = np.abs(NUMBERS)
    ranker.fit(made_of({"price": X[:, 0], "age": X[:, 1]}), GRADES, qid=QID)
    assert ranker.feature_names_in_.tolist() == ["price", "age"] == list(ranker.as_model().feature_names or ())
    assert SavedRanker(ranker.as_model()).feature_names_in_.tolist() == ["price", "age"]
    for unnamed in ((X, GRADES, QID), (Queries.from_arrays(X, GRADES, qid=QID), None, None)):
        ranker.fit(made_of({"price": X[:, 0], "age": X[:, 1]}), GRADES, qid=QID)
        data, grades, qid = unnamed
        assert ranker.fit(data, grades, qid=qid).as_model().feature_names is None
        assert not hasattr(ranker, "feature_names_in_")


@pytest.mark.parametrize("name", list(SOLVERS))
def test_nothing_but_keywords_of_methods_is_requested(name: str) -> None:
    ranker = SOLVERS[name]()
    asked = {method for method in ("fit", "partial_fit", "score", "predict") if hasattr(ranker, method)}
    assert_request_is_empty(ranker.get_metadata_routing(), exclude=asked)
    none = dict.fromkeys(("qid", "group"))
    ranker.set_score_request(**none, query_weights=None, metric=None).set_predict_request(**none)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(clone(ranker), protocol))
        assert_request_is_empty(copy.get_metadata_routing(), exclude=asked - {"score", "predict"})
        assert copy.get_params() == ranker.get_params()


class Recorded(RankSVM):
    """A RankSVM that notes what reaches its fit, in all copies of it."""

    fitted: list[Any] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any = None, *, qid: Ints | None = None, document_weights: Floats | None = None) -> Any:  # type: ignore[override]
        self.fitted.append(self)
        record_metadata(self, qid=qid, document_weights=document_weights)
        assert qid is not None and document_weights is not None and len(X) == len(qid) == len(document_weights)
        np.testing.assert_array_equal(document_weights, DOCUMENTS[qid])  # rows are divided together
        return super().fit(X, y, qid=qid, document_weights=document_weights)


AROUND: list[Callable[[Any], Any]] = [
    lambda ranker: make_pipeline(StandardScaler(), ranker),
    lambda ranker: GridSearchCV(ranker, {"C": [0.1, 1.0]}, cv=2),
    lambda ranker: BaggingRegressor(ranker, 2, random_state=0),
    lambda ranker: SelectFromModel(ranker),
    lambda ranker: RFE(ranker, n_features_to_select=1),
    lambda ranker: SequentialFeatureSelector(ranker, n_features_to_select=1, cv=2),
    lambda ranker: TransformedTargetRegressor(ranker, func=np.sqrt, inverse_func=np.square),
]


@pytest.mark.parametrize("around", AROUND, ids=lambda around: around(RankSVM()).__class__.__name__)
def test_what_is_around_a_ranker_passes_the_rows_of_its_metadata(around: Callable[[Any], Any]) -> None:
    Recorded.fitted.clear()
    given = {"qid": QID, "document_weights": DOCUMENTS[QID]}
    with config_context(enable_metadata_routing=True):
        around(Recorded()).fit(NUMBERS, GRADES, **given)
    assert Recorded.fitted
    for ranker in Recorded.fitted:
        check_recorded_metadata(ranker, method="fit", parent="fit", split_params=tuple(given), **given)


def test_metadata_of_other_steps_reaches_them_and_queries_reach_the_ranker() -> None:
    registry, noted = _Registry(), GENERATOR.normal(size=240)
    with config_context(enable_metadata_routing=True):
        step = ConsumingTransformer(registry=registry).set_fit_request(metadata="noted", sample_weight=False)
        step.set_transform_request(metadata="noted", sample_weight=False)
        search = GridSearchCV(Pipeline([("step", step), ("ranker", RankSVM())]), {"ranker__C": [0.1, 1.0]}, cv=FOLDS)
        search.fit(NUMBERS, GRADES, qid=QID, groups=QID, noted=noted)
        plain = GridSearchCV(RankSVM(), {"C": [0.1, 1.0]}, cv=FOLDS).fit(NUMBERS, GRADES, qid=QID, groups=QID)
    assert len(registry) >= 7
    for other in registry:
        check_recorded_metadata(other, method="fit_transform", parent="fit", split_params=("metadata",), metadata=noted)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
