"""The end of a study: blends, evidence, estimates, plans that keep to queries, and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import ranktune
from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import make
from ranktune.tuner.policy.blends import scale
from ranktune.tuner.selection.evidence import read_evidence
from ranktune.tuner.selection.results import LINEAR_BLEND, Result
from tests.support.engine_samples import SOLVERS, graded, on_test, weights


def test_blends_are_what_their_shares_say(result: Result) -> None:
    folder = Path(result.folder)
    rows = {row.solver: row for row in result.leaderboard}
    shares = rows[LINEAR_BLEND].params or {}
    assert sum(cast(float, share) for share in shares.values()) == pytest.approx(1.0, abs=1e-5)
    models = {name: load_model(folder / "models" / f"{name}.json") for name in (*SOLVERS, LINEAR_BLEND)}
    assert isinstance(models[LINEAR_BLEND], LinearModel)
    development = concatenate([graded(40, 0), graded(20, 1)])
    members = rows[LINEAR_BLEND].params or {}
    if set(members) <= set(SOLVERS):  # one of each: their models are those of the rows
        total = np.zeros(development.n_documents)
        for name, share in members.items():
            scores = models[name].predict(development)
            total += cast(float, share) * scores / scale(scores, development)
        np.testing.assert_allclose(models[LINEAR_BLEND].predict(development), total, rtol=1e-9)


def test_the_evidence_is_what_the_models_score(result: Result) -> None:
    evidence = read_evidence(Path(result.folder) / "evidence.npz")
    assert evidence.part == "test"
    assert evidence.labels == tuple(row.solver for row in result.leaderboard)
    test = graded(30, 2)
    for k, file in enumerate(evidence.models):
        model = load_model(Path(result.folder) / file)
        expected = parse_metric("ndcg@10").per_query(model.predict(test), test)
        np.testing.assert_allclose(evidence.values["ndcg@10"][k], expected, rtol=1e-12)
    assert evidence.closely[0].query in evidence.queries


def test_the_estimate_is_of_what_was_chosen(result: Result) -> None:
    actual = result.as_dict()
    low, high = actual["estimate_interval"]
    assert low < actual["estimate"] < high
    assert low <= on_test(result.best) <= high
    assert {row["verdict"] for row in actual["leaderboard"][1:]} <= {"not told apart", "worse", "better"}
    assert set(actual["alternatives"]) == {"smallest", "fastest", "knee"}


def test_a_strict_plan_keeps_to_the_given_validation_queries(tmp_path: Path) -> None:
    result = ranktune.tune(
        graded(40, 0), vali=graded(20, 1), test=graded(9, 2), solvers=SOLVERS, plan="split", trials=3,
        sampler="random", home=tmp_path, jobs=1,
    )  # fmt: skip
    assert {row.solver for row in result.leaderboard} == set(SOLVERS)
    assert all(row.again is None for row in result.leaderboard)
    ranker = make("RidgeRanker", {}, 0)
    row = next(row for row in result.leaderboard if row.solver == "RidgeRanker")
    ranker.set_params(**(row.params or {})).fit(graded(40, 0))
    assert row.vali is not None
    vali = graded(20, 1)
    assert row.vali.mean == pytest.approx(parse_metric("ndcg@10").mean(ranker.predict(vali), vali))


def test_without_test_queries_nothing_is_set_aside(tmp_path: Path) -> None:
    result = ranktune.tune(
        graded(40, 0), test="none", solvers=SOLVERS, trials=3, sampler="random", home=tmp_path, jobs=1
    )
    assert result.best.test is None
    assert result.test_metrics == {}
    evidence = read_evidence(Path(result.folder) / "evidence.npz")
    assert (evidence.part, len(evidence.queries)) == ("vali", 40)
    assert evidence.values["ndcg@10"].shape == (4, 40)


def test_nested_folds_judge_the_procedure_and_all_queries_make_the_model(tmp_path: Path) -> None:
    result = ranktune.tune(
        graded(30, 0), plan="nested", outer=3, solvers=("RidgeRanker",), trials=2, sampler="random",
        home=tmp_path, jobs=1,
    )  # fmt: skip
    assert [fold.name for fold in result.folds] == ["outer1", "outer2", "outer3", "all"]
    assert result.folds[-1].best.test is None
    means = [on_test(fold.best) for fold in result.folds[:-1]]
    assert on_test(result.best) == pytest.approx(float(np.mean(means)))
    assert Path(result.model) == Path(result.folder).resolve() / "all" / "model.json"
    row = next(row for row in result.folds[-1].leaderboard if row.solver == "RidgeRanker")
    ranker = make("RidgeRanker", dict(row.params or {}), 0)
    assert isinstance(ranker, LinearRanker)
    own = load_model(Path(result.folder) / "all" / "models" / "RidgeRanker.json")
    np.testing.assert_allclose(weights(own), ranker.fit(graded(30, 0)).coef_, rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "saved"),
    [
        ({"plan": "split", "folds": 3}, "does not deal queries into folds"),
        ({"plan": "nested", "test": "x.txt"}, "judges on outer folds"),
        ({"timeout": 0}, "timeout=0"),
        ({"repeats": 0}, "repeats=0"),
        ({"plan": "split"}, "there are none"),
    ],
)
def test_plans_that_contradict_themselves_are_refused(tmp_path: Path, fields: dict[str, Any], saved: str) -> None:
    with pytest.raises((ParameterError, DataError), match=saved):
        ranktune.tune(graded(40, 0), solvers=SOLVERS, home=tmp_path, jobs=1, **fields)


def test_the_chosen_keeps_within_limits(tmp_path: Path) -> None:
    options = {"solvers": SOLVERS, "trials": 4, "sampler": "random", "home": tmp_path, "jobs": 1}
    result = ranktune.tune(graded(40, 0), within="features<=2", **options)  # type: ignore[arg-type]
    assert {row.solver for row in result.leaderboard} >= {*SOLVERS, "LinearBlend"}  # no trial was in vain
    assert all(row.nonzeros <= 2 for row in result.leaderboard)
    assert result.best_model.n_features == graded(40, 0).n_features
    with pytest.raises(StudyError, match="none of 4 trials keeps within bytes<=1"):
        ranktune.tune(graded(40, 0), within="bytes<=1", **options)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="is not a limit"):
        ranktune.tune(graded(40, 0), within="features<29", **options)  # type: ignore[arg-type]
