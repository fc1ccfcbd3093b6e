"""Features as of the search are those of a loop over all earlier events, whatever the batches and windows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.clicks.counts import Impressions
from ranktune.solvers.clicks.features import history as history_module
from ranktune.solvers.clicks.features import history as runs
from ranktune.solvers.clicks.features.history import STRENGTH, ClickHistory
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Floats, Mask
from ranktune.solvers.core.errors import DataError, ParameterError
from tests.support.click_logs import BASE, Event, random_events, written

HOUR = 3_600_000


def drawn(seed: int, n: int = 150) -> Impressions:
    """Impressions of one search a session and query, or of several; many have the same time."""
    generator = np.random.default_rng(seed)
    time = BASE + 60_000 * generator.integers(0, 300, n)
    click = generator.integers(0, 3, n) * (generator.random(n) < 0.4)
    settled = time + np.where(click > 0, 60_000 * generator.integers(0, 40, n), 0)
    names = [f"{number}" for number in range(40)]
    query, document, position, session = (generator.integers(0, top, n) for top in (3, 5, 4, 40))
    return Impressions(
        query, document, position + 1, click.astype(float), session, time, None, names, names, names, settled=settled
    )


def begun(log: Impressions, row: int) -> int:
    """When the search of an impression began: the same query of a session, without a break of half an hour."""
    assert log.time is not None
    first, same = log.time[row], (log.session == log.session[row]) & (log.query == log.query[row])
    while (earlier := log.time[same & (log.time < first) & (log.time >= first - 30 * 60_000)]).size:
        first = earlier.max()
    return int(first)


def by_definition(log: Impressions, gap: int, half_life: int) -> Floats:
    """The features of each impression, from all events before its search, less the gap."""
    assert log.time is not None and log.settled is not None
    time, settled = log.time, log.settled

    def expected(row: int) -> float:
        shown, clicked = time < time[row], settled < time[row]
        here = log.position == log.position[row]
        mean = (log.click[clicked].sum() + 0.5) / (shown.sum() + 1.0)
        clicks = log.click[here & clicked].sum()
        return float(mean * (clicks + STRENGTH) / ((here & shown).sum() * mean + STRENGTH))

    await_ = np.array([expected(row) for row in range(len(time))])
    result = []
    for row in range(len(time)):
        now = begun(log, row)
        shown, clicked = time < now - gap, settled < now - gap

        def rates(same: Mask, shown: Mask = shown, clicked: Mask = clicked) -> list[float]:
            clicks = log.click[same & clicked].sum()
            ratio = (clicks + STRENGTH) / (await_[same & shown].sum() + STRENGTH)
            return [float((same & shown).sum()), float(clicks), float(ratio)]

        document = log.document == log.document[row]
        known = document & clicked
        recent = (log.click[known] * 0.5 ** ((now - gap - settled[known]) / half_life)).sum()
        age = (now - gap - time[document & shown].min()) / HOUR if (document & shown).any() else 0.0
        result.append([*rates(document), *rates(document & (log.query == log.query[row])), recent, age])
    return np.array(result)


def parts_of(log: Impressions) -> list[Impressions]:
    """The same impressions in two batches, with whole sessions."""
    names = ("query", "document", "position", "click", "session", "time", "settled")
    return [replace(log, **{name: getattr(log, name)[log.session % 2 == k] for name in names}) for k in (0, 1)]


@pytest.mark.parametrize("parts", [lambda log: [log], parts_of])
@pytest.mark.parametrize("gap", [0, 7 * 60, 3600.0])
def test_features_are_those_of_a_loop_over_what_was_before(
    gap: float, parts: Callable[[Impressions], list[Impressions]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "WINDOW", 40)
    monkeypatch.setattr(runs, "STEP", 2)
    log = drawn(round(gap))
    monkeypatch.setattr(history_module, "HALF_LIFE", 2.0 * HOUR)
    history = ClickHistory(parts(log), gap=gap)
    windows = list(history)
    assert len(windows) > 2 and len(np.unique([search for w in windows for search in w.rows["search"]])) > 40
    got = [
        (*(int(row[name]) for name in ("query", "document", "position", "session", "click")), int(time), *features)
        for window in windows
        for time, row, features in zip(window.time, window.rows, window.features, strict=True)
    ]
    columns = log.query, log.document, log.position, log.session, log.click, [begun(log, row) for row in range(150)]
    expected = np.column_stack([*columns, by_definition(log, round(gap * 1000), 2 * HOUR)])
    np.testing.assert_allclose(np.array(sorted(got)), np.array(sorted(expected.tolist())), rtol=1e-9, atol=1e-12)
    times = np.concatenate([window.time for window in windows])
    assert (np.diff(times) >= 0).all()
    searches = np.concatenate([window.rows["search"] for window in windows])
    assert (np.diff(searches) != 0).sum() + 1 == len(np.unique(searches))
    again = np.concatenate([window.features for window in history])
    np.testing.assert_array_equal(again, np.concatenate([window.features for window in windows]))


def test_what_happened_is_known_when_the_last_of_it_did(tmp_path: Path) -> None:
    weights = {"click": 1.0, "add_to_cart": 1.0, "hover": 0.0}
    events = random_events(5)
    (batch,) = ClickLog.open(written(tmp_path / "log.jsonl", events), weights=weights)
    assert batch.time is not None and batch.settled is not None and batch.search is not None
    late = batch.settled - batch.time
    assert ((late > 0) == (batch.click > 0)).all() and late.max() > 4000
    assert len(set(zip(batch.search, batch.query, strict=True))) == len(set(batch.search))


def test_numbers_in_further_columns_are_read(tmp_path: Path) -> None:
    rows: list[Event] = [
        {"query": "q", "doc_id": f"d{k}", "rank": k + 1, "click": k % 2, "ts": BASE + k, "price": 1.5 * k, "name": "a1"}
        for k in range(6)
    ]
    rows[2]["price"] = ""
    for name in ("log.csv", "log.jsonl"):
        (batch,) = ClickLog.open(written(tmp_path / name, rows), further=True)
        assert batch.further_names == ("price", "name") and batch.further is not None
        assert batch.further_texts == {"name": ["a1"]} and not batch.further[:, 1].any()
        np.testing.assert_array_equal(batch.further[:, 0], [0.0, 1.5, np.nan, 4.5, 6.0, 7.5])


def test_a_log_without_times_is_refused() -> None:
    log = replace(drawn(0), time=None)
    with pytest.raises(DataError, match=r"no times.*columns="):
        ClickHistory([log])
    with pytest.raises(ParameterError, match="gap='soon' is no length of time"):
        ClickHistory([drawn(0)], gap="soon")
