"""Two stages: the order, the loss of a window, the smallest window that will do, and the features of the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import make
from ranktune.tuner.deployment.stage_files import FirstStage, check_stages, write_two_stages
from ranktune.tuner.deployment.two_stage import MAX_LOSS, staged, two_stages
from ranktune.tuner.evaluation.feature_costs import FeatureCosts
from ranktune.tuner.evaluation.feature_order import FeatureLimits
from ranktune.tuner.evaluation.feature_sets import FeatureBudget


def sample(seed: int = 0, *, missing: bool = False) -> Queries:
    """Queries of 15 to 30 documents, whose grades follow six features, the first ones most."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(15, 31, size=30)
    X = generator.normal(size=(lengths.sum(), 6))
    utility = X @ [2.0, 1.0, 0.5, 0.3, 0.2, 0.1] + np.abs(X[:, 1]) + generator.normal(size=len(X))
    if missing:
        X[generator.random(len(X)) < 0.1, 0] = np.nan
    return Queries.from_arrays(X, np.digitize(utility, [0.0, 2.0, 4.0]), group=lengths.tolist())


def limited(**limits: float) -> FeatureBudget:
    return FeatureBudget(FeatureCosts(), FeatureLimits(**limits))


@given(seed=st.integers(0, 500), window=st.integers(1, 35))
@settings(max_examples=30, deadline=None)
def test_the_order_is_the_window_by_one_score_and_the_rest_by_the_other(seed: int, window: int) -> None:
    queries, generator = sample(1), np.random.default_rng(seed)
    first, full = (np.round(generator.normal(size=queries.n_documents), 1) for _ in range(2))
    result = staged(first, full, queries, window)
    for begin, end in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        order = sorted(range(begin, end), key=lambda k: -first[k])
        expected = sorted(order[:window], key=lambda k: -full[k]) + order[window:]
        ours = sorted(order, key=lambda k: -result[k])
        assert ours == expected
    assert (staged(first, full, queries, 31) == full).all()


@pytest.fixture(scope="module")
def queries() -> Queries:
    return sample()


@pytest.fixture(scope="module")
def model(queries: Queries) -> Any:
    return make("RankBoost", {"rounds": 20}, 0).fit(queries).as_model(metric="ndcg@5")


def test_the_window_is_the_smallest_whose_loss_is_small(model: Any, queries: Queries) -> None:
    result = two_stages(model, queries, limited(features=2.0))
    assert result.metric == "ndcg@5"
    assert result.first.model.nonzeros == 2
    assert result.first.model.n_features == 6
    sizes = [window.window for window in result.windows]
    assert sizes == sorted(sizes)
    assert sizes[-1] == queries.lengths.max()
    for window in result.windows:
        assert window.loss.low <= window.loss.mean <= window.loss.high
        assert (window.loss.high <= MAX_LOSS) >= (window.window == result.chosen)
        assert window.window >= result.chosen or window.loss.high > MAX_LOSS
    assert result.windows[-1].loss.mean == 0.0
    assert result.windows[0].loss.high > MAX_LOSS  # else this shows nothing
    assert result.by_mean <= result.by_interval == result.chosen
    times = [window.microseconds for window in result.windows]
    assert times == sorted(times)
    chosen = two_stages(model, queries, limited(features=2.0), 7)
    assert (chosen.chosen, chosen.by_interval) == (7, result.chosen)
    assert 7 in [window.window for window in chosen.windows]


def test_a_first_stage_of_all_features_of_a_linear_model_loses_nothing(queries: Queries) -> None:
    linear = LinearModel(np.array([1.0, 0.5, 0.0, 2.0, 0.0, -1.0]), "RankSVM")
    result = two_stages(linear, queries, limited(features=6.0))
    np.testing.assert_array_equal(result.first.model.used_features, linear.used_features)
    assert all(window.loss.high <= MAX_LOSS for window in result.windows if window.window >= 10)


def test_costs_decide_the_features_of_the_first_stage(model: Any, queries: Queries) -> None:
    dear = FeatureBudget(FeatureCosts.parse({"f1": 10.0}), FeatureLimits(cost=2.0))
    assert 0 in two_stages(model, queries, limited(cost=2.0)).first.model.used_features
    assert 0 not in two_stages(model, queries, dear).first.model.used_features


def test_features_that_documents_lack_are_left_out_where_the_engine_cannot_tell() -> None:
    queries = sample(missing=True)
    model = make("RankBoost", {"rounds": 10}, 0).fit(queries).as_model()
    for complete in (True, False):
        first = two_stages(model, queries, limited(features=2.0), complete=complete).first.model
        assert isinstance(first, LinearModel)
        assert (0 in first.used_features) != complete
        assert (first.missing is None) == complete


@pytest.mark.parametrize(
    ("change", "limits", "message"),
    [
        ({"grades": 0.0}, {"features": 2.0}, "cannot be measured"),
        ({}, {"cost": 0.5}, "no feature of the model is left"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    model: Any, queries: Queries, change: dict[str, float], limits: dict[str, float], message: str
) -> None:
    grades = queries.grades * change.get("grades", 1.0)
    with pytest.raises(DataError, match=message):
        two_stages(
            model, Queries.from_arrays(queries.features, grades, qid=queries.query_of_document), limited(**limits)
        )


def test_the_files_and_the_table_are_written(model: Any, queries: Queries, tmp_path: Path) -> None:
    first = FirstStage.parse(7, "cost<=3", "f1=2")
    assert first.budget.limits == FeatureLimits(cost=3.0)
    said = write_two_stages(model, "solr", tmp_path / "out", first, queries, name="mine", store="S")
    assert "Window: 7." in said
    assert "Written into" in said
    request = json.loads((tmp_path / "out" / "request.json").read_text())
    assert request["params"]["rq"] == "{!ltr model=mine reRankDocs=7}"
    with pytest.raises(ParameterError, match="limits of cost or features"):
        FirstStage.parse(None, "bytes<=3", None)
    with pytest.raises(ParameterError, match="add -o FOLDER"):
        check_stages("solr", None)
    with pytest.raises(ParameterError, match="onnx has no two stages"):
        check_stages("onnx", tmp_path)


def test_a_model_that_compares_all_documents_of_a_query_is_no_second_stage(queries: Queries) -> None:
    model = make("LambdaMART", {"within_query": "ranks", "trees": 5}, 0).fit(queries).as_model()
    with pytest.raises(ParameterError, match="second stage gets the best of them alone"):
        two_stages(model, queries, limited(features=2.0))
