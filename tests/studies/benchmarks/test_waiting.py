"""What a user waits for beside fits."""

import pytest

from ranktune.studies.benchmarks import waiting


@pytest.mark.parametrize(("seconds", "met"), [(3.0, [True, True]), (3.05, [False, True]), (3.1, [False, False])])
def test_the_fixed_cost_is_compared_with_its_limit(
    seconds: float, met: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "fixed_seconds", lambda trials, compiled: seconds)
    monkeypatch.setattr(waiting, "REQUESTS", {6: 0.0, 7: 60.0})
    requests, fixed = waiting.study_cost(rounds=1)
    assert [row["met"] for row in requests.rows] == [False, True]
    assert [row["met"] for row in fixed.rows] == met
