"""The end of a study: blends, evidence, estimates, plans that keep to queries, and limits."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import make
from ranktune.tuner.policy.blends import scale
from ranktune.tuner.selection.evidence import read_evidence
from ranktune.tuner.selection.leaderboard import DefaultModel, tuning_gain
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.selection.rows import LINEAR_BLEND
from tests.support.engine_samples import SOLVERS, graded, on_test, tuned, weights


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
    assert set(actual["alternatives"]) <= {"smallest", "knee"}


@pytest.mark.parametrize("kept", [{"plan": "split"}, {"refit": False}])
def test_the_given_validation_queries_alone_choose(kept: dict[str, Any], tmp_path: Path) -> None:
    train, vali = graded(40, 0), graded(20, 1)
    result = tuned(tmp_path, train, vali=vali, test=graded(9, 2), trials=6, **kept)
    assert {row.solver for row in result.leaderboard} == set(SOLVERS)
    assert all(row.again is None for row in result.leaderboard)
    means = [row.vali.mean for row in result.leaderboard if row.vali]
    assert means[0] == max(means)
    for row, mean in zip(result.leaderboard, means, strict=True):
        ranker = make(row.solver, dict(row.params or {}), 0).fit(train)
        assert mean == pytest.approx(parse_metric("ndcg@10").mean(ranker.predict(vali), vali))
        model = load_model(Path(result.folder) / "models" / f"{row.solver}.json")
        learned = ranker if "refit" in kept else make(row.solver, row.params or {}, 0).fit(concatenate([train, vali]))
        np.testing.assert_allclose(model.predict(vali), learned.predict(vali), atol=1e-12)


def test_without_test_queries_nothing_is_set_aside(tmp_path: Path) -> None:
    result = tuned(tmp_path, test="none")
    assert result.best.test is None
    assert result.test_metrics == {} and result.tuning is None
    evidence = read_evidence(Path(result.folder) / "evidence.npz")
    assert (evidence.part, len(evidence.queries)) == ("vali", 40)
    assert evidence.values["ndcg@10"].shape == (4, 40)


def test_nested_folds_judge_the_procedure_and_all_queries_make_the_model(tmp_path: Path) -> None:
    result = tuned(tmp_path, graded(30, 0), plan="nested", outer=3, solvers=("RidgeRanker",), trials=2)
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
        tuned(tmp_path, **fields)


def test_the_chosen_keeps_within_limits(tmp_path: Path) -> None:
    result = tuned(tmp_path, within="features<=2", trials=4)
    assert {row.solver for row in result.leaderboard} >= {*SOLVERS, "LinearBlend"}  # no trial was in vain
    assert all(row.nonzeros <= 2 for row in result.leaderboard)
    assert result.best_model.n_features == graded(40, 0).n_features
    with pytest.raises(StudyError, match="none of 3 trials keeps within bytes<=1"):
        tuned(tmp_path, within="bytes<=1", name="bytes")


def test_the_gain_is_that_over_the_best_default_on_the_test_queries(tmp_path: Path) -> None:
    train, test = graded(30, 0, noise=2.0), graded(20, 1, noise=2.0)
    result = tuned(tmp_path, train, test=test, trials=8)
    actual = result.tuning
    assert actual is not None and actual.gain is not None
    default = make(actual.default, {}, 0).fit(train)
    metric = parse_metric("ndcg@10")
    ours, theirs = (metric.per_query(own.predict(test), test) for own in (result.best_model, default))
    assert actual.gain.mean == pytest.approx(np.nanmean(ours - theirs), abs=1e-9)
    assert actual.gain.low <= actual.gain.mean <= actual.gain.high
    assert load_result(Path(result.folder) / "result.json").tuning == actual


def test_a_default_gains_nothing_over_itself(tmp_path: Path) -> None:
    result = tuned(tmp_path, graded(30, 0, noise=2.0), solvers="RidgeRanker", trials=1)
    assert result.tuning is not None and result.tuning.default == "RidgeRanker"
    assert result.tuning.gain is None and result.tuning.p_value is None


def test_over_splits_it_is_the_mean_and_needs_all_of_them() -> None:
    generator = np.random.default_rng(0)
    chosen = [np.array([0.5, 0.7]), np.array([0.9, 0.1, 0.2])]
    defaults = [DefaultModel("A", np.array([0.4, 0.7]), False), DefaultModel("A", chosen[1], True)]
    result = tuning_gain(defaults, chosen, generator)
    assert result is not None and result.gain is not None and result.gain.mean == pytest.approx(0.025)
    assert tuning_gain([*defaults[:1], None], chosen, generator) is None
    none = tuning_gain([DefaultModel("A", own, True) for own in chosen], chosen, generator)
    assert none is not None and none.gain is None
