"""Simulated users click with the probabilities that they state."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.click_counts import graded_queries
from tests.support.click_simulation import Users, simulated


@pytest.mark.parametrize("users", [Users(), Users(eta=1.5, noise=0.2), Users("trust")])
def test_clicks_have_their_probabilities(users: Users) -> None:
    attraction = users.attraction(np.array([0.0, 1.0, 3.0, 2.0]))
    assert attraction.tolist() == pytest.approx(
        [users.noise + (1 - 2 * users.noise) * gain / 7 for gain in (0, 1, 7, 3)]
    )
    clicks = users.clicks(np.broadcast_to(attraction, (200_000, 4)), np.random.default_rng(0))
    up, down = users.rates(np.arange(1, 5))
    np.testing.assert_allclose(clicks.mean(axis=0), up * attraction + down * (1 - attraction), atol=0.005)


def test_a_cascade_ends_at_the_first_click() -> None:
    clicks = Users("cascade").clicks(np.full((100_000, 3), 0.3), np.random.default_rng(1))
    assert clicks.sum(axis=1).max() == 1
    np.testing.assert_allclose(clicks.mean(axis=0), [0.3, 0.7 * 0.3, 0.7**2 * 0.3], atol=0.005)


def test_sessions_show_a_page_of_the_ranking() -> None:
    queries, scores = graded_queries(np.random.default_rng(2), 5, 12)
    log = simulated(queries, Users(), 400, np.random.default_rng(3), scores=scores, spread=0.0, page=10)
    assert len(log.query) == 4000 and sorted(set(log.session)) == list(range(400))
    best = np.argsort(-scores[queries.starts[2] : queries.starts[3]])[:10] + queries.starts[2]
    assert (log.document[log.query == 2].reshape(-1, 10) == best).all()
    noisy = simulated(queries, Users(), 400, np.random.default_rng(3), scores=scores)
    assert len({*noisy.document[(noisy.query == 2) & (noisy.position == 1)]}) > 1
