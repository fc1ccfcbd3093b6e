"""The benchmark of promises: its data, its table, and that a study does not promise what it cannot keep."""

from dataclasses import replace

import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks.turnkey.truth import Promise, main, table

KEPT = Promise("noise", 60, 0, 12, 0.0, "RankSVM", 0.56, 0.53, 0.48, 0.58, 0.52, 0.01, 0.0)


def test_a_table_has_the_means_less_luck_and_truth() -> None:
    other = replace(KEPT, seed=1, plain=0.60, estimate=0.61, low=0.57, high=0.64)
    (row,) = table([KEPT, other], "Promises").rows
    assert (row["data"], row["studies"]) == ("noise", 2)
    assert (row["score"], row["estimate"]) == ("+0.0500", "+0.0400")  # mean of .03 and .07, of 0 and .08
    assert (row["se"], row["covered"], row["harmed"]) == ("0.0400", "50.0%", "0.0%")


def test_unknown_data_are_refused() -> None:
    with pytest.raises(ParameterError, match="unknown kind of data 'nois'"):
        main(kinds="nois", queries=20, test=20, trials=1, timeout=0.0, studies=1, first=0, seconds=0.0)
