"""What finished cells say: means, comparisons paired by query, and verdicts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.studies.benchmarks.turnkey.cells import Finished
from ranktune.studies.benchmarks.turnkey.data import Case
from ranktune.studies.benchmarks.turnkey.libraries import METRIC
from ranktune.studies.benchmarks.turnkey.results import compared, of_rivals, summary, verdicts
from ranktune.tuner.statistics.intervals import randomisation_test
from tests.support.turnkey_samples import by_key, finished


def test_queries_of_all_folds_and_data_are_compared_together() -> None:
    generator = np.random.default_rng(5)
    a = generator.random((3, 20))
    b = a - 0.05 + 0.2 * generator.normal(size=a.shape)
    a[0, :4] = b[1, 3] = np.nan
    places = (("d", "Fold1"), ("d", "Fold2"), ("e", "Fold1"))
    results = by_key(
        *(finished("ranktune", fold, a[k], data=data) for k, (data, fold) in enumerate(places)),
        *(finished("flaml", fold, b[k], data=data) for k, (data, fold) in enumerate(places)),
        finished("ranktune", "Fold3", a[0]),  # without its like: no part of the comparison
    )
    comparison = compared(results, "flaml", ["d", "e"])
    assert comparison["p"] == randomisation_test(a.ravel(), b.ravel(), np.random.default_rng(0))
    assert comparison["difference"] == pytest.approx(np.nanmean(a - b)) and comparison["queries"] == 55
    wins = [np.nanmean(x) > np.nanmean(y) for x, y in zip(a, b, strict=True)]
    assert (comparison["won"], comparison["lost"]) == (sum(wins), 3 - sum(wins))
    assert not compared(results, "lightgbm", ["d"])


def test_a_query_counts_once_with_its_mean_over_the_seeds_that_both_ran() -> None:
    generator = np.random.default_rng(6)
    a, b = generator.random((2, 3, 30))
    a[1, 0] = np.nan

    def at(rival: str, values: Any, seed: int) -> Finished:
        cell = finished(rival, "Fold1", values)
        return replace(cell, cell=replace(cell.cell, seed=seed))

    runs = [at("ranktune", a[k], k) for k in range(3)] + [at("flaml", b[k], k) for k in range(2)]
    comparison = compared(by_key(*runs), "flaml", ["d"])
    assert comparison["queries"] == 29 and {comparison["won"], comparison["lost"]} == {0, 1}
    assert comparison["difference"] == pytest.approx(np.nanmean(a[:2].mean(axis=0) - b[:2].mean(axis=0)))
    row = summary(by_key(*runs), "d", "ranktune")
    assert (row["folds"], row["runs"]) == (1, 3)
    assert row[METRIC] == pytest.approx(np.mean([np.nanmean(values) for values in a]))


def test_few_test_queries_may_be_further_from_the_estimate_than_many() -> None:
    for count, expected in ((10, True), (10_000, False)):
        values = np.tile([0.2, 0.8], count // 2)
        cell = replace(finished("ranktune", "Fold1", values, estimate=0.6), interval=(0.58, 0.62))
        assert cell.inside is expected
    assert finished("flaml", "Fold1", [0.1, 0.2]).inside is None


def test_verdicts_are_of_the_estimate_and_of_the_time() -> None:
    def met(value: float, estimate: float, used: float = 2.01) -> dict[str, bool]:
        cells = [finished("ranktune", f"Fold{k}", [value], data="MQ2008", estimate=estimate) for k in range(5)]
        row = summary(by_key(replace(cells[0], used=used), *cells[1:]), "MQ2008", "ranktune")
        return {str(one["what"]).removeprefix("MQ2008: "): bool(one["met"]) for one in verdicts(row, 1.0)}

    estimate, least, most = "estimate less test", "shortest run, seconds", "longest run, seconds"
    assert met(0.701, 0.710) == {estimate: True, least: True, most: True}
    assert met(0.699, 0.688, used=2.03) == {estimate: False, least: True, most: False}
    assert met(0.701, 0.715, used=0.89) == {estimate: False, least: False, most: True}


@pytest.mark.parametrize(
    ("letor", "less", "met"),
    [(True, 0.1, True), (True, -0.1, False), (True, 0.0, False), (False, 0.0, True), (False, -0.003, False)],
)
def test_on_letor_we_are_significantly_better_and_elsewhere_not_far_behind(letor: bool, less: float, met: bool) -> None:
    values = np.linspace(0.2, 0.6, 20)
    results = by_key(finished("ranktune", "Fold1", values + less), finished("flaml", "Fold1", values))
    (row,) = of_rivals(results, [Case("d", (), letor=letor)], ["ranktune", "flaml"])
    assert row["met"] is met
