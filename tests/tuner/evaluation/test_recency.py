"""Recency weights: what they are, who has them, and that they stay in fitting."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune import Study
from ranktune.api import name_of
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.feature_costs import HALF_LIFE, SHARES
from ranktune.tuner.evaluation.fitting import weighed
from ranktune.tuner.workers.executor import InProcess

TIMES = np.array([0.0, 5.0, 10.0, 20.0])


def queries(weights: list[float] | None = None) -> Queries:
    X, y = np.arange(8.0)[:, None], np.tile([0, 1], 4)
    return Queries.from_arrays(X, y, qid=np.repeat(range(4), 2), query_weights=weights, times=np.repeat(TIMES, 2))


@pytest.mark.parametrize("share", ["1", "1/2", "1/4", "1/8"])
def test_weights_halve_with_every_half_life_and_multiply_given_ones(share: str) -> None:
    given = [2.0, 1.0, 3.0, 1.0]
    half_life = SHARES[share] * 20.0
    expected = given * np.exp(-(20.0 - TIMES) * np.log(2.0) / half_life)
    np.testing.assert_allclose(weighed(queries(given), {HALF_LIFE: share}).weight_of_query, expected, rtol=1e-12)


def test_without_a_half_life_or_times_nothing_changes() -> None:
    known = queries()
    assert weighed(known, {HALF_LIFE: "inf"}) is weighed(known, {}) is known
    untimed = Queries.from_arrays([[1.0], [2.0]], [0, 1])
    assert weighed(untimed, {HALF_LIFE: "1"}) is untimed
    assert weighed(known.select([1]), {HALF_LIFE: "1"}).query_weights is None


def test_solvers_that_weigh_queries_have_it_where_times_are_known() -> None:
    solvers = ["RidgeRanker", "PAMIR", "Ranker"]
    space = Study(time="day", solvers=solvers).union_space()
    assert {"RidgeRanker.half_life", "Ranker.half_life"} == {n for n in space.distributions if n.endswith(HALF_LIFE)}
    assert all(params.get(f"{params['solver']}.half_life", "inf") == "inf" for params in space.defaults())
    assert Study(data=name_of(queries()), solvers=solvers).union_space().distributions == space.distributions
    for other in (Study(solvers=solvers), Study(time="day", plan="progressive", solvers=["PAMIR"])):
        assert not any(name.endswith(HALF_LIFE) for name in other.union_space().distributions)


def test_where_the_truth_has_moved_recent_queries_count_more(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    day = np.repeat(np.arange(40), 60)
    X = generator.normal(size=(len(day), 2))
    truth = np.where(day < 14, X[:, 0], X[:, 1]) + generator.normal(scale=0.3, size=len(day))
    frame = pd.DataFrame({"qid": np.arange(len(day)) // 6, "grade": np.digitize(truth, [0.0, 1.0]), "day": day})
    frame = frame.assign(a=X[:, 0], b=X[:, 1])
    study: dict[str, Any] = {"solvers": "RidgeRanker", "trials": 2, "folds": 3, "time": "day"}

    def tested(half_life: str) -> float:
        space = {"RidgeRanker.half_life": half_life}
        result = ranktune.tune(frame, **study, space=space, executor=InProcess(), home=tmp_path / half_life[-1])
        assert result.best.test is not None
        model = result.best_model
        last = frame[frame["day"] >= 32]  # scored without weights
        mean = ranktune.evaluate(model, last.drop(columns="day"))["metrics"]["ndcg@10"]["mean"]
        assert mean == pytest.approx(result.best.test.mean)
        return result.best.test.mean

    assert tested("1/8") > tested("inf") + 0.005
    free = ranktune.tune(frame, **study | {"trials": 8}, executor=InProcess(), home=tmp_path / "free")
    assert free.best.params is not None and free.best.params[HALF_LIFE] != "inf"
