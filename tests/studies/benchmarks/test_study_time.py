"""Where the time of a study went, by its events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ranktune.studies.benchmarks.turnkey import study_time
from ranktune.studies.benchmarks.turnkey.study_time import request_seconds, seconds_by_stage, time_by_solver


def event(at: float, kind: str, **fields: Any) -> dict[str, Any]:
    return {"at": datetime.fromtimestamp(at, UTC).isoformat(), "event": kind, **fields}


def trial(number: int, solver: str, begun: float, ended: float, kind: str, **fields: Any) -> list[dict[str, Any]]:
    params = {"trial": number, "split": ""}
    return [
        event(begun, "asked", params={"solver": solver}, **params),
        event(begun, "started", **params),
        event(begun, "step", step="fold 1", value=0.1, **params),
        event(ended, kind, **params, **fields),
    ]


def test_stages_last_until_the_next_one_begins() -> None:
    names = ["reading", "look", "search", "search", "reporting"]
    events = [event(100.5 + k, "stage", name=name) for k, name in enumerate(names)]
    result = seconds_by_stage([event(100.7, "study_started"), *events], 100.0, 106.0)
    assert result == pytest.approx({"reading": 1.5, "look": 1.0, "search": 2.0, "reporting": 1.5})
    assert list(result) == ["reading", "look", "search", "reporting"]
    assert seconds_by_stage([], 10.0, 12.0) == {"reading": 2.0}


def test_trials_are_counted_by_solver() -> None:
    log = [
        *trial(0, "RankSVM", 1.0, 3.0, "finished", value=0.5),
        *trial(1, "RankSVM", 3.0, 4.0, "pruned", value=0.9),
        *trial(2, "LambdaMART", 2.0, 6.0, "failed"),
        *trial(3, "RankSVM", 4.0, 4.5, "finished", value=0.75),
        event(5.0, "asked", trial=4, split="", params={"solver": "ListNet"}),
    ]
    log.insert(2, event(2.0, "started", trial=0, split="", attempt=2))  # only the last attempt counts
    names = ("trials", "pruned", "failed", "seconds", "best")
    assert {solver: tuple(time[name] for name in names) for solver, time in time_by_solver(log).items()} == {
        "RankSVM": (3, 1, 0, 2.5, 0.75),
        "LambdaMART": (1, 0, 1, 4.0, None),
        "ListNet": (0, 0, 0, 0.0, None),
    }


@pytest.mark.parametrize(("seconds", "met"), [(3.0, [True, True]), (3.05, [False, True]), (3.1, [False, False])])
def test_the_fixed_cost_is_compared_with_its_limit(
    seconds: float, met: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_time, "fixed_seconds", lambda trials, compiled: seconds)
    monkeypatch.setattr(study_time, "REQUESTS", {6: 0.0, 7: 60.0})
    requests, fixed = study_time.main(rounds=1)
    assert [row["met"] for row in requests.rows] == [False, True]
    assert [row["met"] for row in fixed.rows] == met


def test_requests_are_timed_one_by_one() -> None:
    assert min(request_seconds(["RidgeRanker"], 12, repeats=2)) > 0.0
