"""Samplers on the grid of a paper: what they visit, how regret is counted, and the points that validation chooses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.studies.papers import protocols
from ranktune.studies.papers.claims import Finding
from ranktune.studies.papers.lattice import coarse, search
from ranktune.studies.papers.protocols import PartResult
from ranktune.studies.papers.published import PublishedSystem
from ranktune.studies.papers.reproduce import Dataset, reproduce
from ranktune.studies.papers.tuner_runs import figures, sampler_runs, verdicts
from tests.support.small_papers import GRID, LATTICE, NDCG, height, paper, split, svm


@pytest.mark.parametrize("sampler", ["thompson", "thompson:ei", "thompson:thompson", "random", "tpe", "grid"])
def test_samplers_search_points_of_the_lattice_alone(sampler: str) -> None:
    result = search(LATTICE, height, sampler=sampler, seed=3, evaluations=12)
    assert result == search(LATTICE, height, sampler=sampler, seed=3, evaluations=12)
    assert len(result) == (4 if sampler == "grid" else 12)
    for point, value in result:
        assert all(point[name] in values for name, values in LATTICE.items()) and value == height(point)


def test_thompson_finds_the_best_point() -> None:
    best = max(search(LATTICE, height, sampler="thompson", seed=0, evaluations=15), key=lambda point: point[1])
    assert best[0] == {"loss": "logistic", "l1": 0.1, "fixed": 3}


def test_the_coarse_grid_has_two_values_of_a_number_and_all_categories() -> None:
    points = coarse(LATTICE, 0)
    assert {(point["loss"], point["l1"]) for point in points} == {
        (loss, l1) for loss in ("hinge", "logistic") for l1 in (1e-3, 1e-1)
    }
    assert points != coarse(LATTICE, 1) and len(points) == 4


def entry(sampler: str, evaluations: int = 6) -> PublishedSystem:
    return PublishedSystem(
        sampler, "ElasticRank", (), grid=LATTICE, evaluations=evaluations, sampler=sampler, choose="ndcg@10"
    )


def runs(sampler: str, evaluations: int = 6) -> PartResult:
    values = np.array([height(point) for point in entry(sampler).points])
    folds = [PartResult(curves={"vali": values + k, "test": -values}) for k in (-1.0, 1.0)]
    return sampler_runs(entry(sampler, evaluations), folds, range(4))


def test_regret_is_counted_from_the_best_point_of_the_lattice() -> None:
    result = runs("random", evaluations=10)
    regret = result.curves["regret"]
    assert regret.shape == (4, 10)
    assert (np.diff(regret, axis=1) <= 0.0).all() and (regret >= 0.0).all()
    values = [height(point) for point in entry("random").points]
    assert result.curves["half"].tolist() == [1.0 - float(np.median(values))]
    np.testing.assert_allclose(result.curves["test"], regret[:, -1] - 1.0)  # the best value is 1
    assert (runs("grid").curves["regret"][:, -1] == 0.0).all()  # the coarse grid holds the best point
    assert figures([result], "ndcg@10")["regret@10"] == np.median(regret[:, 9])


def test_a_fold_that_failed_fails_the_runs() -> None:
    assert sampler_runs(entry("random"), [PartResult(error="too few queries")], range(2)).error == "too few queries"


def test_samplers_are_compared_by_their_final_regrets() -> None:
    first, second = entry("thompson"), entry("random")
    more = {"test": np.zeros(10), "half": np.full(1, 0.02)}
    good = (PartResult(curves={"regret": np.full((10, 6), 0.001), **more}),)
    bad = (PartResult(curves={"regret": np.linspace(0.02, 0.03, 60).reshape(10, 6), **more}),)
    enough, better = verdicts("Section 6", [first, second], {("thompson", "a"): good, ("random", "a"): bad}, ["a"])
    assert enough.finding is Finding.CONFIRMED and "within 0.005 of the best in 100% of 10 runs" in enough.reason
    assert better.finding is Finding.CONFIRMED and "p = " in better.reason
    few, worse = verdicts("Section 6", [first, second], {("thompson", "a"): bad, ("random", "a"): good}, ["a"])
    assert few.finding is Finding.REFUTED and worse.finding is Finding.REFUTED
    _, same = verdicts("Section 6", [first, second], {("thompson", "a"): good, ("random", "a"): good}, ["a"])
    assert same.finding is Finding.NOT_SHOWN and "half of all points are within 0.020 (a) of the best" in same.reason
    known = {("thompson", "a"): bad, ("random", "a"): good, ("thompson", "b"): good, ("random", "b"): bad}
    assert [each.finding for each in verdicts("S", [first, second], known, ["a", "b"])][-1] is Finding.NOT_SHOWN
    little = np.where(np.arange(10) < 4, 0.001, 0.02)[:, None]  # 4 of 10 runs near the best: too few to be sure
    part = (PartResult(curves={"regret": little, **more}),)
    few, _ = verdicts("S", [first, second], {("thompson", "a"): part, ("random", "a"): part}, ["a"])
    assert few.finding is Finding.NOT_SHOWN and "in 40% of 10 runs" in few.reason
    default = verdicts("Section 6", [second, first], {("thompson", "a"): good, ("random", "a"): bad}, ["a"])
    assert len(list(default)) == 1  # no comparison with the default of studies


def test_the_tuner_fits_so_many_points_and_chooses_the_best_by_vali(tiny: Dataset) -> None:
    grid = {"C": tuple(10.0**k for k in range(-4, 4)), "loss": ("l2", "l1")}
    entry = replace(svm(choose="ndcg@3:letor,short=pad"), grid=grid, evaluations=5)
    result = protocols.one_fold(entry, tiny.splits[0], 0)
    fits = list(protocols.fits_of(entry, tiny.splits[0], 0))
    assert len(fits) == 16 and result.chosen["ndcg@3"] in entry.points
    assert protocols.one_fold(entry, tiny.splits[0], 0).chosen == result.chosen


def test_the_tuner_protocol_counts_regret_from_the_best_of_the_grid(tiny: Dataset) -> None:
    common: dict[str, Any] = {"grid": {"C": GRID["C"], "loss": ("l2", "l1")}, "evaluations": 8, "choose": "ndcg@3"}
    entries = [PublishedSystem(name, "RankSVM", (), sampler=name, **common) for name in ("thompson", "random", "grid")]
    (result,) = reproduce(paper(*entries, protocol="tuner", runs=3), [tiny])
    assert {row.metric for row in result.rows} == {"test ndcg@3"}  # no mark up to 8 evaluations
    assert len(result.verdicts) == 3 and not result.remarks
    assert all(verdict.source == "Table 1" for verdict in result.verdicts)
    thompson = np.concatenate([part.curves["regret"] for part in result.results["thompson", "tiny"]])
    assert thompson.shape == (3, 8) and (thompson[:, -1] <= thompson[:, 0]).all()
    broken = replace(entries[0], parameters={"tol": -1.0})
    (failed,) = reproduce(paper(broken, protocol="tuner", runs=1), [tiny])
    assert not failed.rows and not failed.verdicts
    assert any("could not run on tiny" in remark for remark in failed.remarks)


def test_steps_on_a_path_are_those_of_single_fits() -> None:
    fold = split(1)
    entry = PublishedSystem("Ada", "AdaRank", (NDCG,), {"stop": "never", "metric": "ndcg@3"}, {"rounds": (1, 2, 5)})
    by_path = list(protocols.fits_of(entry, fold, 0))
    for fit, rounds in zip(by_path, (1, 2, 5), strict=True):
        (single,) = protocols.fits_of(replace(entry, grid={"rounds": (rounds,)}), fold, 0)
        assert fit.point == single.point
        np.testing.assert_array_equal(fit.weights, single.weights)
        assert all(np.array_equal(values, single.test[name]) for name, values in fit.test.items())
