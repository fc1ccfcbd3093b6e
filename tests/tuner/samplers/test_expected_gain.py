"""The expected gain of a suggestion, by which a caller may stop."""

import numpy as np
import optuna
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner import ThompsonSampler
from ranktune.tuner.gp import proposal
from ranktune.tuner.gp.encoding import Axis, SpaceEncoding
from ranktune.tuner.gp.proposal import ACQUISITIONS, ObservedTrials, propose

pytestmark = pytest.mark.usefixtures("everywhere")

SQUARE = SpaceEncoding((Axis("x"), Axis("y")))


def value_at(rows: Floats) -> Floats:
    result: Floats = -((rows - 0.4) ** 2).sum(axis=1)
    return result


def seen(rows: Floats, scale: float = 1.0, shift: float = 0.0) -> ObservedTrials:
    return ObservedTrials(rows, shift + scale * value_at(rows), np.ones(len(rows)), np.empty((0, 2)))


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no decision look in the trust region alone, after which no gain is expected."""
    monkeypatch.setattr(proposal, "share_after", lambda *_: 0.0)


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_it_is_in_units_of_the_objective(acquisition: str) -> None:
    rows = SQUARE.from_unit(np.random.default_rng(0).random((12, 2)))
    unscaled, scaled, shifted = (
        propose(SQUARE, seen(rows, *units), rows, np.random.default_rng(1), acquisition).gain
        for units in ((1.0, 0.0), (1000.0, 0.0), (1.0, 50.0))
    )
    assert unscaled is not None and unscaled > 0
    assert scaled == pytest.approx(1000 * unscaled, rel=1e-3) and shifted == pytest.approx(unscaled, rel=1e-3)


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_it_goes_to_nothing_once_a_smooth_problem_is_exhausted(acquisition: str) -> None:
    generator = np.random.default_rng(0)
    few = SQUARE.from_unit(generator.random((5, 2)))
    many = np.vstack([SQUARE.from_unit(generator.random((40, 2))), 0.4 + 0.003 * generator.standard_normal((5, 2))])
    gains = [propose(SQUARE, seen(rows), rows, np.random.default_rng(1), acquisition).gain for rows in (few, many)]
    assert gains[0] is not None and gains[1] is not None
    assert 0.0 <= gains[1] < 2e-4 and gains[0] > 100 * gains[1]


def test_the_sampler_tells_it_once_there_is_a_model() -> None:
    sampler = ThompsonSampler(seed=0, startup=4)
    study = optuna.create_study(sampler=sampler)
    expected = []
    for _ in range(25):
        trial = study.ask()
        value = (trial.suggest_float("x", 0, 1) - 0.3) ** 2
        expected.append(sampler.expected_gain)
        study.tell(trial, value)
    assert expected[:4] == [None] * 4 and all(gain is not None and gain >= 0.0 for gain in expected[5:])
    assert expected[-1] is not None and expected[-1] < 1e-3


def test_none_after_a_suggestion_that_looked_in_the_trust_region_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "share_after", lambda *_: 1.0)
    rows = SQUARE.from_unit(np.random.default_rng(0).random((12, 2)))
    found = propose(SQUARE, seen(rows), rows, np.random.default_rng(1))
    assert not found.widely and found.gain is not None


def test_no_gain_where_nothing_varies_and_none_of_several_objectives() -> None:
    only = SpaceEncoding((Axis("one", 2.0, 2.0),))
    nothing = ObservedTrials(np.array([[0.5]]), np.zeros(1), np.ones(1), np.empty((0, 1)))
    assert propose(only, nothing, None, np.random.default_rng(0)).gain == 0.0
    rows = SQUARE.from_unit(np.random.default_rng(0).random((12, 2)))
    several = ObservedTrials(rows, value_at(rows), np.ones(12), np.empty((0, 2)), (rows[:, 0],))
    assert propose(SQUARE, several, None, np.random.default_rng(0)).gain is None
