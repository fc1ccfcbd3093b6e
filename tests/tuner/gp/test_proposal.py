from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp import hyperparameters
from ranktune.tuner.gp.acquisition import MAX_TIES, TIE_MARGIN, ExpectedImprovement, tie_margin
from ranktune.tuner.gp.encoding import Axis, AxisRule, AxisRules, SpaceEncoding
from ranktune.tuner.gp.hyperparameters import HyperparameterDensity, maximum_a_posteriori
from ranktune.tuner.gp.paths import REFERENCE_DEPTH, REFERENCE_MARGIN, PathwiseImprovement, on_front, reference_point
from ranktune.tuner.gp.proposal import (
    ACQUISITIONS,
    EI,
    MAX_TRIALS,
    MIXED,
    THOMPSON,
    ObservedTrials,
    propose,
)

CUBE = SpaceEncoding((Axis("x"), Axis("y"), Axis("c", choices=3)))


def gains_of(rows: Floats) -> Floats:
    result: Floats = -((rows[:, 0] - 0.3) ** 2) - (rows[:, 1] - 0.6) ** 2 - 0.5 * (rows[:, 2] != 1)
    return result


def trials(n: int = 20, seed: int = 0, pending: Floats | None = None) -> ObservedTrials:
    rows = CUBE.from_unit(np.random.default_rng(seed).random((n, 3)))
    return ObservedTrials(rows, gains_of(rows), np.ones(n), np.empty((0, 3)) if pending is None else pending)


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
class TestEveryAcquisition:
    def test_proposals_become_good(self, acquisition: str) -> None:
        seen = trials(8)
        for number in range(12):
            row = propose(CUBE, seen, seen.rows, np.random.default_rng(number), acquisition).row
            rows = np.vstack([seen.rows, row])
            seen = ObservedTrials(rows, gains_of(rows), np.ones(len(rows)), seen.pending)
        assert seen.gains[8:].max() > (-0.05 if acquisition == THOMPSON else -0.01)  # one draw explores more

    def test_the_generator_alone_decides(self, acquisition: str) -> None:
        first, second, other = (
            propose(CUBE, trials(), None, np.random.default_rng(s), acquisition).row for s in (1, 1, 2)
        )
        assert first.tolist() == second.tolist() != other.tolist()

    def test_few_or_equal_trials(self, acquisition: str) -> None:
        rows = trials().rows
        repeated = np.repeat(rows[:3], 10, axis=0)
        for given, gains in (
            (rows, np.zeros(20)), (rows, np.full(20, 3.0)), (rows[:1], np.zeros(1)), (repeated, gains_of(repeated)),
        ):  # fmt: skip
            seen = ObservedTrials(given, gains, np.ones(len(gains)), np.empty((0, 3)))
            row = propose(CUBE, seen, given, np.random.default_rng(0), acquisition).row
            assert np.isfinite(row).all() and row.tolist() not in given.tolist()

    def test_inactive_parameters_stay_inactive(self, acquisition: str) -> None:
        encoding = SpaceEncoding(CUBE.axes, AxisRules((AxisRule(0, 2, (0.0,)), AxisRule(1, 2, (1.0, 2.0)))))
        rows = encoding.masked(trials().rows)
        seen = ObservedTrials(rows, np.random.default_rng(0).normal(size=20), np.ones(20), np.empty((0, 3)))
        for seed in range(5):
            row = propose(encoding, seen, None, np.random.default_rng(seed), acquisition).row
            assert np.isnan(row).tolist() == [row[2] != 0, row[2] == 0, False]


@pytest.mark.parametrize("acquisition", [EI, MIXED])
def test_a_pending_configuration_repels(acquisition: str) -> None:
    line = SpaceEncoding((Axis("x"),))
    rows = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0]])  # the middle is unknown, and attracts
    gains = np.array([-0.5, 1.0, -0.5, -0.5, 1.0, -0.5])
    idle = ObservedTrials(rows, gains, np.ones(6), np.empty((0, 1)))
    busy = ObservedTrials(rows, gains, np.ones(6), np.array([[0.5]]))
    near = [
        sum(
            abs(propose(line, seen, None, np.random.default_rng(s), acquisition).row[0] - 0.5) < 0.05 for s in range(40)
        )
        for seen in (idle, busy)
    ]
    assert near[1] <= near[0] / 2 and near[0] >= 5


def test_what_is_known_of_a_part_of_the_folds_counts_by_its_noise() -> None:
    seen = trials(24)
    unsure = replace(seen, extra=np.repeat([0.0, 100.0], 12))
    rows = [propose(CUBE, each, None, np.random.default_rng(0), EI).row.tolist() for each in (seen, unsure)]
    assert rows[0] != rows[1]


def test_nothing_to_vary() -> None:
    encoding = SpaceEncoding((Axis("one", 2.0, 2.0), Axis("only", choices=1)))
    seen = ObservedTrials(np.array([[0.5, 0.0]]), np.zeros(1), np.ones(1), np.empty((0, 2)))
    assert propose(encoding, seen, None, np.random.default_rng(0)).row.tolist() == [0.5, 0.0]


def test_a_thousand_trials() -> None:
    seen = trials(1000)
    for acquisition in ACQUISITIONS:
        row = propose(CUBE, seen, seen.rows, np.random.default_rng(0), acquisition).row
        assert gains_of(row[None])[0] > -0.05


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_front_is_what_nothing_dominates(objectives: int) -> None:
    gains = np.round(np.random.default_rng(0).random((objectives, 60)), 1)  # with ties
    expected = [not any((other >= gain).all() and (other > gain).any() for other in gains.T) for gain in gains.T]
    assert on_front(gains).tolist() == expected


def test_the_reference_point_lies_below_the_front_wherever_most_trials_are() -> None:
    front = np.array([[0.0, 0.2, 0.7, 1.0], [1.0, 0.9, 0.4, 0.0]])
    crowd = np.repeat([[0.95], [-0.1]], 50, axis=1)
    for gains, ranges in ((front, (1.0, 1.0)), (np.hstack([front, crowd]), (1.0, 1.1))):
        reference, spans = reference_point(gains)
        np.testing.assert_allclose(reference, -REFERENCE_MARGIN * np.array(ranges))
        np.testing.assert_allclose(reference + spans, 1.0)
    allowed = np.array([False, True, True, False])
    np.testing.assert_allclose(reference_point(front, allowed)[0], [0.2 - 0.05, 0.4 - 0.05])
    np.testing.assert_array_equal(reference_point(front, ~allowed & False), reference_point(front))
    assert (reference_point(np.ones((2, 5)))[1] > 0).all()


def test_a_front_of_one_end_may_grow_to_the_other() -> None:
    """What gains much in one objective lies above the reference point, though it loses more than any of the front."""
    front = np.array([[1.0, 0.98, 0.95], [0.0, 0.02, 0.04]])
    crowd = np.array([[1.0, 1.0, 0.3, 0.0], [-4.0, -2.0, -5.0, -3.0]])
    reference, spans = reference_point(np.hstack([front, crowd]))
    np.testing.assert_allclose(reference, [1.0 - REFERENCE_DEPTH, 0.04 - 5.04 * REFERENCE_DEPTH])
    np.testing.assert_allclose(reference + spans, [1.0, 0.04])


def test_equal_best_trials_ask_for_more_than_a_little_better() -> None:
    gains = np.random.default_rng(0).normal(size=20)
    assert tie_margin(gains) == 0.0 == tie_margin(np.ones(9)) == tie_margin(np.zeros(1))
    for ties in (1, 3, 12):
        tied = np.append(gains, np.full(ties, gains.max()))
        assert tie_margin(tied) == tie_margin(1000.0 * tied + 7.0) == TIE_MARGIN * min(ties, MAX_TIES)


@pytest.mark.parametrize(("acquisition", "kind"), [(EI, ExpectedImprovement), (THOMPSON, PathwiseImprovement)])
def test_the_margin_of_ties_is_asked_for(acquisition: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    margins, over = [], kind.over

    def noted(*given: Any) -> Any:
        margins.append(given[-1])
        return over(*given)

    monkeypatch.setattr(kind, "over", noted)
    tied = replace(trials(), gains=np.minimum(trials().gains, -0.3))
    propose(CUBE, tied, None, np.random.default_rng(0), acquisition)
    assert margins[0] == tie_margin(tied.gains) > TIE_MARGIN


def test_the_fit_of_many_trials_remains_while_few_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is fitted are all trials, so that their window may change with each."""
    fits: list[int] = []

    def counted(evidence: HyperparameterDensity) -> Floats:
        fits.append(len(evidence.y))
        return maximum_a_posteriori(evidence)

    monkeypatch.setattr(hyperparameters, "maximum_a_posteriori", counted)
    for count in range(MAX_TRIALS + 60, MAX_TRIALS + 80):
        several = trials(count, 3)
        constraint = several.rows[:, 0] - 0.9
        unknown = np.where(constraint > 0.05, np.nan, constraint)
        many = replace(several, more=(several.rows[:, 1],), constraints=(unknown,))
        propose(CUBE, several, None, np.random.default_rng(0))
        propose(CUBE, many, None, np.random.default_rng(0), THOMPSON)
    assert len(fits) <= 6 and set(fits) == {hyperparameters.MAX_FITTED_TRIALS}  # of three outputs, at most twice
