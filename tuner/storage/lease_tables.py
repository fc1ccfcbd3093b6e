"""The tables beside an Optuna study: its owner, its workers, the leases of its trials, their incumbents and races.

A database of an earlier version lacks some of them, but no column: what was added to a lease is a table of its own.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Connection, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

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


def make_tables(connection: Connection) -> None:
    """Create the missing tables, as a part of a transaction."""
    _METADATA.create_all(connection)
