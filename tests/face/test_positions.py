"""Positions of clicked documents: never features, used by LambdaMART alone, and carried with the data."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers import LambdaMART, Queries, RidgeRanker
from ranktune.solvers.core.errors import DataError, RankTuneWarning, StudyError
from ranktune.solvers.data.queries import concatenate
from tests.support.commands import called, study_file

FEATURES = ["a", "b", "old", "noise"]
STUDY: dict[str, Any] = {
    "solvers": ["LambdaMART"], "trials": 2, "sampler": "random", "folds": 2, "position": "position",
    "space": {"LambdaMART.trees": [40]},
}  # fmt: skip
SMALL: dict[str, Any] = {"trees": 40, "leaves": 8, "query_share": 1.0}


def clicked(seed: int, n_queries: int = 300, steepness: float = 1.5) -> pd.DataFrame:
    """Searches whose ranking follows an irrelevant feature, and clicks that fall steeply with the position."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_queries, 10, 4))
    order = np.argsort(-(X[..., 2] + generator.normal(size=X.shape[:2])), axis=1)
    position = np.argsort(order, axis=1) + 1
    chance = position**-steepness / (1.0 + np.exp(X[..., 1] - X[..., 0]))
    frame = pd.DataFrame(X.reshape(-1, 4), columns=FEATURES)
    click = (generator.random(chance.shape) < chance).ravel().astype(int)
    return frame.assign(qid=np.arange(len(frame)) // 10, grade=click, position=position.ravel())


def truth_of(model: Any) -> float:
    """The rank correlation of scores with true relevance, on fresh documents."""
    X = np.random.default_rng(99).normal(size=(1000, 4))
    return float(kendalltau(model.predict(X), X[:, 0] - X[:, 1])[0])


def fit(frame: pd.DataFrame, positions: object = None, **parameters: Any) -> LambdaMART:
    given: dict[str, Any] = {"qid": frame["qid"].to_numpy(), "positions": positions}
    return LambdaMART(**SMALL | parameters).fit(frame[FEATURES].to_numpy(), frame["grade"].to_numpy(), **given)


def tuned(folder: Path, data: object, **settings: Any) -> StudyResult:
    return ranktune.tune(data, **STUDY | settings, home=folder)


@pytest.mark.parametrize("seed", range(6))
def test_a_fit_with_positions_is_nearer_to_the_truth(seed: int) -> None:
    frame = clicked(seed)
    corrected = truth_of(fit(frame, frame["position"]))
    assert corrected > truth_of(fit(frame)) + 0.05
    assert corrected > truth_of(fit(frame, frame["position"], position_l2=1e9)) + 0.05  # hardly any effect is left


def test_positions_that_are_all_the_same_or_without_a_use_change_no_bit() -> None:
    frame = clicked(0, 60)
    X = frame[FEATURES].to_numpy()
    plain = fit(frame).predict(X)
    np.testing.assert_array_equal(fit(frame, np.full(600, 3)).predict(X), plain)
    assert (fit(frame, frame["position"]).predict(X) != plain).any()
    for name in ("xendcg", "smoothed"):
        scores = fit(frame, frame["position"], loss=name).predict(X)
        np.testing.assert_array_equal(scores, fit(frame, loss=name).predict(X))
    given: dict[str, Any] = {"qid": frame["qid"].to_numpy()}
    weights = RidgeRanker().fit(X, frame["grade"].to_numpy(), positions=frame["position"], **given).coef_
    np.testing.assert_array_equal(weights, RidgeRanker().fit(X, frame["grade"].to_numpy(), **given).coef_)


def test_positions_follow_their_documents_and_are_part_of_the_data() -> None:
    order, frame = np.random.default_rng(0).permutation(200), clicked(0, 20)
    given: dict[str, Any] = {"X": frame[FEATURES].to_numpy()[order], "y": np.arange(200), "qid": frame["qid"][order]}
    queries = Queries.from_arrays(**given, positions=np.arange(200))
    plain = Queries.from_arrays(**given)
    np.testing.assert_array_equal(queries.positions, queries.grades)
    np.testing.assert_array_equal(queries.select([7, 2]).positions, queries.select([7, 2]).grades)
    joined = concatenate([plain, queries])
    assert joined.positions is not None and not joined.positions[:200].any()
    np.testing.assert_array_equal(joined.positions[200:], queries.positions)
    weighted = Queries.from_arrays(**given, document_weights=np.arange(200) + 1.0)
    assert len({queries.fingerprint, plain.fingerprint, weighted.fingerprint}) == 3
    for bad in (np.arange(3), np.full(200, 0.5), np.full(200, -1), np.full(200, np.nan), np.full(200, 2**31)):
        with pytest.raises(DataError, match="position"):
            Queries.from_arrays(**given, positions=bad)


def test_a_study_learns_with_positions_and_is_continued_with_the_same(tmp_path: Path) -> None:
    frame = clicked(1, 120)
    result = tuned(tmp_path, frame, name="p")
    assert result.best_model.feature_names == tuple(FEATURES)
    chosen = dict(result.best_model.parameters)
    assert chosen.get("loss", "lambdarank") == "lambdarank"
    assert tuned(tmp_path, frame, name="p", trials=3).trials == 3
    with pytest.raises(StudyError):
        tuned(tmp_path, frame.assign(position=11 - frame["position"]), name="p", trials=4)
    without = tuned(tmp_path, frame, position=None, drop=["position"])
    assert truth_of(result.best_model) > truth_of(without.best_model)


def test_solvers_without_a_use_for_positions_are_named_once(tmp_path: Path) -> None:
    frame = clicked(2, 60)
    with pytest.warns(RankTuneWarning, match="RidgeRanker learns without positions") as warned:
        tuned(tmp_path, frame, solvers=["LambdaMART", "RidgeRanker"])
    assert sum("without positions" in str(each.message) for each in warned) == 1
    with pytest.warns(RankTuneWarning, match="ElasticRank and SOLAR1 learn without positions"):
        ranktune.one_pass(frame, position="position", configurations=2)
    with pytest.raises(DataError, match=r"'position' would become a feature.*position=\"position\""):
        tuned(tmp_path, frame, position=None)


def test_the_command_takes_the_column_where_the_data_have_it(tmp_path: Path) -> None:
    clicked(3, 60).to_parquet(tmp_path / "log.parquet")
    clicked(4, 30).drop(columns="position").to_parquet(tmp_path / "test.parquet")
    declared = study_file(tmp_path / "positions.toml", data="log.parquet", position="position")
    ran = called("tune", declared, "--solver", "LambdaMART",
                 "--test", str(tmp_path / "test.parquet"),
                 "--trials", "1", "--home", str(tmp_path), "--json")  # fmt: skip
    assert ran.exit_code == 0, ran.output
    (model,) = tmp_path.glob("*/model.json")
    assert ranktune.load_model(model).feature_names == tuple(FEATURES)
    ranktune.convert(tmp_path / "log.parquet", tmp_path / "stored", position="position")
    np.testing.assert_array_equal(
        ranktune.read(tmp_path / "stored").positions,
        ranktune.read(tmp_path / "log.parquet", position="position").positions,
    )
