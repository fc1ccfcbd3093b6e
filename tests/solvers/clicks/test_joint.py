"""Where most pairs were seen a few times, features and documents tell attraction and examination."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from ranktune.solvers.clicks.counts import Counts
from ranktune.solvers.clicks.fitted import log_loss
from ranktune.solvers.clicks.position_based import Joint, PositionBased
from ranktune.solvers.clicks.prior import PairFeatures
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from tests.support.click_counts import impressions


def tail_log(seed: int, n: int = 8000, page: int = 6) -> tuple[Counts, Counts, PairFeatures, Floats]:
    """Queries of which half occur once, over 400 documents; attraction follows what the ranking hardly knows."""
    generator = np.random.default_rng(seed)
    document = np.stack([generator.permutation(400)[:page] for _ in range(n)])
    x = generator.normal(size=(n, page, 2))
    quality = 0.5 * generator.normal(size=400)
    attraction = np.minimum(0.15 * np.exp(0.8 * x[..., 0] + quality[document]), 0.95)
    order = np.argsort(-(0.3 * x[..., 0] + generator.normal(size=(n, page))), axis=1)
    document, attraction = np.take_along_axis(document, order, 1), np.take_along_axis(attraction, order, 1)
    x = np.take_along_axis(x, order[..., None], 1)
    query, position = np.divmod(np.arange(n * page), page)
    batches = []
    for part in (np.ones(n, dtype=bool), generator.random(n) < 0.5):
        rows = np.repeat(part, page)
        click = generator.random(n * page) < attraction.ravel() / (position + 1)
        names = {"queries": [f"q{i}" for i in range(n)], "documents": [f"d{i}" for i in range(400)]}
        batch = impressions(query[rows], document.ravel()[rows], position[rows] + 1, click[rows].astype(float))
        batches.append(type(batch)(**vars(batch) | names))
    features = PairFeatures([f"q{i}" for i in query], [f"d{i}" for i in document.ravel()], x.reshape(-1, 2))
    return Counts.of(batches[:1]), Counts.of(batches[1:]), features, attraction.ravel()


def test_features_tell_examination_and_later_clicks() -> None:
    earlier, later, features, _ = tail_log(0)
    with_features, without, plain = (
        model.fit(earlier) for model in (Joint(features, PoissonRegressor(alpha=1e-4)), Joint(), PositionBased())
    )
    true = 1.0 / with_features.examination.position
    assert (np.abs(with_features.examination.value / true - 1.0) < 0.15).all()
    loss, *others = (log_loss(fitted, later) for fitted in (with_features, without, plain))
    assert loss < min(others) - 0.005
    assert others[0] < others[1]  # documents of other queries tell something too


def test_a_new_pair_has_what_its_features_let_expect() -> None:
    earlier, later, features, attraction = tail_log(1)
    half = earlier.query < 4000
    fitted = Joint(features).fit(earlier.select(half))
    new = later.select(later.query >= 4000)
    place = {pair: row for row, pair in enumerate(zip(features.query, features.document, strict=True))}
    pairs = zip((new.queries[q] for q in new.query), (new.documents[d] for d in new.document), strict=True)
    truth = attraction[[place[pair] for pair in pairs]] / new.position
    assert np.corrcoef(fitted.click_probability(new), truth)[0, 1] > 0.85


def test_features_must_be_those_of_pairs() -> None:
    with pytest.raises(DataError, match="one query, one document and one row a pair"):
        PairFeatures(["a"], ["b"], np.zeros((2, 3)))
