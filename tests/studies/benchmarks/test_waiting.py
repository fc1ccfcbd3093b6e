"""What a user waits for beside fits."""

import pytest

from ranktune.studies.benchmarks import waiting


def test_requests_are_compared_with_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "REQUESTS", {6: 0.0, 7: 60.0})
    (requests,) = waiting.study_cost()
    assert [row["met"] for row in requests.rows] == [False, True]
