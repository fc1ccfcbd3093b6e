"""The default study beside single calls, on a study made small; and its goals."""

from typing import Any

import pytest

from ranktune.studies.benchmarks.tables import Row, judged
from ranktune.studies.benchmarks.turnkey import default_study
from ranktune.studies.benchmarks.turnkey.libraries import METRIC


def study(cache: str, conclusion: float, cpu: float, test: float) -> Row:
    return {"cache": cache, "conclusion s": conclusion, "wall s": conclusion + 1.0, "cpu s": cpu, METRIC: test}


def test_goals_are_of_medians_of_the_worst_and_of_the_empty_cache() -> None:
    others = [study("", s, 60.0, q) for s, q in ((29.0, 0.91), (31.0, 0.90), (20.0, 0.92))]
    rows = default_study.goals([study("", 46.0, 62.0, 0.5), *others])
    assert [row["found"] for row in rows] == [29.0, 46.0, 60.0, 0.91, 0.90]
    assert [row["met"] for row in rows] == [True, False, True, False, False]


def test_what_is_wanted_is_read_from_its_words() -> None:
    row: Row = {"s": 2.0, "ratio": 0.5, "found": -0.01}
    for wanted, met in {
        "": True, "s <= 2": True, "s <= 1.9, ratio <= 1": False, "ratio < 0.5": False, ">= -0.01": True,
        "within 0.005": False,
    }.items():  # fmt: skip
        assert judged(row, wanted) == {**row, "wanted": wanted, "met": met}
    assert not judged({"found": float("nan")}, "<= 30")["met"]


@pytest.mark.thorough
def test_studies_are_timed_beside_a_single_call() -> None:
    pytest.importorskip("lightgbm")
    _, studies, peers = default_study.main(seeds=1, tool=["lightgbm-defaults"], seconds=1.0, trials=1)
    rows: list[Any] = list(studies.rows)
    assert [row["cache"] for row in rows] == [default_study.EMPTY, default_study.KERNELS]
    assert all(row["conclusion s"] <= row["wall s"] and row["cpu s"] > 0.0 for row in rows)
    assert rows[0][METRIC] == rows[1][METRIC] and [row["tool"] for row in peers.rows][1:] == ["lightgbm-defaults"]
