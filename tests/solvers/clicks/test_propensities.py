"""Examination from rates and from randomised positions."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.clicks.examination import known_positions
from ranktune.solvers.clicks.position_based import PositionBased
from ranktune.solvers.clicks.propensities import randomised
from ranktune.solvers.core.errors import DataError
from tests.support.click_counts import counted, impressions


def test_shown_numbers_of_impressions_do_not_move_examination() -> None:
    """Rates that follow the model exactly give its examination, however unequal the impressions are."""
    generator = np.random.default_rng(0)
    true, rows = np.array([1.0, 0.4, 0.7, 0.1]), []
    for document, place in np.ndindex(8, 4):
        shown = int(generator.integers(10, 1000)) * 1000
        rows.append((0, document, place + 1, shown, 0.1 * (document + 1) * true[place] * shown))
    counts = counted(rows)
    np.testing.assert_allclose(PositionBased(shrink=False).fit(counts).examination.value, true, rtol=1e-3)


def test_positions_are_known_by_a_chain_of_pairs_with_clicks() -> None:
    counts = counted(
        [(0, 0, 1, 9, 3), (0, 0, 2, 9, 0), (1, 0, 2, 9, 1), (1, 0, 5, 9, 1), (1, 1, 5, 9, 0), (1, 1, 8, 9, 0)]
    )
    first = np.array([True, False, False, False])
    assert known_positions(counts, first).tolist() == [True, True, True, False]
    assert known_positions(counts, first, links=2).tolist() == first.tolist()


def test_randomised_positions_give_examination_whatever_is_shown() -> None:
    generator = np.random.default_rng(1)
    n, attraction = 200_000, np.array([0.05, 0.3, 0.6])
    chances = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])  # of documents at the two positions
    position = generator.integers(1, 3, n)
    document = (generator.random(n)[:, None] > np.cumsum(chances, axis=1)[position - 1]).sum(axis=1).clip(0, 2)
    click = (generator.random(n) < attraction[document] * np.array([1.0, 0.5])[position - 1]).astype(float)
    log = impressions(np.zeros(n, dtype=np.int64), document, position, click)
    halves = [
        replace(log, **{name: getattr(log, name)[part] for name in ("query", "document", "position", "click")},
                propensity=chances[position - 1, document][part])
        for part in (slice(0, n // 3), slice(n // 3, n))
    ]  # fmt: skip
    found = randomised(halves)
    assert abs(found.value[1] - 0.5) < 3.0 * found.standard_error[1] < 0.03
    naive = click[position == 2].mean() / click[position == 1].mean()
    assert abs(naive - 0.5) > 0.1
    with pytest.raises(DataError, match="no propensity"):
        randomised([log])
