"""Intervals of ratios cover the truth of simulated logs of another policy."""

import math

import numpy as np
import pytest

from ranktune.solvers.clicks.counterfactual import ClickEstimate, ratio
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError

ATTRACTION = np.array([0.1, 0.2, 0.3, 0.5])
EXAMINATION = np.array([1.0, 0.6, 0.3])
LOGGING = np.array([[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]])  # of items by position
TARGET = LOGGING[:, ::-1]


def logged(generator: np.random.Generator, n_sessions: int) -> tuple[Floats, Floats, Ints, Ints, Ints]:
    """Clicks, weights, sessions, items and positions (from 0); some users click much more than others."""
    session, place = np.divmod(np.arange(3 * n_sessions), 3)
    item = (generator.random(len(place))[:, None] > np.cumsum(LOGGING, axis=1)[place]).sum(axis=1).clip(0, 3)
    keen = generator.choice([0.4, 1.6], n_sessions)[session]
    click = (generator.random(len(place)) < keen * EXAMINATION[place] * ATTRACTION[item]).astype(float)
    return click, TARGET[place, item] / LOGGING[place, item], session, item, place


@pytest.mark.thorough
def test_intervals_cover_the_truth_of_500_simulations() -> None:
    generator = np.random.default_rng(0)
    truth = float((EXAMINATION[:, None] * ATTRACTION * TARGET).sum() / 3.0)
    wrong = 0.7 * EXAMINATION[:, None] * ATTRACTION + 0.02  # what a model predicts by position and item
    found: dict[str, list[ClickEstimate]] = {"ips": [], "snips": [], "doubly robust": []}
    for _ in range(500):
        click, weight, session, item, place = logged(generator, 400)
        one, target = np.ones(len(click)), (wrong * TARGET).sum(axis=1)[place]
        found["ips"].append(ratio(weight * click, one, session))
        found["snips"].append(ratio(weight * click, weight, session))
        found["doubly robust"].append(ratio(target + weight * (click - wrong[place, item]), one, session))
    for estimates in found.values():
        assert 0.93 <= np.mean([each.low <= truth <= each.high for each in estimates]) <= 0.97
        values = np.array([each.value for each in estimates])
        assert abs(values.mean() - truth) < 4.0 * values.std() / math.sqrt(500)


def test_a_symmetric_mean_has_the_interval_of_student() -> None:
    session, one = np.arange(150) // 3, np.ones(150)
    half = (session % 2).astype(float)  # as often above the mean as below it
    margin = (ratio(half, one, session).high - 0.5) / (0.5 / math.sqrt(49))
    assert margin == pytest.approx(2.0096, abs=1e-4)  # Student's t, 49 degrees of freedom


def test_intervals_of_rare_clicks_are_not_too_low() -> None:
    generator, session, one = np.random.default_rng(4), np.arange(400), np.ones(400)
    clicks = (generator.random((1000, 400)) < 0.03).astype(float)
    found = [ratio(click, one, session) for click in clicks]
    below, above = np.mean([[0.03 > each.high, 0.03 < each.low] for each in found], axis=0)
    assert max(below, above) < 0.03  # Student's t alone: 0.05 are below the truth


def test_what_tells_nothing_is_an_error_or_an_interval_without_ends() -> None:
    one = np.ones(3)
    with pytest.raises(DataError, match="all weights are 0"):
        ratio(one, 0.0 * one, np.arange(3))
    assert ratio(one, one, np.zeros(3, dtype=np.int64)).high == np.inf
