"""The database of a record: an SQLite file on one machine, a PostgreSQL server for several.

Beside an Optuna study it has tables of its owner, its workers, the leases of its trials, their incumbents and races. A
database of an earlier version lacks some of them, but no column: what was added to a lease is a table of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
import psutil
from optuna.storages import RDBStorage
from sqlalchemy import (
    URL,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.tuner.storage.optuna_internals import OptunaTables
from ranktune.tuner.storage.retrying import PATIENCE, OnEvent, retrying, without_password

EXAMPLE = "postgresql://user:password@host/database"
OPENING = 5.0
"""Seconds to wait for a server that has never answered this process, so that a wrong address is reported soon."""

_ANSWERED: set[URL] = set()  # servers that have answered this process

_FILE: dict[str, object] = {"timeout": 60}
_SERVER: dict[str, object] = {
    "connect_timeout": 10,
    # A host that vanished is noticed after about half a minute instead of two hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "ranktune",
}
_ALONE = """
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '60s';
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT pg_advisory_xact_lock(7241865319);
"""
"""Keeps other processes from making tables until the transaction ends; the server ends that of one that has stopped."""
_NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs4 cifs smb smb2 smb3 smbfs afs ceph lustre glusterfs gpfs beegfs 9p ncpfs ocfs2 gfs2 orangefs pvfs2 "
    "fuse.sshfs fuse.glusterfs fuse.ceph fuse.cephfs fuse.s3fs fuse.rclone fuse.gcsfuse fuse.davfs fuse.juicefs "
    "fuse.goofys fuse.mount-s3 fuse.blobfuse fuse.blobfuse2 fuse.dfs fuse.mfs fuse.seaweedfs".split()
)
NAME = 512  # letters of a study's name at most, as in Optuna
_METADATA = MetaData()
LEASES = Table(
    "ranktune_leases",
    _METADATA,
    Column("study", String(NAME), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("token", String(64), nullable=False),
    Column("worker", String(NAME), nullable=False),
    Column("joined", Boolean, nullable=False),  # whether its worker joined, or is a process of the owner
    Column("beat", Integer, nullable=False),  # changes with each renewal
    Column("trial_limit", Float),
    Column("params", Text, nullable=False),
    Column("outcome", LargeBinary),
    Index("ranktune_leases_by_state", "study", "state", "number"),
)
INCUMBENTS = Table(
    "ranktune_rivals",
    _METADATA,
    Column("study", String(NAME), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # of the trial
    Column("scores", LargeBinary, nullable=False),  # of the incumbent: float64, little-endian
)
RACES = Table(
    "ranktune_races",
    _METADATA,
    Column("study", String(NAME), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # with another race than the default, or a path
    Column("thresholds", Text, nullable=False),  # JSON
)
WORKERS = Table(
    "ranktune_workers",
    _METADATA,
    Column("study", String(NAME), primary_key=True),
    Column("worker", String(NAME), primary_key=True),
    Column("host", String(NAME), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("jobs", Integer, nullable=False),
    Column("version", String(64), nullable=False),
    Column("beat", Integer, nullable=False),
)
OWNERS = Table(
    "ranktune_owners",
    _METADATA,
    Column("study", String(NAME), primary_key=True),
    Column("token", String(64), nullable=False),  # empty if no process runs it
    Column("host", String(NAME), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", String(64), nullable=False),
    Column("beat", Integer, nullable=False),
    Column("concluded", Boolean, nullable=False),
)


def check_url(url: str) -> URL:
    """Return the parts of a database URL. Raises ParameterError if it is not one of PostgreSQL."""
    parsed = None
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        pass
    if parsed is None:  # outside of the block above: the chained exception could show a password
        raise ParameterError(f"the storage is not a URL. Give one like {EXAMPLE}, or none for a file in the home.")
    kind = parsed.get_backend_name()
    if kind in ("postgres", "postgresql") and parsed.drivername in (kind, f"{kind}+psycopg"):
        if not parsed.database:
            raise ParameterError(f"the storage's URL names no database. Give one like {EXAMPLE}.")
        return parsed.set(drivername="postgresql+psycopg")
    if kind == "sqlite":
        raise ParameterError("a study's SQLite file is in its folder: give home= instead of storage=.")
    raise ParameterError(f"a study cannot be kept in '{kind}', only in PostgreSQL: give {EXAMPLE}, or no storage.")


def shown_url(url: str) -> str:
    """Return the URL of a database without its password, for messages."""
    return without_password(check_url(url))


def open_storage(where: str | Path, *, patience: float | None = None, on_event: OnEvent | None = None) -> RDBStorage:
    """Return an Optuna storage on an SQLite file, which is created if it is missing, or on a PostgreSQL URL.

    SQLite waits for other processes and commits durably. A server that has answered this process before is retried
    for the usual time, and on_event called; another one for OPENING seconds. Raises StudyError if the database cannot
    be opened and written, ParameterError if the URL is wrong.
    """
    if isinstance(where, Path):
        check_local(where)
        # A URL and no text: a path may hold any sign.
        url, arguments = URL.create("sqlite", database=str(where)), _FILE
    else:
        url, arguments = check_url(where), _SERVER
        _check_driver()
    probe = create_engine(url, connect_args=arguments, poolclass=NullPool)
    has_answered = url in _ANSWERED
    if patience is None:
        patience = PATIENCE if has_answered else OPENING
    storage = retrying(
        lambda: _opened(url, arguments, probe), probe, on_event=on_event, patience=patience, quietly=not has_answered
    )
    _ANSWERED.add(url)
    if isinstance(where, Path):
        _commit_with(storage.engine, "FULL")
        storage.engine.dispose()  # connections made before the listener are not durable
    return storage


def lease_engine(storage: RDBStorage) -> Engine:
    """Return the engine for leases: that of the storage, or on SQLite one that survives a kill, not a power cut.

    After a power cut the workers are gone too, so that leases need not wait for the disk.
    """
    if storage.engine.dialect.name != "sqlite":
        return storage.engine
    engine = create_engine(storage.engine.url, connect_args=_FILE)
    _commit_with(engine, "NORMAL")
    return engine


def _opened(url: URL, arguments: dict[str, object], probe: Engine) -> RDBStorage:
    """Return the storage; before, one transaction of one process at a time makes or upgrades all tables, or none."""
    with probe.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.dialect.name == "sqlite" else _ALONE)
        tables = OptunaTables(connection)
        if tables.version != tables.versions[0]:
            _upgrade(tables, url, connection)
        make_tables(connection)
    text = url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")  # Optuna formats it
    with quiet():
        return RDBStorage(text, {"connect_args": arguments}, skip_compatibility_check=True, skip_table_creation=True)


def _upgrade(tables: OptunaTables, url: URL, connection: Connection) -> None:
    """Upgrade the tables of an older Optuna and keep a copy of the file. Raises StudyError if Optuna is older."""
    if tables.version not in tables.versions:
        raise StudyError(
            f"the record was written by a newer Optuna than {optuna.__version__} (its tables are of "
            f"'{tables.version}'). Upgrade it: pip install -U ranktune optuna."
        )
    file = connection.connection.driver_connection
    if url.database and isinstance(file, sqlite3.Connection):
        path = Path(url.database)
        atomic_write(path.with_name(f"{path.name}.before-upgrade"), file.serialize())
    tables.upgrade()


def _check_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise StudyError(
            'a PostgreSQL storage needs psycopg, which is not installed: pip install "ranktune[postgres]".'
        ) from None


def check_local(path: Path) -> None:
    """Raise StudyError if an SQLite file is on a network file system, whose locks SQLite cannot rely on."""
    kind = file_system(path)
    if kind in _NETWORK_FILE_SYSTEMS:
        raise StudyError(
            f"{path} is on a network file system ({kind}), where SQLite loses trials. "
            f"Put the home (home=) on a local disk, or keep the record in PostgreSQL: storage={EXAMPLE!r}."
        )


def file_system(path: Path) -> str:
    """Return the kind of file system that path is on, empty if it is not known."""
    real = path.resolve()
    try:
        mounts = [mount for mount in psutil.disk_partitions(all=True) if real.is_relative_to(mount.mountpoint)]
    except OSError:
        return ""
    # Of several mounts on one folder the last covers the others.
    return str(max(reversed(mounts), key=lambda mount: len(mount.mountpoint)).fstype) if mounts else ""


def _commit_with(engine: Engine, synchronous: str) -> None:
    """Let new connections of an SQLite engine commit as the pragma of that name says."""

    def set_pragmas(connection: DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute(f"PRAGMA synchronous={synchronous}")
        cursor.close()

    event.listen(engine, "connect", set_pragmas)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log messages of Optuna."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


def make_tables(connection: Connection) -> None:
    """Create the missing tables, as a part of a transaction."""
    _METADATA.create_all(connection)
