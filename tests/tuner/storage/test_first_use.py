"""Several processes that are the first to use an empty record, or one of an older Optuna: all of them go on."""

import multiprocessing
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import text

from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.record import Record
from tests.support.postgres_server import Server

ROUNDS = 4


def first_used(barrier: Barrier, places: Sequence[tuple[Path, str | None]], name: str) -> None:
    """Open one record after another at the same moments as others do, and write a trial into each."""
    for folder, url in places:
        barrier.wait(60.0)
        record = Record(folder, name, "map", url)
        record.leases.join(multiprocessing.current_process().name, "here", 1, 1, "1")
        record.append(int(name[1:] or 0), {}, {}, TaskOutcome(error="nothing"))
        assert record.storage.get_current_version() == record.storage.get_head_version()
        record.close()


def at_once(places: Sequence[tuple[Path, str | None]], names: Sequence[str]) -> list[int | None]:
    """Return the exit codes of processes that use the places at the same moments."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(names))
    processes = [context.Process(target=first_used, args=(barrier, places, name)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120.0)
    return [process.exitcode for process in processes]


def made(folder: Path, url: str | None, age: str) -> tuple[Path, str | None]:
    """Return a place without tables, or with those of an older Optuna."""
    if age == "old":
        Record(folder, "s", "map", url).close()
        storage = open_storage(folder / "record.db" if url is None else url)
        with storage.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = 'v3.0.0.d'"))
            connection.execute(text("DROP INDEX ix_trials_study_id"))
            connection.execute(text("DROP TABLE IF EXISTS ranktune_races"))
        storage.engine.dispose()
    return folder, url


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "age", "names"),
    [
        ("sqlite", "empty", ["s", "s", "s"]),
        ("sqlite", "old", ["s", "s", "s"]),
        ("postgresql", "empty", ["s0", "s1", "s2"]),
        ("postgresql", "empty", ["s", "s", "s"]),
        ("postgresql", "old", ["s0", "s1", "s"]),
    ],
)
def test_all_of_several_first_users_go_on(
    kind: str, age: str, names: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: Server | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
    places = []
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        places.append(made(folder, None if server is None else server.new_database(), age))
    assert at_once(places, names) == [0] * len(names)
    for folder, url in places:
        for name in names:
            record = Record(folder, name, "map", url)
            assert len(record.trials()) == 1
            record.close()
        if age == "old" and kind == "sqlite":
            assert (folder / "record.db.before-upgrade").exists()
