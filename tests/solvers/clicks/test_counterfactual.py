"""Counterfactual estimates cover the truth of simulations and of a log with two policies."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.clicks.counterfactual import Estimate, doubly_robust, ips, item_position, position, snips
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ParameterError

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
    return click, item_position(LOGGING[place, item], TARGET[place, item]), session, item, place


def test_intervals_cover_the_truth_of_500_simulations() -> None:
    generator = np.random.default_rng(0)
    truth = float((EXAMINATION[:, None] * ATTRACTION * TARGET).sum() / 3.0)
    wrong = 0.7 * EXAMINATION[:, None] * ATTRACTION + 0.02  # what a model predicts by position and item
    found: dict[str, list[Estimate]] = {"ips": [], "snips": [], "doubly robust": []}
    for _ in range(500):
        click, weight, session, item, place = logged(generator, 400)
        found["ips"].append(ips(click, weight, session))
        found["snips"].append(snips(click, weight, session))
        target = (wrong * TARGET).sum(axis=1)[place]
        found["doubly robust"].append(doubly_robust(click, weight, session, wrong[place, item], target))
    for estimates in found.values():
        assert 0.93 <= np.mean([each.low <= truth <= each.high for each in estimates]) <= 0.97
        values = np.array([each.value for each in estimates])
        assert abs(values.mean() - truth) < 4.0 * values.std() / math.sqrt(500)
    width = {name: np.mean([each.high - each.low for each in estimates]) for name, estimates in found.items()}
    assert width["doubly robust"] < width["ips"]


def test_a_policy_that_is_the_log_has_the_mean_of_its_rewards() -> None:
    click, _, session, _, _ = logged(np.random.default_rng(1), 50)
    one = np.ones(len(click))
    for estimate in (
        ips(click, one, session),
        snips(click, 3.0 * one, session),
        doubly_robust(click, one, session, click, click),
    ):
        assert estimate.value == pytest.approx(click.mean(), rel=1e-12)
    half = (session % 2).astype(float)  # as often above the mean as below it
    margin = (ips(half, one, session).high - 0.5) / (0.5 / math.sqrt(49))
    assert margin == pytest.approx(2.0096, abs=1e-4)  # Student's t, 49 degrees of freedom


def test_intervals_of_rare_clicks_are_not_too_low() -> None:
    generator, session, one = np.random.default_rng(4), np.arange(400), np.ones(400)
    clicks = (generator.random((3000, 400)) < 0.03).astype(float)
    found = [ips(click, one, session) for click in clicks]
    below, above = np.mean([[0.03 > each.high, 0.03 < each.low] for each in found], axis=0)
    assert max(below, above) < 0.03  # Student's t alone: 0.05 are below the truth


def test_clipping_is_said_and_lowers_the_estimate() -> None:
    click, weight, session, _, _ = logged(np.random.default_rng(2), 300)
    plain, clipped = ips(click, weight, session), ips(click, weight, session, clip=2.0)
    assert clipped.clipped == (weight > 2.0).mean() > 0.0 == plain.clipped
    assert (
        clipped.value == pytest.approx(float((np.minimum(weight, 2.0) * click).mean())) and clipped.value < plain.value
    )
    assert clipped.mean_weight == plain.mean_weight == pytest.approx(1.0, abs=0.1)
    assert plain.effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum()) and plain.effective < len(weight)


def test_position_based_weights_give_the_clicks_of_another_ranking() -> None:
    generator = np.random.default_rng(3)
    n, attraction = 60_000, np.array([0.1, 0.4, 0.2])
    place = np.argsort(generator.random((n, 3)), axis=1) + 1  # of each document
    examination = Examination.given({1: 1.0, 2: 0.5, 3: 0.2})
    click = (generator.random((n, 3)) < attraction * examination.at(place)).astype(float)
    new = np.broadcast_to([2, 1, 0], (n, 3))  # the second document first, the third not at all
    session = np.repeat(np.arange(n), 3)
    found = ips(click.ravel(), position(examination, place.ravel(), new.ravel()), session)
    assert found.low <= (0.1 * 0.5 + 0.4) / 3.0 <= found.high
    assert found.high - found.low < 0.01


def impressions_of(file: Path) -> tuple[Floats, Floats]:
    with gzip.open(file, "rt") as lines:
        rows = [(float(row["click"]), float(row["propensity_score"])) for row in csv.DictReader(lines)]
    click, propensity = np.array(rows).T
    return click, propensity


@pytest.mark.parametrize("part", ["men", "women"])
def test_a_policy_is_judged_from_the_log_of_another(real_data: Path, part: str) -> None:
    folder = real_data / "clicks" / "open_bandit"
    click, propensity = impressions_of(folder / f"bts_{part}.csv.gz")
    truth, uniform = impressions_of(folder / f"random_{part}.csv.gz")
    assert np.ptp(uniform) < 1e-9  # the other policy shows every item with the same probability
    error = truth.std() / math.sqrt(len(truth))
    for estimate in (ips, snips):
        found = estimate(click, item_position(propensity, np.full(len(click), uniform[0])), np.arange(len(click)))
        assert found.low - 1.96 * error <= truth.mean() <= found.high + 1.96 * error
        assert found.effective < len(click)


def test_what_tells_nothing_is_an_error() -> None:
    one, cluster = np.ones(3), np.arange(3)
    with pytest.raises(DataError, match="3 rewards, 2 weights"):
        ips(one, one[:2], cluster)
    with pytest.raises(DataError, match="all weights are 0"):
        snips(one, 0.0 * one, cluster)
    with pytest.raises(DataError, match="must have been possible"):
        item_position(np.array([0.5, 0.0]), np.array([0.5, 0.5]))
    with pytest.raises(ParameterError, match="clip"):
        ips(one, one, cluster, clip=-1.0)
    assert ips(one, one, np.zeros(3, dtype=np.int64)).high == np.inf
