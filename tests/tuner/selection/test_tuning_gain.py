"""What tuning gained: the delivered model against the best default, computed again by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.selection.leaderboard import DefaultModel, tuning_gain
from ranktune.tuner.selection.results import load_result


def made(seed: int, queries: int) -> Queries:
    generator = np.random.default_rng(seed)
    X, qid = generator.random((10 * queries, 5)), np.repeat(np.arange(queries), 10)
    y = np.digitize(X[:, 0] - X[:, 1] + 0.5 * generator.normal(size=len(X)), [0.0, 0.5])
    return Queries.from_arrays(X, y, qid=qid)


def test_the_gain_is_that_over_the_best_default_on_the_test_queries(tmp_path: Path) -> None:
    train, test = made(0, 30), made(1, 20)
    result = ranktune.tune(
        train, test=test, solvers=("RidgeRanker", "RankSVM"), trials=8, sampler="random", name="s", home=tmp_path,
        jobs=1,
    )  # fmt: skip
    actual = result.tuning
    assert actual is not None and actual.gain is not None
    default = make(actual.default, {}, 0).fit(train)
    metric = parse_metric("ndcg@10")
    ours, theirs = (metric.per_query(own.predict(test), test) for own in (result.best_model, default))
    assert actual.gain.mean == pytest.approx(np.nanmean(ours - theirs), abs=1e-9)
    assert actual.gain.low <= actual.gain.mean <= actual.gain.high
    saved = load_result(Path(result.folder) / "result.json")["tuning"]
    assert saved["gain"] == actual.gain.mean and saved["gain_interval"] == [actual.gain.low, actual.gain.high]


def test_a_default_gains_nothing_over_itself(tmp_path: Path) -> None:
    result = ranktune.tune(made(0, 30), solvers="RidgeRanker", trials=1, name="s", home=tmp_path, jobs=1)
    assert result.tuning is not None and result.tuning.default == "RidgeRanker"
    assert result.tuning.gain is None and result.tuning.p_value is None


def test_without_test_queries_nothing_is_claimed(tmp_path: Path) -> None:
    result = ranktune.tune(made(0, 30), test="none", solvers="RidgeRanker", trials=2, home=tmp_path, jobs=1)
    assert result.tuning is None


def test_over_splits_it_is_the_mean_and_needs_all_of_them() -> None:
    generator = np.random.default_rng(0)
    chosen = [np.array([0.5, 0.7]), np.array([0.9, 0.1, 0.2])]
    defaults = [DefaultModel("A", np.array([0.4, 0.7]), False), DefaultModel("A", chosen[1], True)]
    result = tuning_gain(defaults, chosen, generator)
    assert result is not None and result.gain is not None and result.gain.mean == pytest.approx(0.025)
    assert tuning_gain([*defaults[:1], None], chosen, generator) is None
    none = tuning_gain([DefaultModel("A", own, True) for own in chosen], chosen, generator)
    assert none is not None and none.gain is None
