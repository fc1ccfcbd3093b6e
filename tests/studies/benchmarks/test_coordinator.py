"""The cost and load of a coordinator, and the memory of a study, are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktune.studies.benchmarks import coordinator, memory
from ranktune.studies.benchmarks.results import stored_results
from ranktune.studies.benchmarks.search import race


def test_a_loop_is_compared_with_that_of_optuna() -> None:
    (table,) = coordinator.overhead(trials=5)
    assert [row["loop"] for row in table.rows] == ["RankTune", "Optuna, SQLite"]
    assert all(float(row["ms a trial"] or 0) > 0.0 for row in table.rows)


@pytest.mark.thorough
def test_a_coordinator_is_busier_with_short_trials() -> None:
    (table,) = coordinator.scale([4], rounds=1)
    short, long = table.rows
    assert (short["s a trial"], long["s a trial"], short["trials"]) == (1.0, 60.0, 100)
    busy = [float(str(row["coordinator busy"]).rstrip("%")) for row in (short, long)]
    assert busy[0] >= busy[1] and long["workers used"] == "100%"


@pytest.mark.thorough
def test_jobs_are_compared() -> None:
    (table,) = coordinator.jobs(trials=4, rounds=1)
    assert len(table.rows) == 1 and float(table.rows[0]["ratio"] or 0) > 0.1 and table.note.startswith("Median")


@pytest.mark.thorough
def test_searches_are_compared_by_seconds(tmp_path: Path) -> None:
    (table,) = race.main(trials=2, seeds=1, solver=["RidgeRanker"], ways="thompson", keep_in=tmp_path / "races.jsonl")
    assert [row["search"] for row in table.rows] == ["tpe", "thompson"]
    assert len(list(stored_results(tmp_path / "races.jsonl", dict))) == 2


@pytest.mark.thorough
def test_the_peak_of_a_study_is_measured() -> None:
    (table,) = memory.of_studies([1200], seconds=2.0)
    (row,) = table.rows
    assert row["documents"] == 1200 and row["within"] is True and "MB" in str(row["anonymous"])
