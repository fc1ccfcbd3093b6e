"""What workers that joined run, and the memory of a study, are measured."""

import pytest

from ranktune.studies.benchmarks import joined, memory


@pytest.mark.thorough
def test_the_peak_of_a_study_is_measured() -> None:
    (table,) = memory.of_studies([1200], seconds=2.0)
    (row,) = table.rows
    assert row["documents"] == 1200 and row["within"] is True and "MB" in str(row["anonymous"])


@pytest.mark.thorough
def test_each_trial_is_run_once_by_workers_that_joined() -> None:
    row = joined.load_joined(3, 0.05, 24, None, "random")
    assert (row["trials"], row["duplicates"]) == (24, 0) and float(str(row["trials a s"])) > 0.0
