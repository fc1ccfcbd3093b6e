"""Where most pairs were seen a few times, documents of other queries tell attraction and examination."""

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.position_based import Joint, PositionBased
from tests.support.click_counts import impressions, log_loss


def tail_log(seed: int, n: int = 8000, page: int = 6) -> tuple[ClickCounts, ClickCounts, dict[tuple[int, int], float]]:
    """Queries of which half occur once, over 400 documents; attraction follows what the ranking hardly knows."""
    generator = np.random.default_rng(seed)
    document = np.stack([generator.permutation(400)[:page] for _ in range(n)])
    quality = 0.8 * generator.normal(size=400)
    attraction = np.minimum(0.15 * np.exp(quality[document] + 0.3 * generator.normal(size=(n, page))), 0.95)
    order = np.argsort(generator.normal(size=(n, page)), axis=1)
    document, attraction = np.take_along_axis(document, order, 1), np.take_along_axis(attraction, order, 1)
    query, position = np.divmod(np.arange(n * page), page)
    batches = []
    for part in (np.ones(n, dtype=bool), generator.random(n) < 0.5):
        rows = np.repeat(part, page)
        click = generator.random(n * page) < attraction.ravel() / (position + 1)
        names = {"queries": [f"q{i}" for i in range(n)], "documents": [f"d{i}" for i in range(400)]}
        batch = impressions(query[rows], document.ravel()[rows], position[rows] + 1, click[rows].astype(float))
        batches.append(type(batch)(**vars(batch) | names))
    truth = dict(zip(zip(query.tolist(), document.ravel().tolist(), strict=True), attraction.ravel(), strict=True))
    return ClickCounts.of(batches[:1]), ClickCounts.of(batches[1:]), truth


def test_documents_of_other_queries_tell_examination_and_later_clicks() -> None:
    earlier, later, _ = tail_log(0)
    joint, plain = (model.fit(earlier) for model in (Joint(), PositionBased()))
    true = 1.0 / joint.examination.position
    assert (np.abs(joint.examination.value / true - 1.0) < 0.15).all()
    assert log_loss(joint, later) < log_loss(plain, later) - 0.005


def test_a_new_pair_has_what_its_document_lets_expect() -> None:
    earlier, later, truth = tail_log(1)
    fitted = Joint().fit(earlier.select(earlier.query < 4000))
    new = later.select(later.query >= 4000)
    names = zip((new.queries[q][1:] for q in new.query), (new.documents[d][1:] for d in new.document), strict=True)
    expected = [truth[int(query), int(document)] for query, document in names] / new.position
    assert np.corrcoef(fitted.click_probability(new), expected)[0, 1] > 0.85
