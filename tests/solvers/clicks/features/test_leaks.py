"""What was made of positions, outcomes or later clicks is named on every log; what was known before is not."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.clicks.counts import Impressions
from ranktune.solvers.clicks.features.future import Future
from ranktune.solvers.clicks.features.history import ClickHistory, SearchEvents
from ranktune.solvers.clicks.features.leaks import Leak, leaks
from ranktune.solvers.core.arrays import Floats
from tests.support.click_simulation import Users
from tests.support.leaky_logs import HONEST, LEAKS, leaky_log, rate


def further(known: SearchEvents) -> Floats:
    return np.asarray(known.rows["further"])


def found(log: Impressions) -> list[Leak]:
    return leaks(ClickHistory([log]), log.further_names, further, float(len(log.query)), {})


USERS = [(seed, Users()) for seed in range(20)]
USERS += [(seed, users) for seed in range(3) for users in (Users("cascade"), Users("trust", noise=0.02))]
FAST = USERS[0], USERS[20], USERS[21]
"""One of each kind; the others are further draws."""


@pytest.mark.parametrize(
    ("seed", "users"), [pytest.param(*each, marks=() if each in FAST else pytest.mark.thorough) for each in USERS]
)
def test_leaks_are_named_and_nothing_else_is(seed: int, users: Users) -> None:
    listed = found(leaky_log(seed, users))
    assert {leak.name: leak.kind for leak in listed} == LEAKS
    seemed = {leak.name: leak.seemed for leak in listed}
    assert seemed["dwell"] > 0.99
    assert min(seemed[name] for name in ("place", "score", "pair_rate")) > listed[0].known
    assert all(leak.known == listed[0].known and f"{leak.seemed:.3f}" in str(leak) for leak in listed)


@pytest.mark.parametrize("count", [12, pytest.param(130, marks=pytest.mark.thorough)])
def test_columns_of_chance_are_named_no_more_often_than_promised(count: int) -> None:
    """So many columns of each kind that are known before: by document, by query and document, and by impression."""
    log = leaky_log(0, Users(), sessions=1000)
    generator = np.random.default_rng(1)
    pair = log.query * len(log.documents) + log.document
    drawn = [
        generator.normal(size=int(key.max()) + 1)[key]
        for _ in range(count)
        for key in (log.document, pair, np.arange(len(pair)))
    ]
    columns = np.column_stack(drawn)
    assert found(replace(log, further=columns, further_names=[str(k) for k in range(columns.shape[1])])) == []


def test_where_all_documents_are_always_shown_impressions_tell_nothing_and_clicks_still_do() -> None:
    """Four queries of 20 documents each, each in 300 searches, in any order: totals of impressions are all the same."""
    generator, n = np.random.default_rng(2), 1200
    query = np.tile(np.arange(4), n // 4)
    document = np.concatenate([20 * q + generator.permutation(20) for q in query])
    click = (generator.random(len(document)) < 0.1 + 0.3 * generator.random(80)[document]).astype(float)
    columns = np.column_stack([generator.normal(size=80)[document], rate(document, click)])
    log = Impressions(
        np.repeat(query, 20), document, np.tile(np.arange(1, 21), n), click, np.repeat(np.arange(n), 20),
        np.repeat(np.arange(n) * 60_000, 20), None, [str(k) for k in range(4)], [str(k) for k in range(80)],
        [str(k) for k in range(n)], further=columns, further_names=("honest", "rate"),
    )  # fmt: skip
    assert {leak.name: leak.kind for leak in found(log)} == {"rate": "future"}


def test_clicks_that_were_drawn_anew_are_not_known() -> None:
    """A rate of clicks is a leak in its own log only: in a log with the same chances and other clicks it is not."""
    log, rate = leaky_log(3, Users()), list(LEAKS).index("document_rate") + len(HONEST)
    assert log.further is not None
    other = leaky_log(3, Users())
    generator = np.random.default_rng(7)
    chance = np.bincount(log.document, log.click) / np.maximum(np.bincount(log.document), 1)
    clicks = (generator.random(len(log.click)) < chance[log.document]).astype(float)
    for click, named in ((log.click, True), (clicks, False)):
        rows = next(iter(ClickHistory([replace(other, click=click)]))).rows
        time = np.sort(log.time)  # type: ignore[arg-type]
        assert bool(Future(rows, time[: len(rows)]).reason(rows["further"][:, rate], 1)) == named


def test_columns_without_values_and_of_one_value_are_named_too() -> None:
    log = leaky_log(0, Users(), sessions=100)
    columns = np.column_stack([np.full(len(log.query), value) for value in (np.nan, 3.0)])
    listed = found(replace(log, further=columns, further_names=("empty", "same")))
    assert [str(leak) for leak in listed] == [f"{name} is the same in all impressions." for name in ("empty", "same")]


def test_few_rows_name_nothing() -> None:
    log = leaky_log(0, Users(), sessions=8)
    assert [leak.name for leak in found(log) if leak.kind == "future"] == []
