"""Leases: nobody's trial is another's, what is lost is tried once more, and a clock that jumps ends nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.policy.policy import POLICY, Race
from ranktune.tuner.storage.database import RACES
from ranktune.tuner.storage.leases import Lease, Leases, Offer
from ranktune.tuner.storage.record import Record
from tests.support.clocks import Clock
from tests.tuner.storage.test_record import DISTRIBUTIONS
from tests.tuner.storage.test_record import PARAMS as REAL

PARAMS: dict[str, Value] = {"solver": "A", "A.x": 0.1 + 0.2, "A.n": 3, "A.b": True, "A.none": None}
DONE = TaskOutcome({"map": np.array([0.5, 1.0])}, worker="w")
PERIOD = 30.0


@pytest.fixture
def clock() -> Clock:
    return Clock(1e6)


@pytest.fixture
def leases(tmp_path: Path, clock: Clock, storage_url: str | None) -> Iterator[Leases]:
    record = Record(tmp_path, "s", "map", storage_url)
    made = Leases(record.storage, "s", PERIOD, clock)
    yield made
    made.disconnect()
    record.close()


def some(lease: Lease | list[Lease] | None) -> Lease:
    """Return a lease that was given, or the only one that was claimed."""
    (result,) = lease if isinstance(lease, list) else [lease]
    assert result is not None
    return result


def states(leases: Leases) -> dict[int, str]:
    return {lease.number: f"{lease.state} {lease.attempt}" for lease in leases.rows()}


def test_a_lease_holds_the_parameters_to_the_last_bit(leases: Leases) -> None:
    given = some(leases.give(Offer(7, PARAMS | {"A.y": np.float64(1) / 3}, limit=1.5), "lane"))
    (row,) = leases.rows()
    assert row == given
    assert (row.number, row.attempt, row.worker, row.limit, row.joined) == (7, 1, "lane", 1.5, False)
    assert row.params == PARAMS | {"A.y": 1.0 / 3.0}
    assert [type(row.params[name]) for name in PARAMS] == [type(value) for value in PARAMS.values()]


def test_what_is_offered_is_claimed_once_the_first_first(leases: Leases) -> None:
    for number in (2, 0, 1):
        leases.offer(Offer(number, PARAMS))
    leases.offer(Offer(1, {"solver": "B"}))  # again: nothing happens
    claimed = [some(leases.claim(worker)) for worker in "abc"]
    assert [(lease.number, lease.worker) for lease in claimed] == [*enumerate("abc")] and claimed[0].joined
    assert len({lease.token for lease in claimed}) == 3 and all(lease.params == PARAMS for lease in claimed)
    assert leases.claim("d") == []


def test_what_many_claim_at_once_is_each_trial_of_one(tmp_path: Path, storage_url: str | None) -> None:
    owner = Record(tmp_path, "s", "map", storage_url)
    owner.leases.offer(*(Offer(number, PARAMS) for number in range(48)))

    def delivered(worker: str) -> list[int]:
        record, count = Record(tmp_path, "s", "map", storage_url), "abcd".index(worker) + 1
        batches = [*iter(partial(record.leases.claim, worker, count), [])]
        assert max(map(len, batches), default=1) <= count
        claimed = [*chain.from_iterable(batches)]
        assert all(record.leases.deliver(lease.number, lease.token, DONE) for lease in claimed)
        record.close()
        return [lease.number for lease in claimed]

    with ThreadPoolExecutor(4) as pool:
        numbers = [*chain.from_iterable(pool.map(delivered, "abcd"))]
    assert sorted(numbers) == sorted(lease.number for lease, _ in owner.leases.collect()) == [*range(48)]
    owner.close()


def test_what_a_trial_is_raced_against_goes_with_it_to_the_last_bit(leases: Leases) -> None:
    scores = np.array([0.1 + 0.2, np.nan, 1.0 / 3.0])
    raced = Offer(0, PARAMS, incumbent=scores, race=Race(level=0.1 + 0.2, min_queries=3), path=True)
    plain = Offer(0, PARAMS)

    def check(expected: Offer) -> None:
        lease = some(leases.claim("w"))
        assert np.asarray(lease.incumbent).tobytes() == np.asarray(expected.incumbent).tobytes()
        assert (lease.race, lease.path) == (expected.race, expected.path)
        leases.give_back([lease.token])

    for first, second in ((raced, plain), (plain, replace(raced, incumbent=scores[::-1]))):
        leases.offer(first)
        leases.offer(second)  # again: nothing happens
        check(first)
        leases.set_race(second)
        check(second)
        check(second)
        leases.close(0)


def test_a_database_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """It has no table of races; thresholds that are not stored are the default ones."""
    record = Record(tmp_path, "s", "map")
    earlier = Leases(record.storage, "s")
    for number in (0, 1):
        earlier.offer(Offer(number, PARAMS, race=Race(min_queries=3)))
    with earlier.engine.begin() as connection:
        RACES.drop(connection)
    opened = Record(tmp_path, "s", "map")
    later = opened.leases
    with later.engine.begin() as connection:
        connection.execute(RACES.insert().values(study="s", number=1, thresholds='{"min_queries": 5}'))
    assert [some(later.claim(worker)).race for worker in "ab"] == [POLICY.race, Race(min_queries=5)]
    earlier.disconnect()
    record.close()
    opened.close()


def test_the_owner_takes_back_what_it_offered_but_not_what_is_claimed(leases: Leases) -> None:
    leases.offer(Offer(0, PARAMS))
    leases.offer(Offer(1, PARAMS))
    leases.claim("w")
    assert leases.give(Offer(0, PARAMS), "lane") is None
    assert not some(leases.give(Offer(1, PARAMS), "lane")).joined
    assert leases.claim("w") == []


def test_only_what_no_worker_has_begun_is_withdrawn(leases: Leases) -> None:
    leases.offer(*(Offer(number, PARAMS, incumbent=np.ones(2)) for number in range(4)))
    first, _ = leases.claim("w", 2)
    leases.reissue(0, first.token)
    assert leases.withdraw([0, 1, 2]) == {2}
    assert states(leases) == {0: "waiting 2", 1: "leased 1", 3: "waiting 1"}
    leases.offer(Offer(2, PARAMS))
    assert [lease.incumbent is None for lease in leases.claim("v", 4)] == [False, True, False]


def test_a_lost_trial_is_given_out_once_more_with_the_same_parameters(leases: Leases) -> None:
    first = some(leases.give(Offer(0, PARAMS), "lane"))
    reissued = some(leases.reissue(0, first.token))
    assert (reissued.attempt, reissued.state, reissued.params) == (2, "waiting", PARAMS)
    second = some(leases.give(Offer(0, {"other": 1}), "lane"))
    assert (second.attempt, second.params) == (2, PARAMS)
    assert leases.reissue(0, first.token) is None  # a stale token
    assert states(leases) == {0: "leased 2"}
    assert leases.reissue(0, second.token) is None
    assert states(leases) == {0: "lost 2"}
    assert leases.give(Offer(0, PARAMS), "lane") is None
    assert leases.claim("w") == []


def test_what_was_interrupted_keeps_its_attempt(leases: Leases) -> None:
    for number in (0, 1):
        lease = some(leases.give(Offer(number, PARAMS), "lane"))
        if number:
            leases.reissue(1, lease.token)
            lease = some(leases.give(Offer(1, PARAMS), "lane"))
    leases.give_back([row.token for row in leases.rows()])
    assert states(leases) == {0: "waiting 1", 1: "waiting 2"}
    assert leases.renew([lease.token]) == set()
    leases.give_back([some(leases.claim("w")).token, "unknown"])
    assert states(leases) == {0: "waiting 1", 1: "waiting 2"}


def test_handing_in_twice_is_as_once_and_stale_tokens_are_refused(leases: Leases) -> None:
    leases.offer(Offer(0, PARAMS))
    lease = some(leases.claim("w"))
    assert not leases.deliver(0, "another", DONE)
    assert not leases.deliver(1, lease.token, DONE)
    assert leases.collect() == []
    assert leases.deliver(0, lease.token, DONE)
    assert leases.deliver(0, lease.token, TaskOutcome(error="another"))
    ((collected, outcome),) = leases.collect()
    assert (collected.number, collected.worker, outcome.error) == (0, "w", None)
    np.testing.assert_array_equal(outcome.per_query["map"], DONE.per_query["map"])
    assert leases.expired() == []
    leases.close(0)
    leases.close(0)
    assert leases.deliver(0, lease.token, DONE)  # the answer to the first may have been lost
    assert leases.collect() == [] and leases.rows() == []


def lapse(leases: Leases, clock: Clock, seconds: float = PERIOD, step: float = PERIOD / 10) -> list[tuple[int, bool]]:
    """Let time pass with the looks of an owner in between."""
    result, until = [], clock.now + seconds
    result += [(lease.number, more) for lease, more in leases.expired()]
    while clock.now < until - 1e-6:
        clock.now += step
        result += [(lease.number, more) for lease, more in leases.expired()]
    return result


def test_a_worker_that_dies_right_after_its_claim_is_detected_within_a_period(leases: Leases, clock: Clock) -> None:
    leases.offer(Offer(0, PARAMS))
    leases.claim("w")
    assert lapse(leases, clock, 0.9 * PERIOD) == []
    assert lapse(leases, clock, 0.2 * PERIOD) == [(0, True)]
    second = some(leases.claim("v"))
    assert (second.attempt, second.params) == (2, PARAMS)
    assert lapse(leases, clock, 0.9 * PERIOD) == []
    assert lapse(leases, clock, 0.1 * PERIOD) == [(0, False)]
    assert [(lease.worker, more) for lease, more in leases.expired()] == [("v", False)]  # until it is recorded
    leases.close(0)
    assert leases.expired() == []


def test_who_renews_is_never_given_up_and_lanes_of_the_owner_are_not_looked_at(leases: Leases, clock: Clock) -> None:
    leases.offer(Offer(0, PARAMS))
    lease = some(leases.claim("w"))
    leases.give(Offer(1, PARAMS), "lane")
    for _ in range(20):
        assert leases.renew([lease.token, "unknown"]) == {lease.token}
        assert lapse(leases, clock, PERIOD / 3) == []


def test_jumps_and_gaps_expire_nothing(leases: Leases, clock: Clock) -> None:
    """An owner that was asleep, or cut off from the server, gives the others time to show up first."""
    tokens = []
    for number in range(5):
        leases.offer(Offer(number, PARAMS))
        tokens.append(some(leases.claim("w")).token)
    for jump in (3600.0, -7200.0, 86400.0):
        assert leases.expired() == []
        clock.now += jump
        assert leases.expired() == []
        assert leases.renew(tokens) == set(tokens)


def test_settling_leaves_only_what_is_not_in_the_record(tmp_path: Path, storage_url: str | None) -> None:
    record = Record(tmp_path, "s", "map", storage_url)
    for number in range(3):
        record.leases.give(Offer(number, REAL), "lane")
    record.leases.offer(Offer(3, REAL))
    assert record.leases.deliver(3, some(record.leases.claim("w")).token, DONE)
    other = Record(tmp_path, "s", "map", storage_url)  # has no leases of its own: appends only
    other.append(0, REAL, DISTRIBUTIONS, DONE)
    other.close()
    record.append(1, REAL, DISTRIBUTIONS, DONE)
    assert states(record.leases) == {0: "leased 1", 2: "leased 1", 3: "delivered 1"}
    record.append(3, REAL, DISTRIBUTIONS, DONE)
    record.settle()
    assert states(record.leases) == {2: "leased 1"}
    record.close()


# the owner, and workers that joined


def test_a_study_has_one_owner(leases: Leases, clock: Clock) -> None:
    def alive(pid: int) -> bool:
        return pid != 5

    token = leases.acquire("here", 1, "noon", alive=alive)
    moves = 0

    def sleep(seconds: float) -> None:
        nonlocal moves
        clock.now += seconds
        moves += 1
        if moves % 10 == 0:
            leases.confirm(token)

    for host, pid in (("there", 2), ("here", 2)):
        with pytest.raises(StudyError, match=r"study 's' is run by process 1 on here since noon.*ranktune\.api\.work"):
            leases.acquire(host, pid, "one", alive=alive, sleep=sleep)
    leases.confirm(token)
    leases.release(token, concluded=True)
    owner = leases.owner()
    assert owner is not None and (owner.is_running, owner.concluded) == (False, True)
    assert leases.acquire("here", 5, "two", alive=alive) != token
    assert leases.acquire("here", 6, "three", alive=alive, sleep=sleep)  # 5 is dead: at once
    with pytest.raises(StudyError, match="taken over by another process"):
        leases.confirm(token)
    owner = leases.owner()
    assert owner is not None and (owner.pid, owner.is_running, owner.concluded) == (6, True, False)


def test_an_owner_without_a_sign_of_life_is_replaced_after_a_period(leases: Leases, clock: Clock) -> None:
    begun = clock.now

    leases.acquire("there", 1, "noon")
    leases.acquire("here", 2, "one", sleep=clock.sleep)
    assert PERIOD <= clock.now - begun < 1.1 * PERIOD


def test_who_was_replaced_cannot_write(tmp_path: Path, storage_url: str | None) -> None:
    asleep, awake = Record(tmp_path, "s", "map", storage_url), Record(tmp_path, "s", "map", storage_url)
    asleep.leases.acquire("here", 1, "noon", alive=lambda pid: False)
    asleep.append(0, REAL, DISTRIBUTIONS, DONE)
    awake.leases.acquire("here", 2, "one", alive=lambda pid: False)
    with pytest.raises(StudyError, match="taken over"):
        asleep.append(1, REAL, DISTRIBUTIONS, DONE)
    awake.append(1, REAL, DISTRIBUTIONS, DONE)
    assert len(asleep.trials()) == len(awake.trials()) == 2
    asleep.close()
    awake.close()


def test_workers_come_and_go(leases: Leases, clock: Clock) -> None:
    leases.join("w", "here", 1, 2, "1.0")
    leases.join("v", "there", 2, 8, "1.0")
    leases.join("w", "here", 3, 4, "1.1")
    assert [(w.name, w.host, w.pid, w.jobs, w.version) for w in leases.workers()] == [
        ("v", "there", 2, 8, "1.0"),
        ("w", "here", 3, 4, "1.1"),
    ]
    for _ in range(12):
        clock.now += PERIOD / 10
        assert leases.heartbeat("w")
        names = [worker.name for worker in leases.workers()]
    assert names == ["w"]
    assert not leases.heartbeat("v")
    leases.leave("w")
    assert leases.workers() == []
