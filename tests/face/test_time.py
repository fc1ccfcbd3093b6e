"""Tuning forward in time through the public face: nothing that knows the future is rewarded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views import queries as view
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.tuner.runner.preparation import reopen
from ranktune.tuner.selection.evidence import EVIDENCE, read_evidence
from ranktune.tuner.splits.plans import Progressive
from ranktune.tuner.study.home import StudyFolder
from tests.support.commands import ranktune as run
from tests.support.finished import Heard

DAYS, A_DAY, DOCUMENTS = 30, 8, 6
STUDY: dict[str, Any] = {"solvers": "RidgeRanker", "trials": 1, "sampler": "random"}


def days(*, leak: bool) -> pd.DataFrame:
    """Return queries of 30 days with an honest feature, and (leak) one a day whose sign is known on that day alone."""
    generator = np.random.default_rng(1)
    n = DAYS * A_DAY * DOCUMENTS
    grade, day = generator.integers(0, 3, n), np.repeat(np.arange(DAYS), A_DAY * DOCUMENTS)
    date = (pd.Timestamp("2026-01-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"qid": np.arange(n) // DOCUMENTS, "grade": grade, "day": date})
    frame["honest"] = grade + generator.normal(scale=3.0, size=n)
    signs = generator.choice([-1.0, 1.0], DAYS)
    for k in range(DAYS) if leak else ():
        frame[f"of_day_{k}"] = np.where(day == k, signs[k] * grade, 0.0)
    return frame.sample(frac=1.0, random_state=0)


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a finished study keep its data."""
    monkeypatch.setattr(StudyFolder, "remove_data", lambda folder: None)


def validated(frame: pd.DataFrame, home: Path, **more: Any) -> float:
    vali = ranktune.tune(frame, **STUDY, **more, home=home).best.vali
    assert vali is not None
    return vali.mean


def test_folds_forward_in_time_do_not_reward_a_feature_that_knows_their_position(tmp_path: Path) -> None:
    honest = validated(days(leak=False), tmp_path / "a", time="day")
    dealt = validated(days(leak=True), tmp_path / "b", drop="day")
    forward = validated(days(leak=True), tmp_path / "c", time="day")
    assert dealt > honest + 0.15  # folds dealt at random believe it
    assert forward < honest + 0.02


@pytest.mark.parametrize("plan", ["auto", "progressive", "nested", "split"])
def test_every_plan_goes_forward(plan: str, tmp_path: Path, keeping: None) -> None:
    solver = "PairwisePerceptron" if plan == "progressive" else "RidgeRanker"
    study = STUDY | {"solvers": solver, "gap": "2d", "outer": 2}
    result = ranktune.tune(days(leak=False), time="day", plan=plan, **study, name="days", home=tmp_path)
    problems = reopen(StudyFolder(tmp_path / "days"))
    assert problems
    for problem in problems:
        times = problem.development.time_of_query / 86_400e6
        if problem.test is not None:
            assert times.max() < problem.test.time_of_query.min() / 86_400e6 - 2
        if isinstance(problem.plan, Progressive):
            assert (np.diff(times[problem.plan.orders[0]]) >= 0).all()
        else:
            assert all(times[fold.train].max() < times[fold.vali].min() - 2 for fold in problem.plan)
        assert problem.development.feature_names == ("honest",)
    assert plan == "nested" or result.best.solver == solver


def test_blends_and_boosting_go_forward_and_the_page_shows_periods(tmp_path: Path) -> None:
    study = STUDY | {"solvers": ["RidgeRanker", "LambdaMART"], "trials": 2}
    frame = days(leak=False)
    ranktune.tune(frame, time="day", **study, baseline="column:honest", name="days", home=tmp_path)
    evidence = read_evidence(tmp_path / "days" / EVIDENCE)
    assert {(period.part, period.label == "baseline") for period in evidence.periods} == {
        (part, is_baseline) for part in ("validation", "test") for is_baseline in (True, False)
    }
    chosen = [p for p in evidence.periods if p.part == "test" and p.label == evidence.labels[0]]
    assert chosen[0].first == "2026-01-25" and chosen[-1].last == "2026-01-30"
    total = sum(period.queries * period.mean.mean for period in chosen) / sum(period.queries for period in chosen)
    assert total == pytest.approx(np.nanmean(evidence.values["ndcg@10"][0]))
    assert all(period.mean.low <= period.mean.mean <= period.mean.high for period in evidence.periods)
    shown = {panel.key: panel for panel in view.panels(open_study(tmp_path / "days"))}
    assert len(shown["over-time-test"].table.rows) == 2 * len(chosen)


def test_the_command_line_takes_times(tmp_path: Path) -> None:
    days(leak=False).to_csv(tmp_path / "days.csv", index=False)
    words = ("data", "days.csv", "--time", "day", "--json")
    described = json.loads(run(*words, cwd=tmp_path).stdout)
    assert described["parts"][0]["times"] == "2026-01-01 to 2026-01-30"
    assert {"column": "day", "taken_as": "time"}.items() <= {**described["columns"][2]}.items()


def test_data_in_memory_carry_times_and_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    frame = days(leak=False)
    arrays = (frame[["honest"]].to_numpy(), frame["grade"].to_numpy())
    queries = ranktune.Queries.from_arrays(
        *arrays, qid=frame["qid"].to_numpy(), times=frame["day"].to_numpy().astype("datetime64[D]")
    )
    noted = Heard()
    by_arrays = validated(queries, tmp_path / "arrays", gap="1d", progress=noted)
    assert "8 queries lie in the gap before the test queries, and are left out" in noted.lines, "those of a day"
    assert by_arrays == validated(frame, tmp_path / "frame", time="day", gap="1d")
    with pytest.raises(ParameterError, match="the times are dates: give a length of time"):
        validated(frame, tmp_path / "a", time="day", gap="1")
    with pytest.raises(ParameterError, match="the data have none: name their column"):
        validated(frame, tmp_path / "b", drop="day", gap="1d")
    with pytest.raises(ParameterError, match="is no gap"):
        ranktune.tune(tmp_path / "not there.csv", time="day", gap="1 day")  # before anything is read
    with pytest.raises(DataError, match="'day' has no value in row"):
        validated(frame.assign(day=frame["day"].where(frame["qid"] > 0)), tmp_path / "c", time="day")
    for other in ({"repeats": 2}, {"group_by_time": "day"}):
        with pytest.raises(ParameterError, match=r"there is one order of time|Leave time='day' out, or group_by_time"):
            validated(frame, tmp_path / "d", time="day", **other)


@pytest.mark.parametrize("plan", ["auto", "split"])
def test_a_group_is_on_one_side_of_every_division(plan: str, tmp_path: Path, keeping: None) -> None:
    """Sessions of three queries, some of which last over two days, in rows that are dealt."""
    frame = days(leak=False)
    frame["session"] = "s" + (frame["qid"] // 3).astype(str)
    day, number = (frame.groupby("qid")[name].first() for name in ("day", "session"))
    last = day.groupby(number).max()
    assert (day.groupby(number).nunique() > 1).any(), "or there is nothing to see"
    ranktune.tune(frame, time="day", group="session", plan=plan, **STUDY, name="days", home=tmp_path)
    (problem,) = reopen(StudyFolder(tmp_path / "days"))
    assert problem.test is not None and isinstance(problem.plan, tuple)
    development, test = (number[list(queries.query_ids)].to_numpy() for queries in (problem.development, problem.test))
    for earlier, later in [(development, test)] + [(development[f.train], development[f.vali]) for f in problem.plan]:
        assert last[earlier].max() < last[later].min() and not set(earlier) & set(later)
    assert problem.development.feature_names == ("honest",)
    with pytest.raises(ParameterError, match="Name the column of times"):
        ranktune.tune(frame, group="session", **STUDY, home=tmp_path)
    with pytest.raises(ParameterError, match="Leave group out"):
        ranktune.tune(frame, time="day", group="session", **STUDY | {"plan": "progressive"}, home=tmp_path)
    with pytest.raises(DataError, match="'session' has no id in row"):
        holes = frame.assign(session=frame["session"].where(frame["qid"] > 0))
        ranktune.tune(holes, time="day", group="session", **STUDY, home=tmp_path)
