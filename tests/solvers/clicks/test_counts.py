"""Counts of a log are those that a dictionary keeps, in whatever batches the log comes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.clicks.counts import ClickCounts, Impressions
from ranktune.solvers.core.errors import DataError
from tests.support.click_counts import drawn_counts, impressions


def some(n: int, seed: int = 0) -> Impressions:
    generator = np.random.default_rng(seed)
    query, document, position = (generator.integers(0, top, n) for top in (5, 7, 4))
    return impressions(query, document, position, generator.choice([0.0, 0.5, 1.0], n))


def parts_of(batch: Impressions, sizes: list[int]) -> list[Impressions]:
    cuts = np.split(np.arange(len(batch.query)), np.cumsum(sizes)[:-1])
    names = ("query", "document", "position", "click", "session")
    return [replace(batch, **{name: getattr(batch, name)[cut] for name in names}) for cut in cuts]


@pytest.mark.parametrize("sizes", [[900], [1, 899], [300, 300, 300], [0, 700, 150, 49, 1], [100] * 9])
def test_counts_are_those_of_a_dictionary(sizes: list[int]) -> None:
    batch = some(900)
    shown: Counter[tuple[int, int, int]] = Counter()
    clicks: Counter[tuple[int, int, int]] = Counter()
    for *key, click in zip(batch.query, batch.document, batch.position, batch.click, strict=True):
        shown[tuple(key)] += 1
        clicks[tuple(key)] += click
    counts = ClickCounts.of(parts_of(batch, sizes))
    keys = sorted(shown)
    assert list(zip(counts.query, counts.document, counts.position, strict=True)) == keys
    assert counts.shown.tolist() == [shown[key] for key in keys]
    assert counts.clicks.tolist() == [clicks[key] for key in keys]
    assert [(counts.query[row], counts.document[row]) for row in counts.firsts] == sorted({key[:2] for key in keys})
    assert counts.by_pair(counts.shown)[counts.pair[5]] == sum(n for key, n in shown.items() if key[:2] == keys[5][:2])


def test_rows_of_another_log_are_found_by_names() -> None:
    counts = drawn_counts(np.random.default_rng(1))
    order = np.argsort(counts.documents)[::-1]
    other = replace(
        counts, document=np.argsort(order)[counts.document], documents=[counts.documents[place] for place in order]
    )
    _, document, pair = counts.places_of(other)
    assert (document == counts.document).all() and (pair == counts.pair).all()
    strangers = replace(other, documents=[f"new {name}" for name in other.documents])
    query, document, pair = counts.places_of(strangers)
    assert (query == counts.query).all() and (document == -1).all() and (pair == -1).all()


def test_what_cannot_be_counted_is_an_error() -> None:
    with pytest.raises(DataError, match="no impressions"):
        ClickCounts.of([])
    with pytest.raises(DataError, match="must not be below 0"):
        ClickCounts.of([replace(some(3), position=np.array([1, -2, 1]))])
    with pytest.raises(DataError, match="too large to count"):
        ClickCounts.of([replace(some(3), position=np.array([1, 2**62, 1]))])
