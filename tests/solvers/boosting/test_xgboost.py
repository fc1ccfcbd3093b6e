"""XGBoost's boosted trees: its scores, and the stopping rule of RankTune; nothing in it that is not named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import ranktune
from ranktune.solvers.boosting import xgboost as xgboost_ranker
from ranktune.solvers.boosting.lightgbm.bins import rows_of
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.boosting.xgboost import XGBoostRanker
from ranktune.solvers.core.arrays import dense
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.other_libraries.xgboost import trees_of
from ranktune.solvers.models.trees import last_below
from ranktune.tuner.workers.executor import InProcess
from tests.support.tree_samples import assert_mean_of_members

xgboost = pytest.importorskip("xgboost")

SMALL: dict[str, Any] = {"trees": 12, "min_weight": 0.1}


def graded(seed: int = 0, queries: int = 40, dtype: Any = np.float64) -> Queries:
    """Queries of 5 to 24 documents, half of whose features are zero, with grades from a rule with noise."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(5, 25, queries)
    X = generator.normal(size=(lengths.sum(), 6)) * (generator.random((lengths.sum(), 6)) < 0.5)
    score = 3.0 * X[:, 0] - X[:, 1] * X[:, 2] + (X[:, 3] > 0.3) + 0.3 * generator.normal(size=len(X))
    grades = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(np.float64)
    return Queries.from_arrays(X.astype(dtype), grades, qid=np.repeat(np.arange(queries), lengths))


def by_xgboost(ranker: XGBoostRanker, queries: Queries) -> Any:
    """The booster of XGBoost with the same parameters."""
    filled = dense(queries.features)
    params = ranker._parameters() | {"seed": int(np.random.default_rng(0).integers(2**31 - 1))}
    data = xgboost.DMatrix(filled, label=np.exp2(queries.grades) - 1.0, qid=queries.query_of_document, nthread=1)
    return xgboost.train(params, data, num_boost_round=ranker.trees)


@pytest.mark.parametrize("pairs", [1, 3])
def test_drawn_pairs_are_those_of_xgboost(pairs: int) -> None:
    queries = graded()
    ranker = XGBoostRanker(**SMALL, pair_method="mean", pairs=pairs).fit(queries)
    params = XGBoostRanker(**SMALL)._parameters() | {"seed": next(ranker._seeds())}
    del params["lambdarank_num_pair_per_sample"]  # XGBoost's default is 1
    params |= {"lambdarank_pair_method": "mean"} | ({"lambdarank_num_pair_per_sample": pairs} if pairs > 1 else {})
    data = xgboost.DMatrix(queries.features, label=np.exp2(queries.grades) - 1.0, qid=queries.query_of_document)
    booster = xgboost.train(params, data, num_boost_round=ranker.trees)
    assert np.allclose(ranker.predict(queries), booster.predict(data, output_margin=True), rtol=1e-5, atol=1e-6)
    assert not np.allclose(ranker.predict(queries), XGBoostRanker(**SMALL).fit(queries).predict(queries), atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_scores_are_those_of_xgboost_itself(layout: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xgboost_ranker, "BATCH_CELLS", 600)  # sparse rows are written out in several batches
    queries, fresh = graded(dtype=dtype), graded(1, dtype=dtype)
    ranker = XGBoostRanker(**SMALL, depth=6, bins=64).fit(queries.with_features(layout(queries.features)))
    booster = by_xgboost(XGBoostRanker(**SMALL, depth=6, bins=64), queries)
    limits = np.unique(np.concatenate([t.threshold for t in (ranker.trees_,)])).astype(np.float32)
    ends = [np.nextafter(limits, np.float32(-np.inf)), limits, np.nextafter(limits, np.float32(np.inf))]
    at_splits = np.concatenate([np.repeat(end[:, None], 6, axis=1) for end in ends])
    between = at_splits[1:].astype(np.float64) / 2.0 + at_splits[:-1] / 2.0
    for X in (queries.features, fresh.features, at_splits, between, np.zeros((1, 6))):
        expected = booster.predict(xgboost.DMatrix(X), output_margin=True)
        assert np.allclose(ranker.predict(layout(X)), expected, rtol=1e-5, atol=1e-6)
    assert np.ptp(expected if len(expected) > 1 else ranker.predict(queries)) > 0.1


def test_every_split_sends_each_number_as_xgboost_does() -> None:
    """To the bit: the leaf that XGBoost says each document ends in, for doubles that round to either side."""
    queries = graded()
    raw: Any = by_xgboost(XGBoostRanker(**SMALL), queries)
    trees = trees_of(raw.save_raw("json"), with_missing=None)
    limits = trees.threshold
    ends = [np.nextafter(limits, -np.inf), limits, np.nextafter(limits, np.inf), limits * (1 + 1e-9)]
    X = np.concatenate([np.repeat(end[:, None], 6, axis=1) for end in ends])
    leaves = raw.predict(xgboost.DMatrix(X), pred_leaf=True)
    for number in range(trees.n_trees):
        a, b = trees.starts[number], trees.starts[number + 1]
        tree = trees_of(raw[number : number + 1].save_raw("json"), with_missing=None)
        assert tree.n_splits == b - a
        for leaf in np.unique(leaves[:, number]):
            assert np.ptp(tree.scores(X[leaves[:, number] == leaf])) == 0.0
        assert len(np.unique(tree.scores(X))) == len({tree.scores(X[i : i + 1])[0] for i in range(len(X))})


LIMITS = np.array([1.0, -1.0, 0.1, -0.1, 3.4e38, -3.4e38, 1e-45, -1e-45, 0.0, 1.1754944e-38, 16777216.0], np.float32)


def test_the_last_double_below_a_limit_is_the_last() -> None:
    generator = np.random.default_rng(0)
    random = generator.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    limits = np.concatenate([LIMITS, random[np.isfinite(random) & (random > -3.4e38)]])
    threshold = last_below(limits)
    assert (threshold.astype(np.float32) < limits).all()
    assert (np.nextafter(threshold, np.inf).astype(np.float32) >= limits).all()


def test_the_rounds_kept_are_those_with_the_best_metric() -> None:
    train, vali = graded(), graded(7, 15)
    params: dict[str, Any] = {"trees": 60, "learning_rate": 0.9, "min_weight": 0.1, "depth": 6, "l2": 0.1}
    growth = XGBoostRanker(**params)._source(InMemory(train)).growth(1)
    assert all(growth.grow() for _ in range(60))
    every = [growth.trees(n, n + 1) for n in range(60)]
    ranker = XGBoostRanker(**params, patience=60)
    metric = parse_metric("ndcg@10")
    looks = [*range(1, 17), 18, 20, 22, 24, 27, 30, 33, 37, 41, 46, 51, 57, 60]
    values = {n: metric.mean(np.sum([t.scores(vali.features) for t in every[:n]], axis=0), vali) for n in looks}
    best = max(looks, key=lambda n: values[n])
    *_, (kept, value) = ranker._watched(XGBoostRanker(**params)._source(InMemory(train)).growth(1), train, vali)
    assert 1 < best < 60
    assert kept.n_trees == best and value == pytest.approx(values[best], abs=1e-12)
    assert ranker.fit(train, vali=vali).rounds_[0] < 60


def test_a_bag_is_the_mean_of_its_members() -> None:
    assert_mean_of_members(XGBoostRanker, SMALL, graded(), 2)


def test_a_share_of_queries_is_learnt_from_as_if_there_were_no_others() -> None:
    queries, chosen = graded(), np.array([0, 1, 4, 7, 8, 9, 20, 33])
    part = queries.select(chosen)
    assert np.array_equal(queries.grades[rows_of(queries, chosen)], part.grades)
    growths = (
        XGBoostRanker(**SMALL)._source(InMemory(queries)).part(chosen).growth(3),
        XGBoostRanker(**SMALL)._source(InMemory(part)).growth(3),
    )
    assert all(growth.grow() for growth in growths)
    ours, alone = (growth.trees(0, 1).scores(queries.features) for growth in growths)
    assert ours.tobytes() == alone.tobytes() and np.ptp(ours) > 0.0


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_a_query_of_weight_two_stands_for_two(scale: float) -> None:
    """At any scale: weights multiply what the penalty and the least weight of a leaf are measured by."""
    queries, chosen = graded(), np.arange(0, 40, 3)
    queries = queries.with_features(np.round(queries.features, 1))  # a bin for each value, whatever the weights
    weights = np.ones(40)
    weights[chosen] = 2.0
    params: dict[str, Any] = {"trees": 12, "row_share": 1.0}
    weighted = XGBoostRanker(**params, l2=1.0 * scale, min_weight=0.5 * scale).fit(queries.weighted_by(weights * scale))
    twice = XGBoostRanker(**params, l2=1.0, min_weight=0.5).fit(concatenate([queries, queries.select(chosen)]))
    even = XGBoostRanker(**params, l2=1.0, min_weight=0.5).fit(queries)
    expected = twice.predict(queries)
    assert np.abs(weighted.predict(queries) - expected).max() < 1e-3 * np.ptp(expected)
    assert np.abs(even.predict(queries) - expected).max() > 1e-2 * np.ptp(expected)


def test_what_xgboost_cannot_hold_is_refused_with_a_way_out() -> None:
    queries = graded()
    with pytest.raises(DataError, match=r"a feature is .*single precision.*Scale"):
        XGBoostRanker().fit(queries.with_features(queries.features * 1e60))
    wide = sparse.csr_array((queries.n_documents, 2**27))
    with pytest.raises(DataError, match=r"would take XGBoost \d+ GB.*LambdaMART"):
        XGBoostRanker().fit(queries.with_features(wide))
    huge = Queries(queries.features, queries.grades * 1e300, queries.starts, queries.query_ids)
    with pytest.raises(DataError, match="single precision"):
        XGBoostRanker().fit(huge)
    for weight in (1e-60, 1e60):
        with pytest.raises(DataError, match=r"min_weight or l2.*single precision"):
            XGBoostRanker().fit(queries.weighted_by(np.full(40, weight)))


def test_drawn_pairs_are_tuned(tmp_path: Path) -> None:
    space = {
        "trees": {"low": 10, "high": 20},
        "loss": "lambdarank",
        "pair_method": "mean",
        "pairs": {"low": 2, "high": 3},
    }
    result = ranktune.tune(
        graded(), vali=graded(1), test=graded(2), solvers=["XGBoostRanker"], trials=3, executor=InProcess(),
        space={f"XGBoostRanker.{name}": value for name, value in space.items()}, home=tmp_path,
    )  # fmt: skip
    assert result.best.params is not None
    assert result.best.params["pair_method"] == "mean" and result.best.params["pairs"] in (2, 3)
