"""Rates and clicks over expected clicks are those of plain loops; what is shrunken lies in between."""

from collections import defaultdict

import numpy as np
import pytest

from ranktune.solvers.clicks import prior, rates
from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.position_based import PositionBased
from ranktune.solvers.clicks.prior import shrunken, strength_of
from ranktune.solvers.clicks.rates import COEC, ClickRate
from ranktune.solvers.core.errors import DataError
from tests.support.click_counts import counted, drawn_counts

COUNTS = drawn_counts(np.random.default_rng(0))
ROWS = list(zip(COUNTS.query, COUNTS.document, COUNTS.position, COUNTS.shown, COUNTS.clicks, strict=True))


def rate_by(*columns: int) -> dict[tuple[int, ...], float]:
    shown: dict[tuple[int, ...], float] = defaultdict(float)
    clicks: dict[tuple[int, ...], float] = defaultdict(float)
    for row in ROWS:
        key = tuple(int(row[column]) for column in columns)
        shown[key] += row[3]
        clicks[key] += row[4]
    return {key: clicks[key] / shown[key] for key in shown}


@pytest.fixture
def unshrunken(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rates, prior):
        monkeypatch.setattr(module, "strength_of", lambda clicks, expected: 0.0)


@pytest.mark.usefixtures("unshrunken")
def test_rates_are_those_of_loops() -> None:
    by_pair = rate_by(0, 1)
    expected = [by_pair[int(row[0]), int(row[1])] for row in ROWS]
    np.testing.assert_allclose(ClickRate().fit(COUNTS).click_probability(COUNTS), expected, rtol=1e-12)


@pytest.mark.usefixtures("unshrunken")
def test_clicks_over_expected_clicks_are_those_of_loops() -> None:
    by_position, judged = rate_by(2), {}
    for query, document in sorted({row[:2] for row in ROWS}):
        mine = [row for row in ROWS if row[:2] == (query, document)]
        expected = sum(row[3] * by_position[(int(row[2]),)] for row in mine)
        judged[f"q{query}", f"d{document}"] = sum(row[4] for row in mine) / expected
    judgments = COEC().fit(COUNTS).judgments()
    np.testing.assert_allclose(judgments.relevance, list(judged.values()), rtol=1e-12)
    assert list(zip(judgments.query, judgments.document, strict=True)) == list(judged)


def test_shrunken_ratios_lie_between_raw_ones_and_1(request: pytest.FixtureRequest) -> None:
    drawn = COEC().fit(COUNTS).judgments()
    request.getfixturevalue("unshrunken")
    raw = COEC().fit(COUNTS).judgments()
    assert (np.abs(drawn.relevance - 1.0) <= np.abs(raw.relevance - 1.0) + 0.05).all()
    assert np.corrcoef(raw.relevance, drawn.relevance)[0, 1] > 0.95
    assert (drawn.low < drawn.relevance).all() and (drawn.relevance < drawn.high).all()


def test_strength_is_that_of_the_distribution_that_was_drawn_from() -> None:
    generator = np.random.default_rng(3)
    expected = generator.uniform(0.5, 20.0, 20_000)
    for strength in (0.5, 4.0):
        factors = generator.gamma(strength, 1.0 / strength, len(expected))
        clicks = generator.poisson(expected * factors).astype(float)
        assert strength_of(clicks, expected) == pytest.approx(strength, rel=0.1)
        error = np.mean((shrunken(clicks, expected) - factors) ** 2)
        assert error < np.mean((clicks / expected - factors) ** 2) and error < np.mean((1.0 - factors) ** 2)


def test_what_rates_do_not_tell_is_an_error() -> None:
    heavy: ClickCounts = counted([(0, 0, 1, 10, 12.5)])
    with pytest.raises(DataError, match=r"clicks weigh 12\.5"):
        PositionBased().fit(heavy)
