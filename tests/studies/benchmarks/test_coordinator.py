"""The load of a coordinator, and the memory of a study, are measured."""

import pytest

from ranktune.studies.benchmarks import coordinator, memory


@pytest.mark.thorough
def test_a_coordinator_is_busier_with_short_trials() -> None:
    (table,) = coordinator.scale([4], rounds=1)
    short, long = table.rows
    assert (short["s a trial"], long["s a trial"], short["trials"]) == (1.0, 60.0, 100)
    busy = [float(str(row["coordinator busy"]).rstrip("%")) for row in (short, long)]
    assert busy[0] >= busy[1] and long["workers used"] == "100%"


@pytest.mark.thorough
def test_the_peak_of_a_study_is_measured() -> None:
    (table,) = memory.of_studies([1200], seconds=2.0)
    (row,) = table.rows
    assert row["documents"] == 1200 and row["within"] is True and "MB" in str(row["anonymous"])


@pytest.mark.thorough
def test_each_trial_is_run_once_by_workers_that_joined() -> None:
    row = coordinator.load_joined(3, 0.05, 24, None, "random")
    assert (row["trials"], row["duplicates"]) == (24, 0) and float(str(row["trials a s"])) > 0.0
