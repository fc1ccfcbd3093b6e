"""Pegasos against plain numpy on the pairs it draws."""

import numpy as np
import pytest

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.online.sampled_pairs import draw, pair_table
from tests.support.plain_solvers import pairwise_pegasos


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_pegasos_is_the_papers_on_the_pairs_drawn(alpha: float, hard_queries: Queries) -> None:
    better, worse = draw(pair_table(hard_queries), 800, "documents", np.random.default_rng(3))
    X, w = hard_queries.features, np.zeros(6)
    for t, (i, j) in enumerate(zip(better, worse, strict=True), start=1):
        z, eta = X[i] - X[j], 1.0 / (alpha * t)
        active = z @ w < 1.0
        w = (1.0 - eta * alpha) * w + (eta * z if active else 0.0)
    model = pairwise_pegasos(alpha, steps=800, random_state=3).fit(hard_queries)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-10, atol=1e-11)


def test_steps_add_up_over_calls(hard_queries: Queries) -> None:
    model = pairwise_pegasos(0.1, pairs_per_document=2).fit(hard_queries)
    useful = hard_queries.n_documents - 3  # two queries of one document; one of a single grade has 12
    assert model.n_pairs_seen_ == 2 * (useful + 1 - 12)
    before = model.n_pairs_seen_
    assert model.partial_fit(hard_queries).n_pairs_seen_ == 2 * before
