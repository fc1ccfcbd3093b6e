"""Weights of queries count in everything that a study averages: in Python, at the command line and on the pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from optuna.trial import TrialState

import ranktune
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views import overview, queries
from ranktune.notebook import StudyResult
from ranktune.solvers import Int, Queries, parse_metric
from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.registrations import REGISTERED
from ranktune.solvers.core.space import Parameter
from ranktune.tuner.selection.evidence import EVIDENCE, read_evidence
from ranktune.tuner.storage.record import Record
from tests.support.study_samples import keyed

METRIC = "ndcg@5"
STUDY: dict[str, Any] = {
    "solvers": ["RidgeRanker", "BestFeature"], "trials": 4, "sampler": "random", "folds": 3, "metric": METRIC
}  # fmt: skip


def frame_of(n_queries: int, seed: int) -> pd.DataFrame:
    """Queries two thirds of which follow the title, and the others, which count much more, the body."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(9 * n_queries, 3))
    qid = np.arange(len(X)) // 9
    second = qid % 3 == 2
    truth = np.where(second, X[:, 1], X[:, 0]) + generator.normal(size=len(X))
    traffic = np.where(second, 20.0, 1.0) + generator.random(n_queries)[qid]
    known = {"title": X[:, 0], "body": X[:, 1], "today": X[:, 2] + 0.3 * truth}
    return pd.DataFrame({"qid": qid, "grade": np.digitize(truth, [0.5, 1.5]), "traffic": traffic, **known})


TRAIN, TEST, VALI = frame_of(60, 0), frame_of(45, 1), frame_of(40, 2)
WEIGHTS = TEST.groupby("qid")["traffic"].first().to_numpy()


def tuned(folder: Path, **settings: Any) -> StudyResult:
    given = STUDY | {"test": TEST, "weight": "traffic", "name": "s"} | settings
    return ranktune.tune(TRAIN, **given, home=folder)


def per_query(scores: Floats, table: pd.DataFrame = TEST) -> Floats:
    """The metric by query, from plain arrays."""
    plain = Queries.from_arrays(np.zeros((len(table), 1)), table["grade"].to_numpy(), qid=table["qid"].to_numpy())
    return parse_metric(METRIC).per_query(scores, plain)


def weighted(values: Floats, weights: Floats = WEIGHTS) -> float:
    known = ~np.isnan(values)
    return float(np.dot(values[known], weights[known]) / weights[known].sum())


def test_every_number_of_a_study_is_weighted(tmp_path: Path) -> None:
    result = tuned(tmp_path, also="map", baseline="column:today", drop=[])
    folder = Path(result.folder)
    values = per_query(result.best_model.predict(TEST))
    assert abs(weighted(values) - np.nanmean(values)) > 0.01
    assert result.best.test is not None and result.best.test.mean == pytest.approx(weighted(values), abs=1e-12)
    assert result.test_metrics[METRIC] == pytest.approx(weighted(values), abs=1e-12)
    *rows, baseline = result.leaderboard
    for row in rows[1:]:
        other = per_query(ranktune.load_model(folder / "models" / f"{row.solver}.json").predict(TEST))
        assert row.test is not None and row.test.mean == pytest.approx(weighted(other), abs=1e-12)
        assert row.difference is not None and row.difference.mean == pytest.approx(weighted(other - values), abs=1e-12)
    today = per_query(TEST["today"].to_numpy())
    assert baseline.test is not None and baseline.test.mean == pytest.approx(weighted(today), abs=1e-12)
    assert result.gain is not None and result.gain.comparison.difference == pytest.approx(weighted(values - today))
    if result.tuning is not None and result.tuning.gain is not None:
        assert abs(result.tuning.gain.mean) < 0.5
    evaluated = ranktune.evaluate(result.best_model, TEST, METRIC, against="column:today", weight="traffic")
    assert evaluated["metrics"][METRIC]["mean"] == pytest.approx(result.best.test.mean, abs=1e-12)
    versus = evaluated["against"]["comparisons"][METRIC]
    assert versus["p_randomisation"] == pytest.approx(result.gain.comparison.p_randomisation, abs=0.01)


@pytest.mark.parametrize("given", [{}, {"vali": VALI, "refit": False, "folds": None}], ids=["folds", "split"])
def test_the_values_of_trials_are_weighted_means(tmp_path: Path, given: dict[str, Any]) -> None:
    result = tuned(tmp_path, **given)
    weights = given.get("vali", TRAIN).groupby("qid")["traffic"].first().to_numpy()
    record = Record(Path(result.folder), "s", METRIC)
    try:
        whole = [trial for trial in record.trials() if trial.state == TrialState.COMPLETE]
        values = [trial.value for trial in whole]
        known = [weighted(record.per_query(trial)[METRIC], weights) for trial in whole]
    finally:
        record.close()
    assert len(values) > 1 and values == pytest.approx(known, abs=1e-12)
    vali = max(row.vali.mean for row in result.leaderboard if row.vali is not None and not row.is_blend)
    assert vali == pytest.approx(max(known), abs=1e-12)


@pytest.mark.parametrize("test", ["none", "given"])
def test_the_pages_show_the_same_figures(tmp_path: Path, test: str) -> None:
    result = tuned(tmp_path, **({"test": "none"} if test == "none" else {}))
    data = open_study(Path(result.folder))
    conclusion = overview.panels(data)[0]
    board = keyed(overview.panels(data), "leaderboard").table
    assert "Queries count by their weights" in str(conclusion.note)
    evidence = read_evidence(Path(result.folder) / EVIDENCE)
    assert evidence.weights is not None
    if test == "given":
        values = per_query(result.best_model.predict(TEST))
        assert board["test"][0] == pytest.approx(weighted(values), abs=5e-7)
        np.testing.assert_array_equal(evidence.weights, WEIGHTS)
    else:
        assert f"{result.estimate.mean:.3f} on new queries" in str(conclusion.table.rows)
    wins = keyed(queries.panels(data), "wins")
    for label, *_, difference, _, _, _ in wins.table.rows:
        ours, theirs = (evidence.values[METRIC][evidence.labels.index(name)] for name in (evidence.labels[0], label))
        assert difference == pytest.approx(weighted(ours - theirs, evidence.weights), abs=1e-6)


class Picks(LinearRanker):
    """Ranks by one feature, and learns nothing: only the objective tells two configurations apart."""

    weighted: ClassVar[bool] = True
    space: ClassVar[tuple[Parameter, ...]] = (Int("column", 0, 1),)

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def _steps(self, queries: Queries) -> Iterator[Step]:
        self.coef_ = np.eye(queries.n_features)[self.column]
        yield Step(1, 0.0)


@pytest.fixture
def picks() -> Iterator[None]:
    ranktune.register_solver("Picks", Picks)
    yield
    del REGISTERED["Picks"]


@pytest.mark.usefixtures("picks")
def test_the_choice_follows_the_weights_where_fitting_does_not(tmp_path: Path) -> None:
    table = TRAIN.drop(columns="today")
    given: dict[str, Any] = {"solvers": ["Picks"], "trials": 4, "sampler": "thompson", "test": "none"}
    for weight, column in (("traffic", 1), (None, 0)):
        result = ranktune.tune(
            table, **STUDY | given, weight=weight, drop=[] if weight else ["traffic"], name=f"w{weight}", home=tmp_path,
        )  # fmt: skip
        assert result.best_model.parameters == {"column": column}
