"""What cannot be, given on the command line: one line with cause and remedy, exit code 2, and no study by half."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ranktune.tuner.storage import database
from tests.support.commands import ranktune, write_letor
from tests.support.postgres_server import Server, free_port

SECRET = "hush-Gre4t"
DATA = ["train.txt", "--test", "none", "--solver", "RidgeRanker", "--sampler", "random", "--trials", "2", "--jobs", "1"]


def write(path: Path, seed: int) -> None:
    """Write ten small queries."""
    values = np.random.default_rng(seed).random((60, 3))
    write_letor(path, values[:, :2], values[:, 0] + values[:, 2] > 0.8, np.arange(60) // 6)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data in it, in which commands are called."""
    for name in ("RANKTUNE_STORAGE", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path / "train.txt", 0)
    return tmp_path


def refused(here: Path, *arguments: str) -> str:
    """Return what a command says that has to end with exit code 2, and to leave nothing but an empty home."""
    before = {here / "ranktune-runs", *here.rglob("*")}
    done = ranktune(*arguments, cwd=here, check=2)
    assert done.stdout == "" and SECRET not in done.stderr
    assert {here / "ranktune-runs", *here.rglob("*")} == before
    return done.stderr


def line_of(here: Path, *arguments: str) -> str:
    """Return the one line in which a command is refused."""
    (line,) = (line for line in refused(here, *arguments).splitlines() if not line.startswith("reading "))
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("command", ["tune", "worker"])
def test_a_database_that_cannot_be_used(
    here: Path, postgres: Server, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.tuner.storage.database.OPENING", 0.3)
    right = postgres.new_database()
    cases = {
        f"host-{SECRET}": "postgresql://user:***@host/database",
        f"postgresql://me:{SECRET}@host": "names no database",
        "": "storage",
        postgres.url(right.rpartition("/")[2], password=SECRET): "password",
        postgres.url("nowhere"): '"nowhere" does not exist. Create it (createdb)',
        f"postgresql://me:{SECRET}@127.0.0.1:{free_port()}/db": "refused. Check the address",
        f"postgresql://me:{SECRET}@[half/db": "Check the address",
    }
    arguments = ["tune", *DATA] if command == "tune" else ["worker"]
    for url, said in cases.items():
        message = line_of(here, *arguments, "--name", "n", "--storage", url)
        assert said in message
        assert postgres.password not in message


def test_a_server_that_takes_connections_and_says_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.tuner.storage.database.OPENING", 0.1)
    monkeypatch.setitem(database._SERVER, "connect_timeout", 1)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"postgresql://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/db"
        assert "did not answer" in line_of(here, "worker", "--name", "n", "--storage", url)


def test_a_worker_for_a_study_that_is_not_there(here: Path, postgres: Server) -> None:
    arguments = ["worker", "--name", "m", "--wait", "0"]
    assert "no study 'm' in postgresql://" in line_of(here, *arguments, "--storage", postgres.new_database())
    assert "no study 'm' in ranktune-runs" in line_of(here, *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--executor", "dask"], "go together"),
        (["--executor", "ray"], "HOST:6379"),
        (["--address", "tcp://127.0.0.1:9"], "go together"),
        (["--executor", "slurm"], "Known: dask, processes, ray"),
        (["--trial-memory", "lots"], "--trial-memory lots: it must be a number of bytes"),
        (["--trial-memory", "-4GB"], "it must be a number of bytes"),
        (["--trial-memory", "0"], "it must be a number of bytes"),
        (["--artifacts", "ftp://x"], "s3://BUCKET/PREFIX"),
        (["--artifacts", "train.txt/arrays"], "train.txt/arrays"),
        (["--artifacts", "/proc/arrays"], "/proc/arrays"),
        (["--sampler", "thomson"], "Did you mean 'thompson'"),
        (["--metric", "ndgc"], "ndcg"),
        (["--join"], "--name"),
        (["--name", "../up"], "name"),
    ],
)
def test_options_that_cannot_be(here: Path, arguments: list[str], said: str) -> None:
    assert said in line_of(here, "tune", *DATA, *arguments)


@pytest.mark.parametrize(
    "option", [("--trial-timeout", "0"), ("--trial-timeout", "nan"), ("--jobs", "0"), ("--trials", "0")]
)
def test_numbers_out_of_range(here: Path, option: tuple[str, str]) -> None:
    assert option[0] in refused(here, "tune", *DATA, *option)


def test_data_that_changed_since_the_study_began(here: Path) -> None:
    ranktune("tune", *DATA, "--name", "n", cwd=here)
    files = [here / "ranktune-runs" / "n" / name for name in ("study.json", "result.json")]
    before = [file.read_bytes() for file in files]
    write(here / "train.txt", 1)
    for arguments in (["tune", *DATA, "--name", "n"], ["resume", "n", "--jobs", "1", "--trials", "4"]):
        message = ranktune(*arguments, cwd=here, check=2).stderr
        assert message.count("error: ") == 1 and "other data" in message and "--name" in message
    assert [file.read_bytes() for file in files] == before
