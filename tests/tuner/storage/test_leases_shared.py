"""Leases that several processes take at once, also while the server crashes under them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ranktune.tuner.storage.record import Record, number_of
from tests.support import lease_worker
from tests.support.lease_worker import outcome_of
from tests.tuner.storage.test_record import DISTRIBUTIONS, PARAMS

if TYPE_CHECKING:
    from tests.support.postgres_server import Server

pytestmark = pytest.mark.thorough

WORKERS = 3


def run_shared(
    folder: Path, url: str | None, trials: int, *, third: Callable[[], None] = lambda: None, pause: float = 0.0
) -> tuple[list[list[str]], Record]:
    """Run trials on worker processes; return what they printed, and the record. third is called after a third."""
    record = Record(folder, "s", "map", url)
    token = record.leases.acquire("here", 1, "now")
    command = [sys.executable, str(Path(lease_worker.__file__)), url or str(folder)]
    workers = [
        subprocess.Popen([*command, f"w{k}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for k in range(WORKERS)
    ]
    try:
        missing, given = list(range(trials)), 0
        while missing:
            while given < trials and given < trials - len(missing) + 20:
                record.leases.offer(given, PARAMS)
                given += 1
            for lease, outcome in record.leases.collect():
                record.append(lease.number, PARAMS, DISTRIBUTIONS, outcome)
                missing.remove(lease.number)
                if len(missing) == 2 * trials // 3:
                    third()
                time.sleep(pause)
            assert record.leases.expired() == []
            for worker in workers:
                assert worker.poll() is None, worker.communicate()[1]
            time.sleep(0.005)
        record.leases.release(token, concluded=True)
        said = []
        for worker in workers:
            out, err = worker.communicate(timeout=60)
            assert worker.returncode == 0, err
            assert "Traceback" not in err and "StudyError" not in err
            said += [line.split() for line in out.splitlines()]
        return said, record
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def check(said: list[list[str]], record: Record, trials: int) -> None:
    """Check that each trial was claimed once, handed in once and is in the record once, as it should be."""
    assert Counter(int(number) for number, _, _ in said) == Counter(range(trials))
    assert {(attempt, done) for _, attempt, done in said} == {("1", "True")}
    result = record.trials()
    assert [number_of(trial) for trial in result] == list(range(trials))
    for trial in result:
        assert (record.per_query(trial)["map"] == outcome_of(number_of(trial)).per_query["map"]).all()
    assert record.leases.rows() == [] and record.leases.workers() == []
    record.close()


def test_no_trial_is_claimed_twice(tmp_path: Path, storage_url: str | None) -> None:
    said, record = run_shared(tmp_path, storage_url, 120)
    check(said, record, 120)


@pytest.mark.parametrize("away", [1.5, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_server_that_crashes_and_is_away_costs_a_warning_only(postgres: Server, tmp_path: Path, away: float) -> None:
    def crash() -> None:
        postgres.crash()
        time.sleep(0.5)
        postgres.crash(away)

    trials, outage = 150, threading.Thread(target=crash)
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        said, record = run_shared(tmp_path, postgres.new_database(), trials, third=outage.start, pause=0.02)
        outage.join()
    assert any("answers again after" in str(notice.message) for notice in notices)
    assert all(
        postgres.password not in str(notice.message) and "the record postgresql://tester@" in str(notice.message)
        for notice in notices
    )
    counts = Counter(int(number) for number, _, _ in said)
    assert set(counts) == set(range(trials))
    check(said, record, trials)
