"""Storages that cannot be used: notices in one line with the remedy, and a password is never shown."""

from __future__ import annotations

import sqlite3
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from ranktune.solvers.core.errors import ParameterError, RankTuneError, RankTuneWarning, StudyError
from ranktune.tuner.storage import database as storage
from ranktune.tuner.storage.database import check_url, file_system, open_storage, shown_url
from ranktune.tuner.storage.record import Record
from ranktune.tuner.storage.retrying import AWAY, BACK, DatabaseFault, retrying
from tests.support.clocks import Clock

if TYPE_CHECKING:
    from tests.support.postgres_server import Server

SECRET = "p@ss:w/ör?d%40"
CODED = quote(SECRET, safe="")


def refused(url: str | Path, secret: str = SECRET) -> str:
    """Return the line in which a storage is refused; nothing that is shown of it, chained causes too, has a secret."""
    with warnings.catch_warnings(record=True) as notices, pytest.raises(RankTuneError) as caught:
        warnings.simplefilter("always")
        open_storage(url, patience=0.3)
    shown = "".join(traceback.format_exception(caught.value)) + "".join(str(notice.message) for notice in notices)
    context: BaseException | None = caught.value
    while context is not None:
        shown += str(context)
        context = context.__context__
    assert secret not in shown and quote(secret, safe="") not in shown
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"mysql://u:{CODED}@h/d", "cannot be kept in 'mysql', only in PostgreSQL: give postgresql://"),
        (f"redis://:{CODED}@h", "cannot be kept in 'redis'"),
        (f"postgresql+asyncpg://u:{CODED}@h/d", "cannot be kept in 'postgresql'"),
        ("sqlite:///x.db", "give home= instead"),
        (f"u:{CODED}@h/d", "is not a URL. Give one like postgresql://"),
        (f"postgresql://u:{CODED}@h:port/d", "is not a URL"),
        ("", "is not a URL"),
        (f"postgresql://u:{CODED}@h", "names no database"),
    ],
)
def test_urls_that_cannot_be(url: str, said: str) -> None:
    with pytest.raises(ParameterError):
        check_url(url)
    assert said in refused(url)


def test_a_url_is_shown_without_its_password() -> None:
    url = f"postgres://me:{CODED}@host:99/d?password=x&sslmode=require&sslpassword=y"
    assert shown_url(url) == "postgresql://me@host:99/d?sslmode=require"


def test_a_server_that_is_not_there(postgres: Server) -> None:
    from tests.support.postgres_server import free_port

    line = refused(f"postgresql://u:{CODED}@127.0.0.1:{free_port()}/d")
    assert "did not answer" in line and "Connection refused" in line and "Check the address" in line
    assert "did not answer" in refused(f"postgresql://u:{CODED}@no-such-host.invalid/d")


def test_a_wrong_password_and_an_unknown_user(postgres: Server) -> None:
    line = refused(postgres.url("postgres", password=CODED))
    assert 'password authentication failed for user "tester". Check the user and the password' in line
    assert "Check the user" in refused(postgres.url("postgres", user="nobody", password=CODED))


def test_a_database_that_is_not_there(postgres: Server) -> None:
    assert 'database "absent" does not exist. Create it (createdb)' in refused(
        postgres.url("absent"), postgres.password
    )


def test_a_database_in_which_nothing_may_be_written(postgres: Server) -> None:
    postgres.execute(f"DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD '{postgres.password}'")
    url = postgres.new_database()
    assert "permission denied" in refused(url.replace("tester", "guest"), postgres.password)
    name = url.rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "read-only transaction. Give the URL of the primary" in refused(url, postgres.password)


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert 'pip install "ranktune[postgres]"' in refused(f"postgresql://u:{CODED}@h/d")


def test_a_password_with_odd_signs_is_understood(postgres: Server, tmp_path: Path) -> None:
    postgres.execute(f"DROP ROLE IF EXISTS odd; CREATE ROLE odd SUPERUSER LOGIN PASSWORD '{SECRET}{{0}}'")
    name = postgres.new_database().rpartition("/")[2]
    url = postgres.url(name, user="odd", password=quote(SECRET + "{0}", safe=""))
    record = Record(tmp_path, "s", "map", url)
    assert record.trials() == []
    record.close()


MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/me/local\\040disk xfs rw 0 0
me@host:/ /mnt/s fuse.sshfs rw 0 0
/dev/sdc /over ext4 rw 0 0
x /over lustre rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/me/x", "nfs4"),
        ("/homes", "ext4"),
        ("/home/me/local disk/r", "xfs"),
        ("/mnt/s", "fuse.sshfs"),
        ("/mnt/so", "ext4"),
        ("/over/x", "lustre"),
    ],
)
def test_the_file_system_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str) -> None:
    mount(tmp_path, MOUNTS, monkeypatch)
    assert file_system(Path(path)) == kind


def mount(folder: Path, mounts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the system say what is mounted."""
    (folder / "self").mkdir(exist_ok=True)
    (folder / "self" / "mounts").write_text(mounts)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(folder))


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(tmp_path, f"server:/ {tmp_path} nfs4 rw 0 0\n", monkeypatch)
    line = refused(tmp_path / "record.db")
    assert "network file system (nfs4)" in line and "storage='postgresql://" in line
    assert not (tmp_path / "record.db").exists()
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "absent"))
    open_storage(tmp_path / "record.db").engine.dispose()


def test_files_that_are_no_database(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    path.write_bytes(b"this is not a database" * 100)
    assert "file is not a database. Restore record.db from a copy" in refused(path)
    path.unlink()
    path.mkdir()
    assert "unable to open database file" in refused(path)


def test_a_damaged_database(tmp_path: Path) -> None:
    Record(tmp_path, "s", "map").close()
    path = tmp_path / "record.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    assert "malformed" in refused(path)


def version(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        (result,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    return str(result)


def set_version(path: Path, name: str, *more: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (name,))
        for statement in more:
            connection.execute(statement)
    connection.close()


def test_tables_of_a_newer_optuna_are_refused(tmp_path: Path) -> None:
    Record(tmp_path, "s", "map").close()
    set_version(tmp_path / "record.db", "v99.0.0.a")
    assert "newer Optuna" in (line := refused(tmp_path / "record.db")) and "pip install -U" in line


def test_tables_of_an_older_optuna_are_brought_up_to_date_and_kept(tmp_path: Path) -> None:
    Record(tmp_path, "s", "map").close()
    path = tmp_path / "record.db"
    newest = version(path)
    set_version(path, "v3.0.0.d", "DROP INDEX ix_trials_study_id")
    record = Record(tmp_path, "s", "map")
    assert record.trials() == []
    record.close()
    assert version(path) == newest
    assert version(tmp_path / "record.db.before-upgrade") == "v3.0.0.d"


@pytest.mark.parametrize("name", ["with space", "ünï", "a?b#c%20d", "{SCHEMA_VERSION}", "a&b=c@d:e"])
def test_folders_of_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    Record(folder, "s", "map").close()
    assert (folder / "record.db").exists()


# trying again


def failing(times: int, said: str) -> Callable[[], str]:
    left = times

    def operation() -> str:
        nonlocal left
        if left > 0:
            left -= 1
            raise OperationalError("SELECT", {}, sqlite3.OperationalError(said))
        return "done"

    return operation


def test_what_passes_is_waited_for_with_a_warning_before_and_after() -> None:
    clock, notices = Clock(), []
    engine = create_engine("sqlite://")
    with pytest.warns(RankTuneWarning) as warned:
        result = retrying(
            failing(9, "database is locked"),
            engine,
            on_event=lambda *w: notices.append(w),
            clock=clock,
            sleep=clock.sleep,
        )
    assert result == "done"
    assert [event for event, _ in notices] == [AWAY, BACK]
    assert [str(warning.message) for warning in warned] == [sentence for _, sentence in notices]
    assert "answers again after" in notices[1][1]


def test_patience_ends() -> None:
    clock, engine = Clock(), create_engine("sqlite://")
    with pytest.warns(RankTuneWarning, match="does not answer"), pytest.raises(StudyError, match="for 60 seconds: ano"):
        retrying(failing(10**6, "database is locked"), engine, patience=60.0, clock=clock, sleep=clock.sleep)
    assert 60.0 <= clock.now < 66.0


def test_a_server_that_says_it_is_starting_is_known_by_that() -> None:
    assert DatabaseFault("the database system is starting up").starting
    assert DatabaseFault("the database system is not yet accepting connections").starting
    assert not DatabaseFault("connection refused").starting


def test_a_server_that_answered_once_is_waited_for_at_the_next_opening(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "OPENING", 0.0)
    url = postgres.new_database()
    Record(tmp_path, "s", "map", url).close()
    postgres.stop()
    start = threading.Timer(0.5, postgres.start)
    start.start()
    notices: list[str] = []
    with pytest.warns(RankTuneWarning, match="does not answer|answers again"):
        Record(tmp_path, "s", "map", url, on_event=lambda event, _: notices.append(event)).close()
    start.join()
    assert notices == [AWAY, BACK]


def test_mistakes_are_not_hidden() -> None:
    engine = create_engine("sqlite://")
    with pytest.raises(OperationalError, match="no such table"), engine.connect() as connection:
        retrying(lambda: connection.execute(text("SELECT * FROM absent")), engine)
    with pytest.raises(ZeroDivisionError):
        retrying(lambda: 1 / 0, engine)
