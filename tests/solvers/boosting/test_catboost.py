"""CatBoostRanker: trees as CatBoost predicts them, in blocks that add up, stopped by validation queries."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.boosting.catboost import BLOCK, CatBoostRanker, noise_after, trees_of
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.trees import joined
from tests.support.tree_samples import by_catboost, graded

LOSSES = ["YetiRank", "QueryRMSE", "YetiRankPairwise"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_converted_trees_score_as_catboost_predicts(loss: str, dtype: Any) -> None:
    train, other = graded(dtype=dtype), graded(1, dtype=dtype)
    model = by_catboost(train, loss_function=loss, iterations=30, depth=5)
    ours = joined(trees_of(model, has_missing=False)).scores(other.features)
    np.testing.assert_allclose(ours, model.predict(other.features), rtol=0.0, atol=1e-12)


def test_numbers_beside_a_border_go_where_catboost_sends_them() -> None:
    generator = np.random.default_rng(0)
    X = generator.random((400, 1))
    train = Queries.from_arrays(X, X[:, 0], group=np.full(40, 10))
    model = by_catboost(train, loss_function="QueryRMSE", iterations=5, depth=4)
    trees = joined(trees_of(model, has_missing=False))
    near = np.concatenate([trees.threshold, np.nextafter(trees.threshold, 9.0), np.nextafter(trees.threshold, -9.0)])
    np.testing.assert_allclose(trees.scores(near[:, None]), model.predict(near[:, None]), rtol=0.0, atol=1e-12)


def test_no_more_than_a_block_is_grown_ahead_of_the_rounds_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import catboost

    asked: list[int] = []
    whole = catboost.CatBoost.fit

    def recorded(self: Any, *given: Any, **named: Any) -> Any:
        asked.append(self.get_param("iterations"))
        return whole(self, *given, **named)

    monkeypatch.setattr(catboost.CatBoost, "fit", recorded)
    ranker = CatBoostRanker(trees=1000)
    steps = ranker.fit_steps(graded())
    for rounds in range(1, 2 * BLOCK + 2):
        next(steps)
        assert sum(asked) == -(-rounds // BLOCK) * BLOCK
    assert set(asked) == {BLOCK} and BLOCK <= 8


def test_without_chance_blocks_are_one_fit_of_catboost() -> None:
    train, other = graded(), graded(1)
    ours = CatBoostRanker(trees=3 * BLOCK, loss="QueryRMSE", randomness=0.0, row_share=1.0, depth=4).fit(train)
    model = by_catboost(
        train, loss_function="QueryRMSE", iterations=3 * BLOCK, depth=4, learning_rate=ours.learning_rate,
        l2_leaf_reg=ours.l2, random_strength=0.0, bootstrap_type="No",
    )  # fmt: skip
    np.testing.assert_allclose(ours.predict(other), model.predict(other.features), rtol=0.0, atol=1e-6)


def test_noise_becomes_less_as_a_model_grows() -> None:
    factors = [noise_after(length, 1000) for length in np.linspace(0.0, 2.0 * np.log(1000), 9)]
    assert factors[0] == pytest.approx(1.0, abs=2e-3) and factors[4] == pytest.approx(0.5)
    assert factors == sorted(factors, reverse=True) and factors[-1] < 2e-3


def test_validation_queries_end_boosting() -> None:
    ranker = CatBoostRanker(trees=400, learning_rate=0.3, patience=10).fit(graded(), vali=graded(1))
    assert ranker.trees_.n_trees < 300


def test_the_scores_before_the_first_tree_are_continued() -> None:
    train, other, metric = graded(), graded(1), parse_metric("ndcg@5")
    first = CatBoostRanker(trees=40).fit(train)
    both = CatBoostRanker(trees=20).continue_from(first.as_model()).fit(train)
    assert both.as_model().nonzeros > 0
    added = both.predict(other) - first.predict(other)
    np.testing.assert_allclose(added, both.trees_.scores(other.features), atol=1e-9)
    linear = CatBoostRanker(trees=40, start="linear").fit(train)
    assert metric.mean(linear.predict(other), other) > 0.5


def test_what_it_cannot_take_is_refused() -> None:
    with pytest.raises(DataError, match="single precision"):
        CatBoostRanker().fit(graded().with_features(graded().features * 1e300))
    with pytest.raises(DataError, match="CatBoost cannot learn from these data"):
        CatBoostRanker(trees=3, loss="YetiRank", row_share=0.7).fit(np.array([[1.0], [2.0]]), [0, 1], qid=[0, 0])


def test_nothing_is_written_where_it_runs(tmp_path: Path) -> None:
    code = (
        "import numpy as np; from ranktune.solvers import CatBoostRanker;"
        "X = np.arange(40.0)[:, None]; CatBoostRanker(trees=3).fit(X, np.arange(40) % 3, group=[10] * 4)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
