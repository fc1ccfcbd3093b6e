"""Boosting from a linear model, and on from an earlier model: the scores are those of the start and of the trees."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting import base
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.registry import make
from tests.support.tree_samples import by_lightgbm, graded

LIGHT = ["LambdaMART", "GBDTRanker"]
BOOSTED = [*LIGHT, "XGBoostRanker"]
NDCG = parse_metric("ndcg@10")


def made(name: str, **params: Any) -> Any:
    return make(name, {"trees": 8, "learning_rate": 0.2, **params})


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", BOOSTED)
def test_scores_are_those_of_the_linear_model_and_the_trees(name: str, layout: Any, tmp_path: Path) -> None:
    queries, fresh = graded(layout=layout), graded(1, layout=layout)
    ranker = made(name, start="linear").fit(queries)
    linear = RidgeRanker().fit(queries)
    scale = 1.0
    if name != "GBDTRanker":  # whose scores are grades
        means = np.add.reduceat(queries.grades, queries.starts[:-1]) / queries.lengths
        scale = base.START_SPREAD / float(np.std(queries.grades - means[queries.query_of_document]))
    expected = scale * linear.predict(fresh) + ranker.trees_.scores(fresh.features)
    assert np.allclose(ranker.predict(fresh), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(ranker.predict(fresh.features), ranker.predict(fresh))
    model = ranker.as_model(feature_names=list("abcdef"), metric="map", fingerprint="x")
    assert isinstance(model, BlendModel) and (model.solver, model.metric, model.fingerprint) == (name, "map", "x")
    assert model.feature_names == tuple("abcdef")
    assert model.predict(fresh).tobytes() == ranker.predict(fresh).tobytes()
    model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").predict(fresh).tobytes() == ranker.predict(fresh).tobytes()


@pytest.mark.parametrize("name", LIGHT)
def test_trees_are_those_that_lightgbm_adds_to_first_scores(name: str) -> None:
    queries = graded()
    options = {"centre": "query"} if name == "GBDTRanker" else {}  # whose objective LightGBM has
    ranker = made(name, start="linear", **options).fit(queries)
    start = ranker.start_.predict(queries)
    if name == "GBDTRanker":
        start = without_level(start, queries)
    expected = by_lightgbm(ranker, queries, start=start).predict(queries.features, raw_score=True)
    assert np.allclose(ranker.trees_.scores(queries.features), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BOOSTED)
def test_steps_path_and_bags_have_the_start(name: str) -> None:
    queries, vali = graded(), graded(1)
    params: dict[str, Any] = {"start": "linear", "seeds": 2, "random_state": 3}
    for value, ranker in made(name, **params).fit_path(queries, [2, 8]):
        expected = made(name, **{**params, "trees": value}).fit(queries).predict(vali)
        assert ranker.predict(vali).tobytes() == expected.tobytes()
        assert ranker.as_model().predict(vali).tobytes() == expected.tobytes()
    ranker = made(name, **{**params, "trees": 60, "patience": 60, "seeds": 1})
    best = -np.inf
    for step in ranker.fit_steps(queries, vali=vali):
        value = NDCG.mean(ranker.predict(vali), vali)
        assert value == pytest.approx(-step.objective, abs=1e-9) and value >= best
        best = value
    assert ranker.rounds_[0] < 60
    assert made(name, start="linear", validation=0.3).fit(queries).rounds_[0] <= 8


@pytest.mark.parametrize("name", BOOSTED)
def test_rounds_that_continue_a_model_are_those_of_one_longer_fit(name: str) -> None:
    queries, fresh = graded(), graded(1)
    share = "query_share" if name == "LambdaMART" else "row_share"
    params: dict[str, Any] = {"feature_share": 1.0, share: 1.0, "l2": 0.0}
    if name == "GBDTRanker":
        params["centre"] = "none"  # the scores of a start are centred too, those of trees that grow are not
    whole = made(name, **params, trees=12).fit(queries)
    first = made(name, **params, trees=5).fit(queries)
    rest = made(name, **params, trees=7).continue_from(first.as_model()).fit(queries)
    assert rest.rounds_ == (7,)
    model = rest.as_model()
    assert isinstance(model, TreeModel) and model.trees.n_trees == 12
    assert np.allclose(rest.predict(fresh), whole.predict(fresh), rtol=1e-4, atol=1e-4 * np.ptp(whole.predict(fresh)))
    assert not np.allclose(first.predict(fresh), whole.predict(fresh), atol=1e-2)
    alone = rest.continue_from(None).fit(queries)
    assert alone.predict(fresh).tobytes() == made(name, **params, trees=7).fit(queries).predict(fresh).tobytes()


def test_any_model_of_the_same_features_can_be_continued() -> None:
    queries, fresh = graded(), graded(1)
    started = made("GBDTRanker", start="linear").fit(queries)
    by_list = LinearModel(np.array([2.0, -1.0, 0.0, 0.0, 0.0, 1.0]), "LinearSVM", list_scaling=True)
    for earlier in (started.as_model(), by_list):
        on = made("LambdaMART").continue_from(earlier).fit(queries)
        expected = earlier.predict(fresh) + on.trees_.scores(fresh.features)
        assert np.allclose(on.predict(fresh), expected, rtol=1e-12, atol=1e-12)
        groups = fresh.query_of_document
        assert np.array_equal(on.predict(fresh.features, qid=groups), on.predict(fresh))
    narrow = queries.with_features(queries.features[:, :5].copy())
    with pytest.raises(DataError, match="model to continue has 6 features, the training data 5"):
        made("LambdaMART").continue_from(started.as_model()).fit(narrow)


def test_rows_in_any_order_keep_their_start() -> None:
    queries = graded(queries=20)
    shuffled = np.random.default_rng(0).permutation(queries.n_documents)
    X, y, qid = queries.features[shuffled], queries.grades[shuffled], queries.query_of_document[shuffled]
    mixed = Queries.from_arrays(X, y, qid=qid)
    assert mixed.rows is not None
    kept = Queries(mixed.features, mixed.grades, mixed.starts, mixed.query_ids)
    for name in LIGHT:
        expected = made(name, start="linear").fit(kept)
        assert np.array_equal(made(name, start="linear").fit(mixed).predict(X), expected.predict(X))
        on = made(name).continue_from(expected.as_model())
        assert np.array_equal(on.fit(mixed).predict(X), on.fit(kept).predict(X))


def test_the_linear_model_of_many_documents_is_fitted_to_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = graded(queries=200)
    expected = RidgeRanker().fit(queries).predict(queries)
    monkeypatch.setattr(base, "START_DOCUMENTS", queries.n_documents // 4)
    monkeypatch.setattr(base, "START_DOCUMENTS_A_FEATURE", 1)
    fitted: list[int] = []

    class Counting(RidgeRanker):
        def fit(self, X: Any, *args: Any, **more: Any) -> Any:
            fitted.append(X.n_queries)
            return super().fit(X, *args, **more)

    monkeypatch.setattr(base, "RidgeRanker", Counting)
    start = made("GBDTRanker", start="linear").fit(queries).start_.predict(queries)
    assert fitted == [50] and np.corrcoef(start, expected)[0, 1] > 0.98
    few = graded(queries=3)
    grades = np.where(few.query_of_document < 2, 1.0, few.grades)
    only_one = Queries(few.features, grades, few.starts, few.query_ids)
    made("GBDTRanker", start="linear").fit(only_one)
    assert fitted[-1] == 1
