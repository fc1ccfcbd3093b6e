"""Workers wait for trials: an offer wakes them, and an SQLite file is looked at after waits that grow."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ranktune.tuner.storage.leases import Offer
from ranktune.tuner.storage.record import Record
from ranktune.tuner.storage.waking import LONGEST, SHORTEST, Waking
from tests.support.postgres_server import Server


class Noted(Waking):
    """Keeps for how long it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.selected = list[float]()

    def _select(self, seconds: float, *others: object) -> None:
        self.selected.append(seconds)
        super()._select(seconds, *others)


@pytest.fixture
def opened(tmp_path: Path, storage_url: str | None) -> Record:
    return Record(tmp_path, "s", "map", storage_url)


def test_the_end_of_a_trial_wakes_a_worker_also_before_it_waits(opened: Record) -> None:
    waits = Waking()
    opened.leases.wait(waits, 0.0)  # a new connection begins to listen
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(waits.wait, 60.0)
        waits.wake()
        assert waiting.result(30.0) is None
        waits.wake()
        assert other.submit(waits.wait, 60.0).result(30.0) is None
    waits.close()
    waits.wake()
    opened.close()


@pytest.mark.filterwarnings("ignore:the record")  # the claim may be the first to notice that a connection is lost
def test_an_offer_wakes_the_workers_of_its_study_also_in_between(postgres: Server, tmp_path: Path) -> None:
    url = postgres.new_database()
    owner, other, joined = (Record(tmp_path, name, "map", url) for name in ("s", "t", "s"))
    waits = Noted()
    joined.leases.wait(waits, 60.0)  # a new connection begins to listen, and what was offered before may be claimed
    other.leases.offer(Offer(0, {}))
    joined.leases.wait(waits, 0.0)
    assert waits.selected == [0.0]
    owner.leases.offer(Offer(0, {}))
    assert [lease.number for lease in joined.leases.claim("w")] == [0]
    joined.leases.wait(waits, 60.0)  # the notification came with the answer to the claim
    assert waits.selected == [0.0]
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(joined.leases.wait, waits, 60.0)
        owner.leases.offer(Offer(1, {}))
        waiting.result(30.0)
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{url.rpartition('/')[2]}'"
    )
    joined.leases.wait(waits, 60.0)  # a connection that is lost ends the wait
    assert [lease.number for lease in joined.leases.claim("w")] == [1]
    for each in (owner, other, joined, waits):
        each.close()


def test_waits_for_a_file_grow_until_a_trial_is_found(tmp_path: Path) -> None:
    record, waits = Record(tmp_path, "s", "map"), Noted()
    for _ in range(5):
        record.leases.wait(waits, 0.07)
    waits.found()
    record.leases.wait(waits, 0.07)
    assert waits.selected == [SHORTEST, 2 * SHORTEST, 4 * SHORTEST, 8 * SHORTEST, 0.07, SHORTEST]
    for _ in range(9):
        waits.wake()
        record.leases.wait(waits, 60.0)
    assert waits.selected[-1] == LONGEST
    waits.close()
    record.close()
