"""The benchmark of promises: its data, its table, and that a study does not promise what it cannot keep."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks.turnkey.truth import LENGTH, Promise, generated, main, promised, table

KEPT = Promise("noise", 60, 0, 12, 0.0, "RankSVM", 0.56, 0.53, 0.48, 0.58, 0.52, 0.01, 0.0)


def test_grades_depend_on_the_features_by_the_gain() -> None:
    weights = np.eye(8)[2]
    for gain, least, most in ((0.0, -0.05, 0.05), (0.5, 0.3, 0.6)):
        queries = generated(np.random.default_rng(0), 400, gain, weights)
        assert queries.n_documents == 400 * LENGTH
        assert least < np.corrcoef(np.asarray(queries.features)[:, 2], queries.grades)[0, 1] < most
        assert abs(np.corrcoef(np.asarray(queries.features)[:, 5], queries.grades)[0, 1]) < 0.05


def test_a_table_has_the_means_less_luck_and_truth() -> None:
    other = replace(KEPT, seed=1, plain=0.60, estimate=0.61, low=0.57, high=0.64)
    (row,) = table([KEPT, other], "Promises").rows
    assert (row["data"], row["studies"]) == ("noise", 2)
    assert (row["score"], row["estimate"]) == ("+0.0500", "+0.0400")  # mean of .03 and .07, of 0 and .08
    assert (row["se"], row["covered"], row["harmed"]) == ("0.0400", "50.0%", "0.0%")


def test_unknown_data_are_refused() -> None:
    with pytest.raises(ParameterError, match="unknown kind of data 'nois'"):
        main(kinds="nois", queries=20, test=20, trials=1, timeout=0.0, studies=1, first=0, seconds=0.0)


@pytest.mark.slow
def test_what_cannot_be_learned_is_not_promised() -> None:
    """Of forty studies on noise: the chosen score is too high, and the estimate is not, by its standard error."""
    promises = [promised("noise", 60, seed, 12, 0.0, 500) for seed in range(1000, 1040)]
    plain, estimate = (
        np.array([getattr(each, name) - each.luck - each.truth for each in promises]) for name in ("plain", "estimate")
    )
    assert (plain - estimate).mean() > 0.005
    assert abs(estimate.mean()) < 2.5 * estimate.std(ddof=1) / np.sqrt(len(estimate))
