"""LambdaMART, boosted trees and forests: the scores of LightGBM, and the stopping rule of RankTune."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.boosting.lightgbm.regression import GBDTRanker, RandomForestRanker
from ranktune.solvers.boosting.objectives import QueryError
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.trees import Trees
from tests.support.tree_samples import assert_mean_of_members, by_lightgbm, graded

THREE: Mapping[str, Any] = {
    "LambdaMART": LambdaMART,
    "GBDTRanker": partial(GBDTRanker, centre="query"),  # whose objective LightGBM has
    "RandomForestRanker": RandomForestRanker,
}
BOOSTED = ["LambdaMART", "GBDTRanker"]
SMALL: dict[str, Any] = {"trees": 12, "min_documents": 5, "leaves": 8, "l2": 1.0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", THREE)
def test_scores_are_those_of_lightgbm_itself(name: str, layout: Any, dtype: Any) -> None:
    queries, fresh = graded(dtype=dtype, layout=layout), graded(1, dtype=dtype)
    ranker = THREE[name](**SMALL).fit(queries)
    booster = by_lightgbm(THREE[name](**SMALL), queries)
    thresholds = np.unique(ranker.trees_.threshold)
    steps = [np.nextafter(thresholds, -np.inf), thresholds, np.nextafter(thresholds, np.inf)]
    at_splits = np.concatenate([np.repeat(step[:, None], 6, axis=1) for step in steps])
    for X in (fresh.features, at_splits, at_splits.astype(np.float32), np.zeros((1, 6)), -np.ones((1, 6))):
        expected = booster.predict(X, raw_score=name != "RandomForestRanker")  # whose raw score is a sum
        assert np.allclose(ranker.predict(layout(X)), expected, rtol=1e-12, atol=1e-12)
        assert np.ptp(expected) > 0.0 or len(X) == 1


@pytest.mark.parametrize("name", THREE)
def test_random_thresholds_are_the_extra_trees_of_lightgbm(name: str) -> None:
    queries, fresh = graded(), graded(1)
    ranker = THREE[name](**SMALL, splitter="random").fit(queries)
    best = THREE[name](**SMALL)
    booster = by_lightgbm(best, queries, extra_trees=True)
    expected = booster.predict(fresh.features, raw_score=name != "RandomForestRanker")
    assert np.allclose(ranker.predict(fresh), expected, rtol=1e-12, atol=1e-12)
    assert not np.allclose(ranker.predict(fresh), best.fit(queries).predict(fresh))


@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_centred_in_each_round_are_an_objective_given_to_lightgbm(weighted: bool) -> None:
    queries, fresh = graded(), graded(1)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 40)
    if weighted:
        queries = queries.weighted_by(weights)
    made: dict[str, Any] = {**SMALL, "feature_share": 1.0}  # features are drawn by another seed with such an objective
    ranker = GBDTRanker(**made, centre="rounds")
    labels = ranker._targets(queries)[0]

    def objective(scores: Floats, _: Any) -> tuple[Floats, Floats]:
        gradient = scores - labels
        for begin, end in itertools.pairwise(queries.starts):
            gradient[begin:end] -= gradient[begin:end].mean()
        by_document = np.repeat(weights if weighted else np.ones(40), queries.lengths)
        return by_document * gradient, by_document

    booster = by_lightgbm(ranker, queries, objective=objective)
    result = ranker.fit(queries).predict(fresh)
    assert np.allclose(result, booster.predict(fresh.features), rtol=1e-6, atol=1e-6)
    shift = np.repeat(np.random.default_rng(4).integers(0, 5, 40), queries.lengths)
    shifted = replace(queries, grades=queries.grades + shift)
    assert np.allclose(GBDTRanker(**made, centre="rounds").fit(shifted).predict(fresh), result, atol=1e-6)
    assert not np.allclose(GBDTRanker(**made, centre="query").fit(queries).predict(fresh), result, atol=1e-3)


def test_the_error_within_queries_has_these_derivatives() -> None:
    queries = graded().weighted_by(np.random.default_rng(3).uniform(0.5, 2.0, 40))
    error, generator = QueryError(queries, queries.grades), np.random.default_rng(0)
    scores = generator.normal(size=queries.n_documents)
    gradient, curvature = error.derivatives(scores)
    for k in generator.choice(queries.n_documents, 20, replace=False):
        step = np.zeros(queries.n_documents)
        step[k] = 1e-4
        slope = (error.value(scores + step) - error.value(scores - step)) / 2e-4
        bend = (error.value(scores + step) - 2.0 * error.value(scores) + error.value(scores - step)) / 1e-8
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)
        assert 0.0 < bend <= curvature[k] + 1e-3
    part, rows = GBDTRanker()._source(InMemory(queries)).part(np.array([3, 7])), queries.documents_of(np.array([3, 7]))
    assert part.objective is not None
    made = part.objective(part.queries, part.targets, 0)
    assert np.allclose(made.derivatives(scores[rows], 0)[0], gradient[rows])


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_scores_with_xendcg_are_those_of_lightgbm_itself(share: float) -> None:
    queries, fresh = graded(), graded(1)
    made: dict[str, Any] = {**SMALL, "loss": "xendcg", "query_share": share}
    ranker = LambdaMART(**made).fit(queries)
    options = {"objective": "rank_xendcg", "bagging_by_query": False}
    expected = by_lightgbm(LambdaMART(**made), queries, queries.grades, **options).predict(fresh.features)
    assert np.allclose(ranker.predict(fresh), expected, rtol=1e-12, atol=1e-12)


def test_xendcg_takes_the_order_of_grades_that_are_not_small_whole_numbers() -> None:
    queries = graded()

    def fitted(grades: Floats) -> bytes:
        regraded = Queries(queries.features, grades, queries.starts, queries.query_ids)
        return LambdaMART(**SMALL, loss="xendcg").fit(regraded).predict(queries).tobytes()

    plain = fitted(queries.grades)
    assert fitted(queries.grades / 7.0 - 3.0) == plain
    assert fitted(np.exp(queries.grades * 40.0)) == plain
    assert fitted(2.0 * queries.grades) != plain
    many = fitted(np.random.default_rng(0).normal(size=queries.n_documents))
    assert np.isfinite(np.frombuffer(many)).all()


def test_grades_have_the_value_of_their_gain() -> None:
    queries = graded()
    exponential = LambdaMART(**SMALL).fit(queries).predict(queries)
    assert LambdaMART(**SMALL, gain="exponential").fit(queries).predict(queries).tobytes() == exponential.tobytes()
    lightgbm_default = by_lightgbm(LambdaMART(**SMALL), queries, queries.grades, label_gain=[0, 1, 3, 7])
    assert np.allclose(lightgbm_default.predict(queries.features), exponential, rtol=1e-12, atol=1e-12)
    linear = LambdaMART(**SMALL, gain="linear").fit(queries).predict(queries)
    assert not np.allclose(linear, exponential)
    gains = np.array([0.0, 1.0, 3.0, 7.0])[queries.grades.astype(int)]
    as_gains = Queries(queries.features, gains, queries.starts, queries.query_ids)
    assert LambdaMART(**SMALL, gain="linear").fit(as_gains).predict(queries).tobytes() == exponential.tobytes()
    odd = Queries(queries.features, queries.grades / 2.0 - 3.0, queries.starts, queries.query_ids)
    assert np.isfinite(LambdaMART(**SMALL).fit(odd).predict(odd)).all()
    for gain in ("exponential", "linear"):
        with pytest.raises(DataError, match=f"gain='?{gain}"):
            LambdaMART(gain=gain).fit(odd)


def first(trees: Trees, count: int) -> Trees:
    """The first trees of all, written out."""
    end = trees.starts[count]
    return Trees(
        trees.feature[:end], trees.threshold[:end], trees.children[:end], trees.value[: end + count],
        trees.starts[: count + 1],
    )  # fmt: skip


@pytest.mark.parametrize("metric", ["auto", "map", "mrr", "pairwise"])
@pytest.mark.parametrize("name", BOOSTED)
def test_the_rounds_kept_are_those_with_the_best_metric(name: str, metric: str) -> None:
    """Brute force: the metric after every round that is looked at, of a fit that never stops."""
    train, vali = graded(), graded(7, 15)
    params = {"trees": 60, "learning_rate": 0.3, "min_documents": 3, "leaves": 8, "feature_share": 0.5, "l2": 1.0}
    every = THREE[name](**params).fit(train)
    measure = parse_metric("ndcg@10" if metric == "auto" else metric)
    looks = [*range(1, 17), 18, 20, 22, 24, 27, 30, 33, 37, 41, 46, 51, 57, 60]
    values = {n: measure.mean(first(every.trees_, n).scores(vali.features), vali) for n in looks}
    best = max(looks, key=lambda n: values[n])  # the first of equals
    assert 1 < best < 60
    patient: Any = THREE[name](**params, metric=metric, patience=60).fit(train, vali=vali)
    assert patient.rounds_ == (best,)
    assert patient.predict(vali).tobytes() == first(every.trees_, best).scores(vali.features).tobytes()
    hasty: Any = THREE[name](**params, metric=metric, patience=4).fit(train, vali=vali)
    so_far, kept = -np.inf, 0
    for number, value in values.items():
        if value > so_far:
            so_far, kept = value, number
        if number - kept >= 4:
            break
    assert hasty.rounds_ == (kept,)


@pytest.mark.parametrize("name", THREE)
def test_a_bag_is_the_mean_of_its_members(name: str) -> None:
    assert_mean_of_members(THREE[name], {**SMALL, "feature_share": 0.5}, graded(), 3)


@pytest.mark.parametrize("name", ["GBDTRanker", "RandomForestRanker"])
def test_leaves_hold_at_least_so_many_documents(name: str) -> None:
    queries = graded()
    params: dict[str, Any] = {"row_share": 1.0} if name == "GBDTRanker" else {}
    for least in (1, 20, 10**9):
        tree = THREE[name](trees=1, min_documents=least, leaves=100, **params).fit(queries).trees_
        leaf = Trees(tree.feature, tree.threshold, tree.children, np.arange(len(tree.value), dtype=float), tree.starts)
        counts = np.bincount(leaf.scores(queries.features).astype(int), minlength=len(tree.value))
        assert counts.min() >= min(least, queries.n_documents // 10)
        assert least != 1 or counts.min() < 20


@pytest.mark.parametrize("name", THREE)
def test_how_bins_are_kept_changes_nothing_that_is_learnt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = graded()
    thin = queries.with_features(sparse.csr_array(queries.features))
    bundled = THREE[name](**SMALL)
    assert not bundled._source(InMemory(thin)).parameters["is_enable_sparse"]
    expected = bundled.fit(thin).predict(queries)
    monkeypatch.setattr("ranktune.solvers.boosting.lightgbm.ranker.MAX_BUNDLED_BYTES", 0)
    kept = THREE[name](**SMALL)
    assert kept._source(InMemory(thin)).parameters["is_enable_sparse"]
    assert not kept._source(InMemory(queries)).parameters["is_enable_sparse"]
    assert np.abs(kept.fit(thin).predict(queries) - expected).max() < 1e-9 * np.ptp(expected)


def test_one_query_with_pairs_is_learnt_without_stopping() -> None:
    generator = np.random.default_rng(0)
    queries = Queries.from_arrays(generator.random((60, 3)), generator.integers(0, 2, 60))
    ranker: Any = LambdaMART(trees=7, validation=0.5, min_documents=2).fit(queries)
    assert ranker.rounds_ == (7,)


def test_the_mean_grade_of_a_query_may_count_or_not() -> None:
    queries = graded()
    shift = np.repeat(np.random.default_rng(0).integers(0, 50, queries.n_queries), queries.lengths)
    shifted = Queries(queries.features, queries.grades + shift, queries.starts, queries.query_ids)
    levelled = Queries(queries.features, without_level(queries.grades, queries), queries.starts, queries.query_ids)
    ranker = GBDTRanker(**SMALL, centre="query")
    expected = ranker.fit(queries).predict(queries)
    assert np.allclose(ranker.fit(shifted).predict(queries), expected, atol=1e-3)
    ranker.set_params(centre="none")
    assert np.array_equal(ranker.fit(levelled).predict(queries), expected)
    assert not np.allclose(ranker.fit(shifted).predict(queries), ranker.fit(queries).predict(queries), atol=1.0)


def test_of_very_many_grades_neighbours_share_a_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    grades = np.random.default_rng(0).exponential(size=600).round(4)
    X, qid = grades[:, None] + 0.1, np.arange(600) // 10
    exact = LambdaMART(**SMALL).fit(X, grades, qid=qid).predict(X)
    monkeypatch.setattr("ranktune.solvers.boosting.lightgbm.lambda_mart.MAX_GRADES", 100)
    shared = LambdaMART(**SMALL).fit(X, grades, qid=qid).predict(X)
    assert np.corrcoef(exact, shared)[0, 1] > 0.99


def test_what_lightgbm_cannot_hold_is_refused_with_a_way_out() -> None:
    long = Queries.from_arrays(np.ones((10_001, 1)), np.arange(10_001) % 2, group=[10_001])
    with pytest.raises(DataError, match=r"10001 documents.*at most 10000.*GBDTRanker"):
        LambdaMART().fit(long)
    queries = graded()
    for name in ("GBDTRanker", "RandomForestRanker"):
        huge = Queries(queries.features, queries.grades * 1e300, queries.starts, queries.query_ids)
        with pytest.raises(DataError, match=r"a grade of .*single precision.*same factor"):
            THREE[name]().fit(huge)
    for kind in THREE.values():
        with pytest.raises(DataError, match="weight of a query or document of 1e-60"):
            kind().fit(queries.weighted_by(np.full(40, 1e-60)))


def test_validation_queries_that_show_nothing_are_refused_by_the_metric() -> None:
    flat = Queries.from_arrays(np.ones((4, 6)), np.ones(4))
    with pytest.raises(DataError, match="pairwise skips all"):
        LambdaMART(metric="pairwise").fit(graded(), vali=flat)


def test_norm_is_the_parameter_of_lightgbm() -> None:
    queries = graded()
    result = LambdaMART(**SMALL, norm=False).fit(queries).predict(queries)
    booster = by_lightgbm(LambdaMART(**SMALL), queries, lambdarank_norm=False)
    np.testing.assert_allclose(result, booster.predict(queries.features), atol=1e-12)
    assert not np.allclose(result, LambdaMART(**SMALL).fit(queries).predict(queries))
